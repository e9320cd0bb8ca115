/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: escaping, cutting, wrapping; UTF-8; growing buffers. */
#include <errno.h>
#include <string.h>

#include "common/base/err.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_err e = { 0, "" };
    char big[2048];

    tap_is_int(moe_err_set(&e, MOE_EFORMAT, "%s: bad", "a\nb\x7f\xff"),
        MOE_EFORMAT, "the code comes back");
    tap_is_str(e.text, "a\\x0ab\\x7f\\xff: bad", "controls are escaped");
    moe_err_set(&e, MOE_EFORMAT, "%s", "caf\xc3\xa9 \xe2\x98\x83");
    tap_is_str(e.text, "caf\xc3\xa9 \xe2\x98\x83", "UTF-8 stays");
    moe_err_sys(&e, MOE_EIO, ENOENT, "%s", "x");
    tap_is_str(e.text, "x: No such file or directory", "errno is told");
    moe_err_at(&e, "%s", "file");
    tap_is_str(e.text, "file: x: No such file or directory", "wrapped");
    tap_is_int(e.code, MOE_EIO, "wrapping keeps the code");
    memset(big, 'x', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    moe_err_set(&e, MOE_EIO, "%s", big);
    tap_ok(strlen(e.text) < MOE_ERR_TEXT &&
        strcmp(e.text + strlen(e.text) - 3, "...") == 0, "long text is cut");
    tap_is_int(moe_err_set(NULL, MOE_EIO, "x"), MOE_EIO, "NULL is allowed");
    return tap_done();
}
