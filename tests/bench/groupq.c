/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group quantisation, conversions and digests of one core, on data of a tensor
 * that does not fit the caches, against reading that much memory. In each tier
 * that this processor has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/measure.h"
#include "kernels/kernels.h"

#define COLS 4096
#define ROWS 8192

static struct {
    uint16_t *x;        /* [ROWS][COLS] BF16 */
    uint8_t *codes;     /* [ROWS][COLS] */
    uint16_t *scale;    /* [COLS] */
    float *f;           /* [COLS] */
} data;

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: groupq: %s\n", e->text);
    exit(2);
}

static void
fill(void)
{
    uint32_t u = 1;

    data.x = malloc((size_t)ROWS * COLS * sizeof(*data.x));
    data.codes = malloc((size_t)ROWS * COLS);
    data.scale = malloc(COLS * sizeof(*data.scale));
    data.f = malloc(COLS * sizeof(*data.f));
    if (data.x == NULL || data.codes == NULL || data.scale == NULL || data.f == NULL)
        exit(2);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++) {
        u = u * 1664525 + 1013904223;
        /* Magnitudes from 2^-8 to 2^-4, as weights have them. */
        data.x[i] = (uint16_t)((u >> 16 & 0x807f) | (119 + (u >> 10 & 3)) << 7);
    }
    memset(data.codes, 0, (size_t)ROWS * COLS);
}

static void
to_i4(void *ctx)
{
    const struct moe_kernels *k = ctx;

    for (size_t r = 0; r < ROWS; r++)
        k->quant_i4_bf16(data.codes + r * COLS / 2, data.scale, data.x + r * COLS, COLS, 128);
}

static void
to_i8(void *ctx)
{
    const struct moe_kernels *k = ctx;

    for (size_t r = 0; r < ROWS; r++)
        k->quant_i8_bf16((int8_t *)data.codes + r * COLS, data.scale, data.x + r * COLS, COLS,
            COLS);
}

static void
from_i4(void *ctx)
{
    const struct moe_kernels *k = ctx;

    for (size_t r = 0; r < ROWS; r++)
        k->dequant_i4(data.f, data.codes + r * COLS / 2, data.scale, COLS, 128, 0);
}

static void
widen(void *ctx)
{
    const struct moe_kernels *k = ctx;

    for (size_t r = 0; r < ROWS; r++)
        k->bf16_f32(data.f, data.x + r * COLS, COLS);
}

static void
crc(void *ctx)
{
    const struct moe_kernels *k = ctx;

    data.scale[0] = (uint16_t)k->crc32c(0, data.x, (size_t)ROWS * COLS * sizeof(*data.x));
}

/* The whole array as one stream, and as two streams of half of it. */
static void
sha_x1(void *ctx)
{
    const struct moe_kernels *k = ctx;
    uint32_t state[8] = { 0 };

    k->sha256_x1(state, data.x, (size_t)ROWS * COLS * sizeof(*data.x) / 64);
}

static void
sha_x2(void *ctx)
{
    const struct moe_kernels *k = ctx;
    uint32_t a[8] = { 0 }, b[8] = { 0 };

    k->sha256_x2(a, data.x, b, data.x + (size_t)ROWS * COLS / 2,
        (size_t)ROWS * COLS * sizeof(*data.x) / 128);
}

static void
report(const char *op, moe_measure_fn *fn, uint64_t bytes, struct moe_measure_reader *reader)
{
    static const char *const tiers[] = { "ref", "avx2", "avx512" };
    struct moe_measure_plan plan = { 9, 0 };
    struct moe_measure_case c[4] = { moe_measure_reader_case(reader) };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    struct moe_measure m;
    size_t n = 1;

    for (size_t t = 0; t < 3; t++) {
        const struct moe_kernels *k = moe_kernels_tier(tiers[t]);
        if (k != NULL && ((fn != sha_x1 && fn != sha_x2) || k->sha256_x1 != NULL))
            c[n++] = (struct moe_measure_case){ .variant = tiers[t], .run = fn, .ctx = (void *)k,
                .bytes = bytes };
    }
    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, op, "8192x4096", c, n, &m, 0, MOE_MEASURE_BYTES, &e), &e);
    fputs(b.p, stdout);
    (void)fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

int
main(void)
{
    const uint64_t n = (uint64_t)ROWS * COLS;
    struct moe_measure_reader *reader;
    struct moe_err e = { 0 };
    struct moe_pool *pool;

    fill();
    check(moe_pool_new(1, &pool, &e), &e);
    check(moe_measure_reader_new(pool, 0, &reader, &e), &e);
    report("quant_i4_bf16", to_i4, 2 * n, reader);
    report("quant_i8_bf16", to_i8, 2 * n, reader);
    report("dequant_i4", from_i4, n / 2, reader);
    report("bf16_f32", widen, 2 * n, reader);
    report("crc32c", crc, 2 * n, reader);
    report("sha256_x1", sha_x1, 2 * n, reader);
    report("sha256_x2", sha_x2, 2 * n, reader);
    moe_measure_reader_free(reader);
    moe_pool_free(pool);
    return fflush(stdout) != 0;
}
