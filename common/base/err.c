/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text of errors: formatting, escaping, cutting. Does not print.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/utf8.h"

/* Copy src to dst of size n, escaping what a terminal must not see. */
static void
escape(char *dst, size_t n, const char *src)
{
    size_t at = 0, len = strlen(src), used;
    char piece[4];

    for (; len > 0; src += used, len -= used) {
        size_t k = moe_utf8_show(piece, src, len, &used);

        if (at + k + 4 > n) {
            memcpy(dst + at, "...", 3);
            at += 3;
            break;
        }
        memcpy(dst + at, piece, k);
        at += k;
    }
    dst[at] = '\0';
}

int
moe_err_set(struct moe_err *e, int code, const char *fmt, ...)
{
    char raw[2 * MOE_ERR_TEXT];
    va_list ap;

    if (e == NULL)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    escape(e->text, sizeof(e->text), raw);
    e->code = code;
    return code;
}

int
moe_err_sys(struct moe_err *e, int code, int sys, const char *fmt, ...)
{
    char raw[2 * MOE_ERR_TEXT], why[128];
    va_list ap;

    if (e == NULL)
        return code;
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    return moe_err_set(e, code, "%s: %s", raw,
        strerror_r(sys, why, sizeof(why)));
}

int
moe_err_at(struct moe_err *e, const char *fmt, ...)
{
    char raw[2 * MOE_ERR_TEXT], old[MOE_ERR_TEXT];
    va_list ap;

    if (e == NULL)
        return MOE_EFORMAT;
    memcpy(old, e->text, sizeof(old));
    va_start(ap, fmt);
    (void)vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    return moe_err_set(e, e->code, "%s: %s", raw, old);
}

const char *
moe_err_name(int code)
{
    switch (code) {
    case 0: return "no error";
    case MOE_EUSAGE: return "usage";
    case MOE_EIO: return "input/output";
    case MOE_EFORMAT: return "bad input";
    case MOE_ENOMEM: return "out of memory";
    case MOE_ELIMIT: return "limit exceeded";
    case MOE_EEXIST: return "exists";
    case MOE_ENOENT: return "missing";
    case MOE_EUNSUP: return "unsupported";
    case MOE_ESTOP: return "stopped";
    default: return "unknown";
    }
}
