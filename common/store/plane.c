/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what zstd is asked to do with one run of bytes. */
#define ZSTD_STATIC_LINKING_ONLY    /* literal compression by force is not in the stable part */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/base/le.h"
#include "common/store/plane.h"

/* On disk. */
enum { RAW = 0, SAME = 1, FRAME = 2 };

#define SAMPLE ((size_t)256)        /* bytes looked at, of SPACING each, to guess the entropy */
#define SPACING ((size_t)2048)
#define NOISE 7.85                  /* bits a byte from which no coding is tried */
#define LITERAL_LEVEL (-1000)       /* so fast that hardly a match is found */
#define TRIAL ((size_t)65536)       /* bytes on which it is found out whether matches pay */

struct moe_plane { ZSTD_CCtx *literal, *match; ZSTD_DCtx *d; };

int
moe_plane_new(struct moe_plane **out, struct moe_err *e)
{
    struct moe_plane *c = calloc(1, sizeof(*c));

    *out = NULL;
    if (c != NULL) {
        c->literal = ZSTD_createCCtx();
        c->match = ZSTD_createCCtx();
        c->d = ZSTD_createDCtx();
    }
    if (c == NULL || c->literal == NULL || c->match == NULL || c->d == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->literal, ZSTD_c_compressionLevel, LITERAL_LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->literal, ZSTD_c_literalCompressionMode,
            ZSTD_ps_enable)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(c->match, ZSTD_c_compressionLevel, 1))) {
        moe_plane_free(c);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    *out = c;
    return 0;
}

void
moe_plane_free(struct moe_plane *c)
{
    if (c == NULL)
        return;
    (void)ZSTD_freeCCtx(c->literal);
    (void)ZSTD_freeCCtx(c->match);
    (void)ZSTD_freeDCtx(c->d);
    free(c);
}

/* Bits a byte of a sample. */
static double
entropy(const unsigned char *p, size_t n)
{
    uint32_t count[256] = { 0 };
    size_t total = 0;
    double bits = 0;

    for (size_t at = 0; at < n; at += SPACING) {
        size_t end = n - at < SAMPLE ? n : at + SAMPLE;

        for (size_t i = at; i < end; i++)
            count[p[i]]++;
        total += end - at;
    }
    for (int i = 0; i < 256; i++)
        if (count[i] > 0)
            bits -= count[i] * log2((double)count[i] / (double)total);
    return bits / (double)total;
}

/* Compress to fewer than most bytes; 0 if that cannot be. */
static size_t
squeeze(ZSTD_CCtx *c, const unsigned char *p, size_t n, unsigned char *out, size_t most)
{
    size_t k = ZSTD_compress2(c, out, most, p, n);

    return ZSTD_isError(k) ? 0 : k;
}

/* Whether matches are worth their while, by the first bytes and the room at out. */
static bool
matches_pay(struct moe_plane *c, const unsigned char *p, size_t n, unsigned char *out, size_t most)
{
    size_t k = n < TRIAL ? n : TRIAL, m = most < k ? most : k;
    size_t a = squeeze(c->literal, p, k, out, m), b = squeeze(c->match, p, k, out, m);

    return b > 0 && (a == 0 || b < a);
}

bool
moe_plane_put(struct moe_plane *c, const unsigned char *p, size_t n, bool text,
    unsigned char *out, size_t cap, size_t *len)
{
    unsigned char *head = out + *len, *body = head + MOE_PLANE_HEAD;
    size_t room, most, k = 0;

    if (cap - *len < MOE_PLANE_HEAD)
        return false;
    room = cap - *len - MOE_PLANE_HEAD;
    most = n - n / 64;
    most = most < room ? most : room;
    if (n > 1 && room > 0 && memcmp(p, p + 1, n - 1) == 0) {
        head[0] = SAME;
        body[0] = p[0];
        k = 1;
    } else if (n > 64 && (text || entropy(p, n) < NOISE)) {
        head[0] = FRAME;
        k = squeeze(text && matches_pay(c, p, n, body, most) ? c->match : c->literal, p, n, body,
            most);
    }
    if (k == 0) {
        if (n > room)
            return false;
        head[0] = RAW;
        if (n > 0)
            memcpy(body, p, n);
        k = n;
    }
    moe_le_put32(head + 1, (uint32_t)k);
    *len += MOE_PLANE_HEAD + k;
    return true;
}

int
moe_plane_get(struct moe_plane *c, const unsigned char **p, const unsigned char *end,
    unsigned char *out, size_t n, struct moe_err *e)
{
    const unsigned char *body = *p + MOE_PLANE_HEAD;
    size_t k, got;

    if ((size_t)(end - *p) < MOE_PLANE_HEAD ||
        (k = moe_le_get32(*p + 1)) > (size_t)(end - body))
        return moe_err_set(e, MOE_EFORMAT, "an encoded chunk ends too early");
    switch (**p) {
    case RAW:
        got = k;
        if (got == n && n > 0)
            memcpy(out, body, n);
        break;
    case SAME:
        got = k == 1 ? n : n + 1;
        if (got == n)
            memset(out, body[0], n);
        break;
    case FRAME:
        got = ZSTD_decompressDCtx(c->d, out, n, body, k);
        break;
    default:
        return moe_err_set(e, MOE_EFORMAT, "an encoded chunk of an unknown form");
    }
    if (got != n)
        return moe_err_set(e, MOE_EFORMAT, "an encoded chunk of another length");
    *p = body + k;
    return 0;
}
