/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks decoded from any bytes, and any bytes encoded and decoded again. First
 * byte: kind, second: type of elements, third and fourth: plain length.
 */
/* covers: common/store/codec.c common/store/delta.c common/store/plane.c */
#include <stdlib.h>
#include <string.h>

#include "common/store/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define MAX ((size_t)1 << 14)

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_codec *c = NULL;
    unsigned char *base, *out, *body;
    struct moe_err e = { 0, "" };
    enum moe_dtype t;
    size_t plain, len;
    uint8_t kind;

    if (n < 5 || n > MAX || moe_codec_new(&c, &e) != 0)
        return 0;
    t = p[1] % MOE_DTYPE_N;
    plain = 1 + (p[2] | (size_t)p[3] << 8) % MAX;
    base = malloc(MAX);
    out = malloc(MAX);
    body = malloc(moe_codec_bound(MAX));
    if (base == NULL || out == NULL || body == NULL)
        abort();
    for (size_t i = 0; i < MAX; i++)
        base[i] = p[4 + i % (n - 4)];
    (void)moe_codec_decode(c, p[0], t, p + 4, n - 4, base, out, plain, &e);
    /* The same bytes as a chunk, against a base that is near. */
    for (size_t i = 0; i + 4 < n; i += 1 + p[3] % 64)
        base[i] ^= p[2];
    for (int with = 0; with < 2; with++) {
        moe_codec_encode(c, t, p + 4, n - 4, with ? base : NULL, body, &len, &kind);
        if (len > moe_codec_bound(n - 4) ||
            moe_codec_decode(c, kind, t, body, len, base, out, n - 4, &e) != 0 ||
            memcmp(out, p + 4, n - 4) != 0)
            abort();
    }
    free(base);
    free(out);
    free(body);
    moe_codec_free(c);
    return 0;
}
