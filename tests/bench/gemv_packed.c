/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The experts of a layer of Qwen3-30B-A3B for one token: packed INT4 read once,
 * far more than the caches hold, against a plain read of memory in the same
 * rounds; by one thread and by two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/formats/packed.h"
#include "common/system/measure.h"
#include "kernels/kernels.h"

#define EXPERTS 128
#define HIDDEN 2048
#define INTER 768
#define GROUP 128
#define BLOCKS 16               /* of a job: some 130 KiB in one stretch */
#define THREADS 2
#define HUGE_PAGE ((size_t)2 << 20)

struct layer {
    struct moe_packed_expert shape;
    uint8_t *w;                 /* [EXPERTS] records */
    float *x, *xs, *out;        /* one token, as wide as HIDDEN; [EXPERTS][rows] */
    int8_t *xq;
    int32_t *xsum;
    size_t gate_up_jobs, down_jobs;
};

struct bench {
    const struct layer *l;
    const struct moe_kernels *k;
    struct moe_pool *pool;
    bool quant;                 /* INT8 activations; else float */
};

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: gemv_packed: %s\n", e->text);
    exit(2);
}

static void *
memory(size_t n)
{
    void *p = aligned_alloc(HUGE_PAGE, (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);

    if (p == NULL) {
        fprintf(stderr, "bench: gemv_packed: out of memory\n");
        exit(2);
    }
    (void)madvise(p, n, MADV_HUGEPAGE);
    return p;
}

/* Blocks [at, at + n) of cols columns, all of one matrix. */
static void
product(const struct bench *b, float *out, const uint8_t *w, size_t n, size_t cols)
{
    const struct layer *l = b->l;
    const struct moe_blocks f = { .codes = MOE_CODES_I4, .scale = MOE_SCALE_BF16, .cols = cols,
        .group = GROUP };

    if (b->quant)
        b->k->gemm_packedq(out, 16 * n, w, n, &f, l->xq, l->xs, l->xsum, 1);
    else
        b->k->gemm_packed(out, 16 * n, w, n, &f, l->x, cols, 1);
}

/* Job i: a stretch of an expert's gate and up, or of its down blocks. */
static void
job(void *ctx, size_t i, int worker)
{
    const struct bench *b = ctx;
    const struct layer *l = b->l;
    size_t jobs = l->gate_up_jobs + l->down_jobs, part = i % jobs;
    const uint8_t *w = l->w + i / jobs * l->shape.bytes;
    float *out = l->out + i * BLOCKS * 16;

    (void)worker;
    if (part < l->gate_up_jobs)
        product(b, out, w + part * BLOCKS * l->shape.gate_up_block, BLOCKS, HIDDEN);
    else
        product(b, out,
            w + l->shape.down_at + (part - l->gate_up_jobs) * BLOCKS * l->shape.down_block, BLOCKS,
            INTER);
}

static void
run(void *ctx)
{
    struct bench *b = ctx;

    moe_pool_run(b->pool, EXPERTS * (b->l->gate_up_jobs + b->l->down_jobs), job, b);
}

static void
layer_init(struct layer *l)
{
    const struct moe_packed in = { .kind = MOE_PACKED_I4, .scale_dtype = MOE_BF16,
        .rows = INTER, .cols = HIDDEN, .group = GROUP };
    const struct moe_packed down = { .kind = MOE_PACKED_I4, .scale_dtype = MOE_BF16,
        .rows = HIDDEN, .cols = INTER, .group = GROUP };
    struct moe_err e = { 0, "" };
    uint64_t state = 1;

    check(moe_packed_expert_layout(&in, &down, &l->shape, &e), &e);
    l->gate_up_jobs = 2 * INTER / 16 / BLOCKS;
    l->down_jobs = HIDDEN / 16 / BLOCKS;
    l->w = memory(EXPERTS * l->shape.bytes);
    l->out = memory(EXPERTS * (l->gate_up_jobs + l->down_jobs) * BLOCKS * 16 * sizeof(float));
    l->x = memory(HIDDEN * sizeof(*l->x));
    l->xs = memory(HIDDEN * sizeof(*l->xs));
    l->xq = memory(HIDDEN);
    l->xsum = memory(HIDDEN * sizeof(*l->xsum));
    /* Any bytes are codes, and read as BF16 most are numbers: 0x3 on top keeps them so. */
    for (size_t i = 0; i < EXPERTS * l->shape.bytes / 8; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        state = (state & 0x0fff0fff0fff0fffu) | 0x3000300030003000u;
        memcpy(l->w + 8 * i, &state, 8);
    }
    for (size_t i = 0; i < HIDDEN; i++)
        l->x[i] = (float)(i % 17) / 16 - 0.5f;
    moe_kernels()->quant_act_i8(l->xq, l->xs, l->xsum, l->x, HIDDEN, HIDDEN, GROUP, 1);
}

/* One line a tier, and the read; the reference is left out: it is not about speed. */
static void
measure(const struct layer *l, struct moe_pool *pool, struct moe_measure_reader *reader,
    bool quant)
{
    static const char *const tiers[] = { "avx2", "avx512" };
    struct bench b[2];
    struct moe_measure_case c[3] = { moe_measure_reader_case(reader) };
    struct moe_measure_plan plan = { 15, 1 };
    struct moe_buf lines = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;
    char shape[64];
    size_t n = 1;

    for (size_t t = 0; t < 2; t++) {
        b[t] = (struct bench){ l, moe_kernels_tier(tiers[t]), pool, quant };
        if (b[t].k != NULL)
            c[n++] = (struct moe_measure_case){ tiers[t], run, NULL, &b[t],
                EXPERTS * l->shape.bytes, 2 * EXPERTS * 3 * (uint64_t)HIDDEN * INTER };
    }
    (void)snprintf(shape, sizeof(shape), "%dx3x%dx%d g%d, %d threads", EXPERTS, INTER, HIDDEN,
        GROUP, moe_pool_size(pool));
    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&lines, quant ? "gemm_packedq" : "gemm_packed", shape, c, n, &m, 0,
              MOE_MEASURE_BYTES, &e),
        &e);
    fputs(lines.p, stdout);
    fflush(stdout);
    moe_buf_fini(&lines);
    moe_measure_fini(&m);
}

int
main(void)
{
    struct moe_err e = { 0, "" };
    struct layer l;

    layer_init(&l);
    for (int threads = 1; threads <= THREADS; threads++) {
        struct moe_measure_reader *reader;
        struct moe_pool *pool;

        check(moe_pool_new(threads, &pool, &e), &e);
        check(moe_measure_reader_new(pool, 0, &reader, &e), &e);
        measure(&l, pool, reader, true);
        measure(&l, pool, reader, false);
        moe_measure_reader_free(reader);
        moe_pool_free(pool);
    }
    return fflush(stdout) != 0;
}
