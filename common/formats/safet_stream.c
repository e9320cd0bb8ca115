/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading a safetensors header from a pipe. What it says is safet.c.
 */
#include "common/base/stream.h"
#include "common/formats/safet.h"

#define PIECE ((size_t)1 << 20)

int
moe_safet_stream(struct moe_stream *st, const char *name, struct moe_safet **out,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    unsigned char raw[8];
    size_t n;
    int rc;

    *out = NULL;
    if ((rc = moe_stream_get(st, raw, 8, e)) != 0 || (rc = moe_safet_length(raw, name, &n, e)) != 0)
        return rc;
    while (b.len < n) {     /* memory follows what has come, not what is promised */
        size_t k = n - b.len < PIECE ? n - b.len : PIECE;
        char *to = moe_buf_room(&b, k);

        if (to == NULL) {
            rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
            goto out;
        }
        if ((rc = moe_stream_get(st, to, k, e)) != 0)
            goto out;
        b.len += k;
    }
    rc = moe_safet_parse(b.p, n, UINT64_MAX, name, out, e);
out:
    moe_buf_fini(&b);
    return rc;
}
