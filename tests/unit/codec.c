/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodings of chunks: every one gives back its bytes, sizes are near what the
 * entropy allows, bytes that are no encoding are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "common/store/codec.h"
#include "tests/tap.h"

#define N MOE_CODEC_MAX

static struct moe_codec *codec;
static unsigned char plain[N], base[N], back[N], *body;
static uint64_t state = 1;

static uint32_t
draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

/* A normal number: the sum of twelve uniform ones. */
static float
normal(void)
{
    double x = -6;

    for (int i = 0; i < 12; i++)
        x += draw() / 2147483648.0;
    return (float)(0.02 * x);
}

/* Encode, decode, compare; the encoded length, or 0. */
static size_t
both(enum moe_dtype t, size_t n, const unsigned char *with, uint8_t *kind)
{
    struct moe_err e = { 0, "" };
    size_t len = 0;

    memset(back, 0xA5, sizeof(back));
    moe_codec_encode(codec, t, plain, n, with, body, &len, kind);
    if (len > moe_codec_bound(n) ||
        moe_codec_decode(codec, *kind, t, body, len, moe_codec_is_delta(*kind) ? with : NULL, back,
            n, &e) != 0 || memcmp(plain, back, n) != 0) {
        tap_diag("%s, %zu bytes, kind %u: %s", moe_dtype_name(t), n, *kind, e.text);
        return 0;
    }
    return len;
}

static void
weights(enum moe_dtype t, size_t w)
{
    for (size_t i = 0; i < N / w; i++) {
        float x = normal();
        uint16_t h = moe_dtype_f32_bf16(x);

        if (t == MOE_F32)
            memcpy(plain + 4 * i, &x, 4);
        else if (t == MOE_BF16)
            memcpy(plain + 2 * i, &h, 2);
        else
            plain[i] = moe_dtype_f32_e4m3(x * 100);
    }
}

static void
sizes(void)
{
    static const struct { enum moe_dtype t; size_t w; double most; } v[] = {
        { MOE_BF16, 2, 0.666 }, { MOE_F32, 4, 0.833 }, { MOE_F8_E4M3, 1, 0.825 } };
    uint8_t kind;
    size_t len;

    for (size_t i = 0; i < 3; i++) {
        weights(v[i].t, v[i].w);
        len = both(v[i].t, N, NULL, &kind);
        tap_ok(len > 0 && (double)len <= v[i].most * N, "%s: %.2f %%, at most %.1f",
            moe_dtype_name(v[i].t), 100.0 * (double)len / N, 100 * v[i].most);
    }
    for (size_t i = 0; i < N; i++)
        plain[i] = (unsigned char)draw();
    len = both(MOE_BF16, N, NULL, &kind);
    tap_ok(len == N && kind == MOE_CODEC_RAW, "noise stays as it is");
    memset(plain, 0, N);
    len = both(MOE_F32, N, NULL, &kind);
    tap_ok(len == 4 && kind == MOE_CODEC_CONST, "zeros are one element");
    for (size_t i = 0; i < N; i++)
        plain[i] = (unsigned char)"a text that is repeated, "[i % 25];
    len = both(MOE_U8, N, NULL, &kind);
    tap_ok(len > 0 && len < N / 100, "text is found to repeat: %zu", len);
}

/* Change each element with a chance of p in 1000 by up to `most` steps. */
static void
change(unsigned p, int most)
{
    memcpy(plain, base, N);
    for (size_t i = 0; i < N; i += 2)
        if (draw() % 1000 < p) {
            uint16_t h;

            memcpy(&h, plain + i, 2);
            h = (uint16_t)(h + (most == 1 ? (draw() % 2 == 0 ? 1 : -1)
                                          : (int)(draw() % (2 * (unsigned)most)) - most));
            memcpy(plain + i, &h, 2);
        }
}

