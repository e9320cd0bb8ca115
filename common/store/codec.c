/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice of an encoding and what each one looks like. */
#include <string.h>

#include "common/store/codec.h"

#define SLACK ((size_t)64)

size_t
moe_codec_bound(size_t n)
{
    return n + SLACK;
}

bool
moe_codec_is_delta(uint8_t kind)
{
    (void)kind;
    return false;
}

/* Bytes after which the elements of a type can repeat. */
static size_t
period_of(enum moe_dtype t)
{
    unsigned bits = moe_dtype_bits(t);

    return bits % 8 == 0 ? bits / 8 : 1;
}

int
moe_codec_encode(enum moe_dtype t, const void *p, size_t n, const void *base, void *out,
    size_t *len, uint8_t *kind, struct moe_err *e)
{
    const unsigned char *x = p;
    size_t period = period_of(t);

    (void)base;
    (void)e;
    if (n > period && memcmp(x, x + period, n - period) == 0) {
        memcpy(out, x, period);
        *len = period;
        *kind = MOE_CODEC_CONST;
        return 0;
    }
    memcpy(out, x, n);
    *len = n;
    *kind = MOE_CODEC_RAW;
    return 0;
}

int
moe_codec_decode(uint8_t kind, enum moe_dtype t, const void *p, size_t len, const void *base,
    void *out, size_t n, struct moe_err *e)
{
    unsigned char *to = out;

    (void)t;
    (void)base;
    switch (kind) {
    case MOE_CODEC_RAW:
        if (len != n)
            return moe_err_set(e, MOE_EFORMAT, "a raw chunk of another length");
        if (n > 0)
            memcpy(to, p, n);
        return 0;
    case MOE_CODEC_CONST:
        if (len == 0 || len > n)
            return moe_err_set(e, MOE_EFORMAT, "a constant without a value");
        for (size_t i = 0; i < n; i++)
            to[i] = ((const unsigned char *)p)[i % len];
        return 0;
    default:
        return moe_err_set(e, MOE_EUNSUP, "an encoding (%u) this program does not know", kind);
    }
}
