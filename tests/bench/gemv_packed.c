/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The experts of a layer of Qwen3-30B-A3B in each kind of the packed layout, for
 * one token (read once, far more than the caches hold, against a plain read of
 * memory in the same rounds) and for several; by one thread and by two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/formats/packed.h"
#include "common/system/measure.h"
#include "kernels/kernels.h"

#define BYTES_4 128             /* experts of a layer; half as many of 8 bits */
#define HIDDEN 2048
#define INTER 768
#define GROUP 128
#define BLOCKS 16               /* of a job: some 130 KiB in one stretch */
#define THREADS 2
#define TOKENS 32               /* of the case with several */
#define HUGE_PAGE ((size_t)2 << 20)

static const struct {
    const char *name;
    enum moe_packed_kind kind;
    enum moe_dtype scale;
    bool zeros, bytes8;
} kinds[] = {
    { "i4", MOE_PACKED_I4, MOE_BF16, false, false },
    { "i4 zeros", MOE_PACKED_I4, MOE_BF16, true, false },
    { "i8", MOE_PACKED_I8, MOE_BF16, false, true },
    { "e2m1", MOE_PACKED_E2M1, MOE_BF16, false, false },
    { "e4m3", MOE_PACKED_E4M3, MOE_F32, false, true },
};

struct layer {
    const char *name;
    struct moe_packed_expert shape;
    size_t experts;
    uint8_t *w;                 /* [experts] records */
    float *x, *xs, *out;        /* [TOKENS] as wide as HIDDEN; [workers][TOKENS][rows] */
    int8_t *xq;
    int32_t *xsum;
    size_t gate_up_jobs, down_jobs;
};

struct bench {
    const struct layer *l;
    const struct moe_kernels *k;
    struct moe_pool *pool;
    bool quant;                 /* INT8 activations; else float */
    size_t tokens;
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

/* n blocks of one matrix. */
static void
product(const struct bench *b, const struct moe_packed *m, float *out, const uint8_t *w, size_t n)
{
    const struct moe_blocks f = moe_packed_form(m);
    const struct layer *l = b->l;

    if (b->quant)
        b->k->gemm_packedq(out, 16 * n, w, n, &f, l->xq, l->xs, l->xsum, b->tokens);
    else
        b->k->gemm_packed(out, 16 * n, w, n, &f, l->x, m->cols, b->tokens);
}

/* Job i: a stretch of an expert's gate and up, or of its down blocks. */
static void
job(void *ctx, size_t i, int worker)
{
    const struct bench *b = ctx;
    const struct layer *l = b->l;
    size_t jobs = l->gate_up_jobs + l->down_jobs, part = i % jobs;
    const uint8_t *w = l->w + i / jobs * l->shape.bytes;
    float *out = l->out + (size_t)worker * TOKENS * BLOCKS * 16;

    if (part < l->gate_up_jobs)
        product(b, &l->shape.gate_up, out, w + part * BLOCKS * l->shape.gate_up_block, BLOCKS);
    else
        product(b, &l->shape.down, out,
            w + l->shape.down_at + (part - l->gate_up_jobs) * BLOCKS * l->shape.down_block, BLOCKS);
}

static void
run(void *ctx)
{
    struct bench *b = ctx;

    moe_pool_run(b->pool, b->l->experts * (b->l->gate_up_jobs + b->l->down_jobs), job, b);
}

static void
layer_init(struct layer *l, size_t kind)
{
    const struct moe_packed in = { .kind = kinds[kind].kind, .scale_dtype = kinds[kind].scale,
        .rows = INTER, .cols = HIDDEN, .group = GROUP, .zeros = kinds[kind].zeros };
    struct moe_packed down = in;
    struct moe_err e = { 0, "" };
    uint64_t state = 1;

    down.rows = HIDDEN;
    down.cols = INTER;
    l->name = kinds[kind].name;
    l->experts = kinds[kind].bytes8 ? BYTES_4 / 2 : BYTES_4;
    check(moe_packed_expert_layout(&in, &down, &l->shape, &e), &e);
    l->gate_up_jobs = 2 * INTER / 16 / BLOCKS;
    l->down_jobs = HIDDEN / 16 / BLOCKS;
    l->w = memory(l->experts * l->shape.bytes);
    l->out = memory((size_t)THREADS * TOKENS * BLOCKS * 16 * sizeof(float));
    l->x = memory((size_t)TOKENS * HIDDEN * sizeof(*l->x));
    l->xs = memory((size_t)TOKENS * HIDDEN * sizeof(*l->xs));
    l->xq = memory((size_t)TOKENS * HIDDEN);
    l->xsum = memory((size_t)TOKENS * HIDDEN * sizeof(*l->xsum));
    /* Any bytes are codes, and read as BF16 most are numbers: 0x3 on top keeps them so. */
    for (size_t i = 0; i < l->experts * l->shape.bytes / 8; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        state = (state & 0x0fff0fff0fff0fffu) | 0x3000300030003000u;
        memcpy(l->w + 8 * i, &state, 8);
    }
    for (size_t i = 0; i < (size_t)TOKENS * HIDDEN; i++)
        l->x[i] = (float)(i % 17) / 16 - 0.5f;
    moe_kernels()->quant_act_i8(l->xq, l->xs, l->xsum, l->x, HIDDEN, HIDDEN, GROUP, TOKENS);
}

static void
layer_fini(struct layer *l)
{
    free(l->w);
    free(l->out);
    free(l->x);
    free(l->xs);
    free(l->xq);
    free(l->xsum);
}

/* One line a tier, and the read; the reference is left out: it is not about speed. */
static void
measure(const struct layer *l, struct moe_pool *pool, struct moe_measure_reader *reader,
    bool quant, size_t tokens)
{
    static const char *const tiers[] = { "avx2", "avx512" };
    struct bench b[2];
    struct moe_measure_case c[3] = { moe_measure_reader_case(reader) };
    struct moe_measure_plan plan = { 7, 1 };
    struct moe_buf lines = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;
    char shape[96];
    size_t n = 1;

    for (size_t t = 0; t < 2; t++) {
        b[t] = (struct bench){ l, moe_kernels_tier(tiers[t]), pool, quant, tokens };
        if (b[t].k != NULL)
            c[n++] = (struct moe_measure_case){ tiers[t], run, NULL, &b[t],
                l->experts * l->shape.bytes,
                2 * l->experts * 3 * (uint64_t)HIDDEN * INTER * tokens };
    }
    (void)snprintf(shape, sizeof(shape), "%s, %zux3x%dx%d, %zu tokens, %d threads", l->name,
        l->experts, INTER, HIDDEN, tokens, moe_pool_size(pool));
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

    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        struct layer l;

        layer_init(&l, kind);
        for (int threads = 1; threads <= THREADS; threads++) {
            struct moe_measure_reader *reader;
            struct moe_pool *pool;

            check(moe_pool_new(threads, &pool, &e), &e);
            check(moe_measure_reader_new(pool, 0, &reader, &e), &e);
            for (size_t tokens = 1; tokens <= TOKENS; tokens += TOKENS - 1) {
                measure(&l, pool, reader, false, tokens);
                if (kinds[kind].kind != MOE_PACKED_E4M3)
                    measure(&l, pool, reader, true, tokens);
            }
            moe_measure_reader_free(reader);
            moe_pool_free(pool);
        }
        layer_fini(&l);
    }
    return fflush(stdout) != 0;
}
