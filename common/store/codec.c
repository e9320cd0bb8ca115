/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the choice of an encoding, and the splitting of elements into planes. */
#include <stdlib.h>
#include <string.h>

#include "common/store/codec.h"
#include "common/store/delta.h"
#include "common/store/plane.h"

#define SLACK ((size_t)256)     /* heads of runs */

struct moe_codec {
    struct moe_plane *plane;
    unsigned char *scratch;     /* of planes and of deltas */
    unsigned char *other;       /* a second encoding, to compare */
};

int
moe_codec_new(struct moe_codec **out, struct moe_err *e)
{
    struct moe_codec *c = calloc(1, sizeof(*c));
    int rc = c == NULL ? MOE_ENOMEM : moe_plane_new(&c->plane, e);

    *out = NULL;
    if (rc == 0 && ((c->scratch = malloc(MOE_DELTA_SCRATCH(MOE_CODEC_MAX))) == NULL ||
            (c->other = malloc(moe_codec_bound(MOE_CODEC_MAX))) == NULL))
        rc = MOE_ENOMEM;
    if (rc != 0) {
        moe_codec_free(c);
        return moe_err_set(e, rc, "out of memory");
    }
    *out = c;
    return 0;
}

void
moe_codec_free(struct moe_codec *c)
{
    if (c == NULL)
        return;
    moe_plane_free(c->plane);
    free(c->scratch);
    free(c->other);
    free(c);
}

size_t
moe_codec_bound(size_t n)
{
    return n + SLACK;
}

bool
moe_codec_is_delta(uint8_t kind)
{
    return kind == MOE_CODEC_SPARSE || kind == MOE_CODEC_DENSE;
}

/* Bytes of an element; 1 where it is not a whole number of them. */
static size_t
width_of(enum moe_dtype t)
{
    unsigned bits = moe_dtype_bits(t);

    return t == MOE_C64 ? 4 : bits % 8 == 0 ? bits / 8 : 1;
}

/* ---- Planes --------------------------------------------------------------------------------- */

/*
 * Element by element, turned left by a bit: of a float the exponent is then one
 * byte, and the sign is with the noise.
 */
static void
split(const unsigned char *p, size_t n, size_t w, unsigned char *plane)
{
    size_t m = n / w;

    if (w == 2) {
        for (size_t i = 0; i < m; i++) {
            unsigned v = p[2 * i] | (unsigned)p[2 * i + 1] << 8;

            plane[i] = (unsigned char)(v << 1 | v >> 15);
            plane[m + i] = (unsigned char)(v >> 7);
        }
        return;
    }
    for (size_t i = 0; i < m; i++) {
        const unsigned char *x = p + i * w;

        plane[i] = (unsigned char)(x[0] << 1 | x[w - 1] >> 7);
        for (size_t k = 1; k < w; k++)
            plane[k * m + i] = (unsigned char)(x[k] << 1 | x[k - 1] >> 7);
    }
}

static void
join(const unsigned char *plane, size_t n, size_t w, unsigned char *p)
{
    size_t m = n / w;

    if (w == 2) {
        for (size_t i = 0; i < m; i++) {
            unsigned v = plane[i] | (unsigned)plane[m + i] << 8;

            v = v >> 1 | (v & 1) << 15;
            p[2 * i] = (unsigned char)v;
            p[2 * i + 1] = (unsigned char)(v >> 8);
        }
        return;
    }
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < w; k++) {
            unsigned high = k + 1 < w ? plane[(k + 1) * m + i] : plane[i];

            p[i * w + k] = (unsigned char)(plane[k * m + i] >> 1 | high << 7);
        }
}