static void
deltas(void)
{
    uint8_t kind;
    size_t len;

    weights(MOE_BF16, 2);
    memcpy(base, plain, N);
    change(10, 1);
    len = both(MOE_BF16, N, base, &kind);
    tap_ok(len > 0 && kind == MOE_CODEC_SPARSE && (double)len <= 0.0062 * N,
        "1 %% of elements by a step: %.3f %%, at most 0.62", 100.0 * (double)len / N);
    change(147, 4);
    len = both(MOE_BF16, N, base, &kind);
    tap_ok(len > 0 && kind == MOE_CODEC_SPARSE && (double)len <= 0.07 * N,
        "14.7 %% by a few: %.2f %%", 100.0 * (double)len / N);
    change(900, 10);
    len = both(MOE_BF16, N, base, &kind);
    tap_ok(len > 0 && kind == MOE_CODEC_DENSE, "nearly all: %.2f %%", 100.0 * (double)len / N);
    change(1000, 30000);
    len = both(MOE_BF16, N, base, &kind);
    tap_ok(len > 0 && len <= N && !moe_codec_is_delta(kind), "another tensor stands alone");
    memcpy(plain, base, N);
    plain[N - 1] ^= 0x80;
    len = both(MOE_BF16, N, base, &kind);
    tap_ok(len > 0 && len < 3000, "the last sign alone: %zu bytes", len);
}

/* Every type, odd lengths, near and far bases. */
static void
all_types(void)
{
    uint8_t kind;
    int bad = 0, tried = 0;

    for (int t = 0; t < MOE_DTYPE_N; t++)
        for (size_t n = 1; n <= 70000; n = n < 40 ? n + 1 : n * 3 + 1)
            for (int how = 0; how < 4; how++) {
                for (size_t i = 0; i < n; i++) {
                    base[i] = (unsigned char)(draw() % 7);
                    plain[i] = (unsigned char)(how == 0 ? draw() : how == 1 ? 3
                            : how == 2 && draw() % 50 != 0  ? base[i]
                                                            : base[i] + draw() % 3);
                }
                bad += both((enum moe_dtype)t, n, NULL, &kind) == 0;
                bad += both((enum moe_dtype)t, n, base, &kind) == 0;
                tried += 2;
            }
    tap_ok(bad == 0, "%d chunks of all types and many lengths: %d bad", tried, bad);
}

/* Encodings with bytes changed or cut off decode to something or are refused. */
static void
hostile(void)
{
    struct moe_err e;
    size_t len, cut = 0;
    uint8_t kind;

    weights(MOE_BF16, 2);
    memcpy(base, plain, N);
    change(20, 3);
    for (int k = 0; k < 2; k++) {
        moe_codec_encode(codec, MOE_BF16, plain, 20000, k > 0 ? base : NULL, body, &len, &kind);
        for (size_t n = 0; n < len; n += 1 + n / 50)
            cut += moe_codec_decode(codec, kind, MOE_BF16, body, n, base, back, 20000, &e) == 0;
        for (int i = 0; i < 2000; i++) {
            size_t at = draw() % (i % 2 == 0 ? len : 40);
            unsigned char old = body[at];

            body[at] = (unsigned char)draw();
            (void)moe_codec_decode(codec, kind, MOE_BF16, body, len, base, back, 20000, &e);
            body[at] = old;
        }
    }
    tap_ok(cut == 0, "what is cut off is refused");
    tap_is_int(moe_codec_decode(codec, 99, MOE_BF16, body, 10, NULL, back, 10, &e), MOE_EUNSUP,
        "a later kind");
    tap_is_int(moe_codec_decode(codec, MOE_CODEC_SPARSE, MOE_BF16, body, 40, NULL, back, 10, &e),
        MOE_EFORMAT, "a delta without its base");
}

int
main(void)
{
    struct moe_err e;

    body = malloc(moe_codec_bound(N));
    if (body == NULL || moe_codec_new(&codec, &e) != 0)
        return 2;
    sizes();
    deltas();
    all_types();
    hostile();
    moe_codec_free(codec);
    free(body);
    return tap_done();
}
