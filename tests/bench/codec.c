/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec of chunks on one thread: encoding and decoding beside memcpy, the size
 * in per cent in the shape. Weights are normal, with a sigma a tensor and a factor
 * a row, as those of trained models are spread; later steps are made of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/codec.h"
#include "common/system/measure.h"

#define COLS ((size_t)1024)
#define TENSOR ((size_t)1 << 18)    /* elements: a chunk of F32 */
#define TENSORS ((size_t)40)
#define ELEMENTS (TENSORS * TENSOR)
#define GROUP ((size_t)128)

struct job {
    struct moe_codec *codec;
    enum moe_dtype t;
    const unsigned char *plain, *base;
    size_t n;
    unsigned char *body, *back;
    size_t len[4 * TENSORS], at[4 * TENSORS];
    uint8_t kind[4 * TENSORS];
};

static uint64_t state = 1;

static double
draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double
normal(void)
{
    return sqrt(-2 * log(draw())) * cos(6.283185307179586 * draw());
}

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: codec: %s\n", e->text);
    exit(2);
}

static size_t
part(const struct job *j, size_t at)
{
    return j->n - at < MOE_CODEC_MAX ? j->n - at : MOE_CODEC_MAX;
}

static void
encode(void *ctx)
{
    struct job *j = ctx;
    size_t to = 0;

    for (size_t at = 0, i = 0; at < j->n; at += part(j, at), i++) {
        j->at[i] = to;
        moe_codec_encode(j->codec, j->t, j->plain + at, part(j, at),
            j->base != NULL ? j->base + at : NULL, j->body + to, &j->len[i], &j->kind[i]);
        to += j->len[i];
    }
}

static void
decode(void *ctx)
{
    struct job *j = ctx;
    struct moe_err e = { 0, "" };

    for (size_t at = 0, i = 0; at < j->n; at += part(j, at), i++)
        check(moe_codec_decode(j->codec, j->kind[i], j->t, j->body + j->at[i], j->len[i],
            j->base != NULL ? j->base + at : NULL, j->back + at, part(j, at), &e), &e);
}

static void
copy(void *ctx)
{
    struct job *j = ctx;

    memcpy(j->back, j->plain, j->n);
}

static void
bench(struct job *j, const char *name, enum moe_dtype t, const void *plain, const void *base,
    size_t n)
{
    struct moe_measure_plan plan = { 5, 0 };
    struct moe_measure_case c[] = { { "memcpy", copy, NULL, j, n, 0 },
        { "encode", encode, NULL, j, n, 0 }, { "decode", decode, NULL, j, n, 0 } };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;
    size_t sum = 0;
    char shape[64];

    j->t = t;
    j->plain = plain;
    j->base = base;
    j->n = n;
    encode(j);
    for (size_t at = 0, i = 0; at < n; at += part(j, at), i++)
        sum += j->len[i];
    memset(j->back, 0, n);
    decode(j);
    if (memcmp(j->back, plain, n) != 0)
        check(moe_err_set(&e, MOE_EFORMAT, "%s: other bytes come back", name), &e);
    (void)snprintf(shape, sizeof(shape), "%s %.3f%%", name, 100.0 * (double)sum / (double)n);
    check(moe_measure_run(c, 3, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, "codec", shape, c, 3, &m, 0, MOE_MEASURE_BYTES, &e), &e);
    fputs(b.p, stdout);
    fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

static void
make_weights(float *x)
{
    for (size_t i = 0, t = 0; t < TENSORS; t++) {
        double sigma = 0.02 * exp(0.35 * normal()), row = 1;

        for (size_t k = 0; k < TENSOR; k++) {
            if (k % COLS == 0)
                row = exp(0.15 * normal());
            x[i++] = (float)(sigma * row * normal());
        }
    }
}

/* 1e-3 of noise on the weights of every tensor, or of one of ten. */
static void
make_noised(const float *x, uint16_t *out, size_t every)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        out[i] = moe_dtype_f32_bf16(i / TENSOR % every != 0 ? x[i] :
            (float)(x[i] * (1 + 1e-3 * normal())));
}

/* Symmetric INT4 by groups, two in a byte. */
static void
make_int4(const float *x, unsigned char *out)
{
    for (size_t g = 0; g < ELEMENTS; g += GROUP) {
        float most = 0;

        for (size_t i = g; i < g + GROUP; i++)
            most = fmaxf(most, fabsf(x[i]));
        for (size_t i = g; i < g + GROUP; i += 2) {
            long low = lrintf(7 * x[i] / most), high = lrintf(7 * x[i + 1] / most);

            out[i / 2] = (unsigned char)((low & 15) | (high & 15) << 4);
        }
    }
}

static void
bench_all(struct job *j, const float *x, uint16_t *was, uint16_t *now)
{
    unsigned char *bytes = (unsigned char *)now;

    bench(j, "f32", MOE_F32, x, NULL, 4 * ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++)
        was[i] = moe_dtype_f32_bf16(x[i]);
    bench(j, "bf16", MOE_BF16, was, NULL, 2 * ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++)
        bytes[i] = moe_dtype_f32_e4m3(x[i] * 1000);
    bench(j, "f8_e4m3", MOE_F8_E4M3, bytes, NULL, ELEMENTS);
    make_int4(x, bytes);
    bench(j, "int4", MOE_U8, bytes, NULL, ELEMENTS / 2);
    for (size_t i = 0; i < ELEMENTS; i++)
        now[i] = (uint16_t)(draw() * 65536);
    bench(j, "noise", MOE_BF16, now, NULL, 2 * ELEMENTS);
    make_noised(x, now, 10);
    bench(j, "bf16 step, 1e-3 on a tenth of the tensors", MOE_BF16, now, was, 2 * ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++)
        now[i] = (uint16_t)(was[i] + (draw() >= 0.01 ? 0 : draw() < 0.5 ? 1 : -1));
    bench(j, "bf16 step, 1% by one ulp", MOE_BF16, now, was, 2 * ELEMENTS);
    make_noised(x, now, 1);
    bench(j, "bf16 step, 1e-3 on all", MOE_BF16, now, was, 2 * ELEMENTS);
}

int
main(void)
{
    static struct job j;
    float *x = malloc(4 * ELEMENTS);
    uint16_t *was = malloc(2 * ELEMENTS), *now = malloc(2 * ELEMENTS);
    struct moe_err e = { 0, "" };

    j.body = malloc((4 * ELEMENTS / MOE_CODEC_MAX + 1) * moe_codec_bound(MOE_CODEC_MAX));
    j.back = malloc(4 * ELEMENTS);
    if (x == NULL || was == NULL || now == NULL || j.body == NULL || j.back == NULL)
        check(moe_err_set(&e, MOE_ENOMEM, "out of memory"), &e);
    check(moe_codec_new(&j.codec, &e), &e);
    make_weights(x);
    bench_all(&j, x, was, now);
    moe_codec_free(j.codec);
    free(j.back);
    free(j.body);
    free(now);
    free(was);
    free(x);
    return fflush(stdout) != 0;
}