/* Encode without a base. */
static uint8_t
alone(struct moe_codec *c, enum moe_dtype t, const unsigned char *p, size_t n, unsigned char *out,
    size_t *len)
{
    size_t w = width_of(t), cap = moe_codec_bound(n);
    bool whole = true;

    *len = 0;
    if (n >= w && n % w == 0 && memcmp(p, p + w, n - w) == 0) {
        memcpy(out, p, w);
        *len = w;
        return MOE_CODEC_CONST;
    }
    if (w > 1 && n % w == 0) {
        split(p, n, w, c->scratch);
        for (size_t k = 0; whole && k < w; k++)
            whole = moe_plane_put(c->plane, c->scratch + k * (n / w), n / w,
                !moe_dtype_is_float(t), out, cap, len);
        if (whole && *len < n)
            return MOE_CODEC_SPLIT;
    } else if (moe_plane_put(c->plane, p, n, !moe_dtype_is_float(t), out, cap, len) && *len < n) {
        return MOE_CODEC_PLANE;
    }
    memcpy(out, p, n);
    *len = n;
    return MOE_CODEC_RAW;
}

/* ---- Public --------------------------------------------------------------------------------- */

void
moe_codec_encode(struct moe_codec *c, enum moe_dtype t, const void *p, size_t n,
    const void *base, void *out, size_t *len, uint8_t *kind)
{
    size_t w = width_of(t), other = 0;
    bool dense = false;

    if (base != NULL && n % w == 0 &&
        moe_delta_put(c->plane, p, base, n, w, c->scratch, out, n / 2, len, &dense)) {
        *kind = dense ? MOE_CODEC_DENSE : MOE_CODEC_SPARSE;
        if (*len < n / 4)
            return;
        /* So much that standing alone may be no longer. */
        *kind = alone(c, t, p, n, c->other, &other);
        if (other <= *len) {
            memcpy(out, c->other, other);
            *len = other;
        } else {
            *kind = dense ? MOE_CODEC_DENSE : MOE_CODEC_SPARSE;
        }
        return;
    }
    *kind = alone(c, t, p, n, out, len);
}

static int
decode_split(struct moe_codec *c, const unsigned char *p, size_t len, size_t w,
    unsigned char *out, size_t n, struct moe_err *e)
{
    const unsigned char *end = p + len;
    int rc;

    if (n % w != 0)
        return moe_err_set(e, MOE_EFORMAT, "a chunk of no whole elements");
    for (size_t k = 0; k < w; k++)
        if ((rc = moe_plane_get(c->plane, &p, end, c->scratch + k * (n / w), n / w, e)) != 0)
            return rc;
    if (p != end)
        return moe_err_set(e, MOE_EFORMAT, "bytes after a chunk");
    join(c->scratch, n, w, out);
    return 0;
}

int
moe_codec_decode(struct moe_codec *c, uint8_t kind, enum moe_dtype t, const void *p,
    size_t len, const void *base, void *out, size_t n, struct moe_err *e)
{
    const unsigned char *from = p, *end = from + len;
    unsigned char *to = out;
    size_t w = width_of(t);
    int rc;

    if (n == 0 || n > MOE_CODEC_MAX || len == 0)
        return moe_err_set(e, MOE_EFORMAT, "a chunk without bytes, or too many");
    switch (kind) {
    case MOE_CODEC_RAW:
        if (len != n)
            return moe_err_set(e, MOE_EFORMAT, "a raw chunk of another length");
        memcpy(to, from, n);
        return 0;
    case MOE_CODEC_CONST:
        if (len > n || n % len != 0)
            return moe_err_set(e, MOE_EFORMAT, "a constant of another length");
        for (size_t i = 0; i < n; i += len)
            memcpy(to + i, from, len);
        return 0;
    case MOE_CODEC_PLANE:
        if ((rc = moe_plane_get(c->plane, &from, end, to, n, e)) == 0 && from != end)
            rc = moe_err_set(e, MOE_EFORMAT, "bytes after a chunk");
        return rc;
    case MOE_CODEC_SPLIT:
        return decode_split(c, from, len, w, to, n, e);
    case MOE_CODEC_SPARSE:
    case MOE_CODEC_DENSE:
        if (base == NULL)
            return moe_err_set(e, MOE_EFORMAT, "a delta without a base");
        return moe_delta_get(c->plane, kind == MOE_CODEC_DENSE, from, len, base, n, w, c->scratch,
            to, e);
    default:
        return moe_err_set(e, MOE_EUNSUP, "an encoding (%u) this program does not know", kind);
    }
}
