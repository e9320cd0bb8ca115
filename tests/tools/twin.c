/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twin: the same model in another form, and how well it was quantised.
 *   twin split SRC DST      stacks of BF16 experts as single matrices, in one file
 *   twin fuse SRC DST       single experts as stacks, as transformers 5 names them
 *   twin worse SRC A B GROUP    groups where B, a quantised SRC, has a larger error than A
 *   twin weigh SRC A gate|up|down    the error of A's expert 0, weighted as imatrix does
 *   twin lora SRC ADAPTER MERGED MODULE RANK TIMES  an adapter for a module, and SRC with TIMES B A
 *                           added to it, by sums in double
 *   twin imatrix OUT dat|gguf EXPERTS COLS [VALUE]   importance for layer 0's experts: few columns
 *                           count for most; expert 1 saw nothing; VALUE replaces the first
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggufw.h"
#include "common/formats/naming.h"
#include "common/formats/qload.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

static struct moe_err err;

static void
need(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "twin: %s\n", err.text);
    exit(2);
}

static void *
must(void *p)
{
    if (p == NULL)
        exit(2);
    return p;
}

struct made { struct moe_tensor *t; void **p; size_t n; };

static void
make(struct made *m, const char *name, enum moe_dtype dtype, int rank, const uint64_t *shape,
    void *p)
{
    uint64_t *copy = must(malloc(8 * sizeof(*copy)));

    m->t = must(realloc(m->t, (m->n + 1) * sizeof(*m->t)));
    m->p = must(realloc(m->p, (m->n + 1) * sizeof(*m->p)));
    memcpy(copy, shape, (size_t)rank * sizeof(*copy));
    m->t[m->n] = (struct moe_tensor){ .name = must(strdup(name)), .dtype = dtype, .rank = rank,
        .shape = copy };
    m->p[m->n++] = p;
}

static void *
load(struct moe_source *s, size_t i)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    void *p = must(malloc((size_t)(t->end - t->begin) + 1));

    need(moe_source_read(s, i, 0, p, (size_t)(t->end - t->begin), &err));
    return p;
}

static void
write_made(struct made *m, const char *dst, struct moe_source *s)
{
    struct moe_sink_plan plan = { m->t, m->n, NULL, 0, 8, NULL, 0 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_sink *sink;

    need(moe_sink_open(dst, true, &plan, &sink, &err));
    for (size_t i = 0; i < m->n; i++) {
        uint64_t n = 0;

        moe_safet_bytes(m->t[i].dtype, m->t[i].shape, m->t[i].rank, &n);
        need(moe_sink_write(sink, m->p[i], (size_t)n, &err));
        free(m->p[i]);
        free((char *)m->t[i].name);
        free((uint64_t *)m->t[i].shape);
    }
    free(m->t);
    free(m->p);
    need(moe_source_aux(s, "config.json", (size_t)1 << 26, &b, &err));
    need(moe_sink_aux(sink, "config.json", b.p, b.len, &err));
    moe_buf_fini(&b);
    need(moe_sink_commit(sink, &err));
}

/* One matrix of expert x out of a stack: half -1 all, 0 gate, 1 up. */
static void
take(struct made *m, const struct moe_tensor *t, const struct moe_naming *n, const uint16_t *all,
    uint64_t x, int half)
{
    static const char *const proj[] = { "down_proj", "gate_proj", "up_proj" };
    bool turned = n->transposed;
    uint64_t rows = turned ? t->shape[2] : t->shape[1], cols = turned ? t->shape[1] : t->shape[2];
    uint64_t out = half < 0 ? rows : rows / 2, shape[2] = { out, cols };
    const uint16_t *from = all + x * rows * cols;
    uint16_t *p = must(malloc((size_t)(out * cols) * sizeof(*p)));
    size_t head = strlen(n->module);
    char name[512];

    for (uint64_t r = 0; r < out; r++) {
        uint64_t k = half < 0 ? r : n->interleaved ? 2 * r + (uint64_t)half :
            r + (uint64_t)half * out;

        for (uint64_t c = 0; c < cols; c++)
            p[r * cols + c] = turned ? from[c * rows + k] : from[k * cols + c];
    }
    while (n->module[head - 1] != '.')
        head--;
    snprintf(name, sizeof(name), "%.*s%s%llu.%s.weight", (int)head, n->module,
        head >= 9 && strncmp(n->module + head - 9, ".experts.", 9) == 0 ? "" : "experts.",
        (unsigned long long)x, proj[half + 1]);
    make(m, name, MOE_BF16, 2, shape, p);
}

static void
split(const char *src, const char *dst)
{
    struct made m = { NULL, NULL, 0 };
    const struct moe_config *c;
    struct moe_source *s;

    need(moe_source_open(src, &s, &err));
    c = moe_source_config(s);
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        uint16_t *p = load(s, i);
        struct moe_naming n;

        (void)moe_naming_parse(c->family, c->layers, t->name, &n);
        if (!n.stacked || n.part != MOE_PART_WEIGHT) {
            make(&m, t->name, t->dtype, t->rank, t->shape, p);
            continue;
        }
        for (uint64_t x = 0; x < t->shape[0]; x++) {
            if (n.proj != MOE_PROJ_GATE_UP)
                take(&m, t, &n, p, x, -1);
            for (int half = 0; n.proj == MOE_PROJ_GATE_UP && half < 2; half++)
                take(&m, t, &n, p, x, half);
        }
        free(p);
    }
    write_made(&m, dst, s);
    moe_source_close(s);
}

/* The matrix of expert x beside that of expert 0, which is `first`. */
static size_t
sibling(struct moe_source *s, const char *first, int x, const char *from, const char *to)
{
    const char *mid = strstr(first, ".experts.0."), *end;
    char name[512];

    end = strstr(mid + 11, from);
    if (end == NULL)
        exit(2);
    snprintf(name, sizeof(name), "%.*s.experts.%d.%.*s%s%s", (int)(mid - first), first, x,
        (int)(end - mid - 11), mid + 11, to, end + strlen(from));
    return moe_source_find(s, name);
}

static void
fuse(const char *src, const char *dst)
{
    struct made m = { NULL, NULL, 0 };
    const struct moe_config *c;
    struct moe_source *s;

    need(moe_source_open(src, &s, &err));
    c = moe_source_config(s);
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        bool w = strstr(t->name, ".w1.") != NULL, pair;
        uint64_t shape[3] = { (uint64_t)c->experts, 0, 0 }, at = 0, one;
        struct moe_naming n;
        char name[512];
        unsigned char *all;

        (void)moe_naming_parse(c->family, c->layers, t->name, &n);
        if (n.role != MOE_ROLE_EXPERT) {
            make(&m, t->name, t->dtype, t->rank, t->shape, load(s, i));
            continue;
        }
        if (n.expert != 0 || n.proj == MOE_PROJ_UP)
            continue;
        pair = n.proj == MOE_PROJ_GATE;
        one = t->end - t->begin;
        shape[1] = t->shape[0] * (pair ? 2 : 1);
        shape[2] = t->shape[1];
        all = must(malloc((size_t)(one * shape[0] * 2)));
        for (int x = 0; x < (int)c->experts; x++) {
            for (int half = 0; half < (pair ? 2 : 1); half++, at += one) {
                size_t k = half == 0 ? sibling(s, t->name, x, ".weight", ".weight") :
                    sibling(s, t->name, x, w ? "w1" : "gate_proj", w ? "w3" : "up_proj");

                if (k == SIZE_MAX)
                    exit(2);
                need(moe_source_read(s, k, 0, all + at, (size_t)one, &err));
            }
        }
        snprintf(name, sizeof(name), "model.layers.%d.mlp.experts.%s", n.layer,
            pair ? "gate_up_proj" : "down_proj");
        make(&m, name, t->dtype, 3, shape, all);
    }
    write_made(&m, dst, s);
    moe_source_close(s);
}

static float *
decode(struct moe_source *s, const char *module, uint64_t *n)
{
    const struct moe_config *c = moe_source_config(s);
    struct moe_qscheme *scheme;
    struct moe_qmat m;
    float *x;

    need(moe_qscheme_new(c != NULL ? c->quant : NULL, "config.json", &scheme, &err));
    need(moe_qload_source(scheme, s, module, -1, &m, &err));
    *n = m.rows * m.cols;
    x = must(malloc((size_t)*n * sizeof(*x)));
    moe_qmat_rows(&m, 0, m.rows, x);
    moe_qscheme_free(scheme);
    return x;
}

static void
worse(const char *src, const char *first, const char *second, uint64_t group)
{
    struct moe_source *s, *a, *b;
    uint64_t n, bad = 0, all = 0;

    need(moe_source_open(src, &s, &err));
    need(moe_source_open(first, &a, &err));
    need(moe_source_open(second, &b, &err));
    for (size_t i = 0; i < moe_source_n(s); i++) {
        struct moe_naming name;
        float *x, *y, *z;

        (void)moe_naming_parse(NULL, 0, moe_source_at(s, i)->name, &name);
        if (name.role != MOE_ROLE_EXPERT)
            continue;
        x = decode(s, name.module, &n);
        y = decode(a, name.module, &n);
        z = decode(b, name.module, &n);
        for (uint64_t at = 0; at < n; at += group, all++) {
            double ea = 0, eb = 0;

            for (uint64_t k = at; k < at + group; k++) {
                double da = (double)x[k] - (double)y[k], db = (double)x[k] - (double)z[k];
                ea += da * da;
                eb += db * db;
            }
            bad += eb > ea;
        }
        free(x);
        free(y);
        free(z);
    }
    printf("%llu of %llu\n", (unsigned long long)bad, (unsigned long long)all);
    moe_source_close(s);
    moe_source_close(a);
    moe_source_close(b);
}

static const char *const stacks[] = { "blk.0.ffn_gate_exps.weight",
    "blk.0.ffn_down_exps.weight" };

static float
importance(uint64_t x, uint64_t c)
{
    return x == 1 ? 0 : (float)(1 + (c * 2654435761u + x * 40503u) % 16 / 15 * 100);
}

static void
imatrix(const char *path, bool gguf, uint64_t experts, uint64_t cols, const char *value)
{
    struct moe_ggufw *w = must(moe_ggufw_new());
    struct moe_buf b = MOE_BUF_INIT, data = MOE_BUF_INIT;
    float *v = must(malloc((size_t)(experts * cols) * sizeof(*v)));
    int32_t head[] = { 2, 10, (int32_t)(experts * cols) };
    FILE *f = must(fopen(path, "wb"));

    for (uint64_t i = 0; i < experts * cols; i++)
        v[i] = importance(i / cols, i % cols);
    if (value != NULL)
        v[0] = strtof(value, NULL);
    moe_ggufw_str(w, "general.type", "imatrix", 7);
    moe_buf_add(&data, &head[0], gguf ? 0 : 4);
    for (int k = 0; k < 2; k++) {
        int32_t len = (int32_t)strlen(stacks[k]);
        uint64_t ne[2] = { cols, experts }, one[2] = { 1, experts };
        char name[64];

        if (!gguf) {
            moe_buf_add(&data, &len, 4);
            moe_buf_str(&data, stacks[k]);
            moe_buf_add(&data, &head[1], 8);
            moe_buf_add(&data, v, (size_t)(experts * cols) * sizeof(*v));
            continue;
        }
        snprintf(name, sizeof(name), "%s.in_sum2", stacks[k]);
        moe_ggufw_tensor(w, name, MOE_GGML_F32, 2, ne);
        moe_buf_add(&data, v, (size_t)(experts * cols) * sizeof(*v));
        snprintf(name, sizeof(name), "%s.counts", stacks[k]);
        moe_ggufw_tensor(w, name, MOE_GGML_F32, 2, one);
        for (uint64_t x = 0; x < 8 * ((experts + 7) / 8); x++) {    /* padded to 32 bytes */
            float count = x == 1 || x >= experts ? 0 : 7;
            moe_buf_add(&data, &count, sizeof(count));
        }
    }
    if (gguf)
        need(moe_ggufw_emit(w, &b, &err));
    if (b.len > 0)
        fwrite(b.p, 1, b.len, f);
    fwrite(data.p, 1, data.len, f);
    fclose(f);
    moe_buf_fini(&b);
    moe_buf_fini(&data);
    moe_ggufw_free(w);
    free(v);
}

static void
weigh(const char *src, const char *dst, const char *proj)
{
    struct moe_source *s, *a;
    char module[128];
    float *x, *y;
    uint64_t n;
    double sum = 0;

    need(moe_source_open(src, &s, &err));
    need(moe_source_open(dst, &a, &err));
    snprintf(module, sizeof(module), "model.layers.0.mlp.experts.0.%s_proj", proj);
    x = decode(s, module, &n);
    y = decode(a, module, &n);
    for (uint64_t i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];
        sum += d * d * (double)importance(0, i % 256);
    }
    printf("%.9g\n", sum);
    free(x);
    free(y);
    moe_source_close(s);
    moe_source_close(a);
}

static float
wave(uint64_t i, double step)
{
    return (float)(0.1 * sin(0.37 + step * (double)i));
}

static void
lora(char **arg)
{
    const char *src = arg[0], *module = arg[3];
    uint64_t rank = strtoull(arg[4], NULL, 10);
    double times = strtod(arg[5], NULL);
    struct made m = { NULL, NULL, 0 }, l = { NULL, NULL, 0 };
    struct moe_source *s;
    char name[512];

    need(moe_source_open(src, &s, &err));
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        uint16_t *p = load(s, i);
        uint64_t a_shape[2], b_shape[2];
        float *a, *b;

        snprintf(name, sizeof(name), "%s.weight", module);
        make(&m, t->name, t->dtype, t->rank, t->shape, p);
        if (strcmp(name, t->name) != 0)
            continue;
        a_shape[0] = b_shape[1] = rank;
        a_shape[1] = t->shape[1];
        b_shape[0] = t->shape[0];
        a = must(malloc((size_t)(rank * t->shape[1]) * sizeof(*a)));
        b = must(malloc((size_t)(rank * t->shape[0]) * sizeof(*b)));
        for (uint64_t k = 0; k < rank * t->shape[1]; k++)
            a[k] = wave(k, 0.71);
        for (uint64_t k = 0; k < rank * t->shape[0]; k++)
            b[k] = wave(k, 1.13);
        for (uint64_t r = 0; r < t->shape[0]; r++) {
            for (uint64_t c = 0; c < t->shape[1]; c++) {
                double sum = 0;
                uint16_t *w = p + r * t->shape[1] + c;

                for (uint64_t k = 0; k < rank; k++)
                    sum += (double)b[r * rank + k] * (double)a[k * t->shape[1] + c];
                *w = moe_dtype_f32_bf16((float)((double)moe_dtype_bf16_f32(*w) + times * sum));
            }
        }
        snprintf(name, sizeof(name), "base_model.model.%s.lora_A.weight", module);
        make(&l, name, MOE_F32, 2, a_shape, a);
        snprintf(name, sizeof(name), "base_model.model.%s.lora_B.weight", module);
        make(&l, name, MOE_F32, 2, b_shape, b);
    }
    write_made(&m, arg[2], s);
    write_made(&l, arg[1], s);
    moe_source_close(s);
}

int
main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "split") == 0 && argc == 4)
        split(argv[2], argv[3]);
    else if (strcmp(verb, "fuse") == 0 && argc == 4)
        fuse(argv[2], argv[3]);
    else if (strcmp(verb, "worse") == 0 && argc == 6)
        worse(argv[2], argv[3], argv[4], strtoull(argv[5], NULL, 10));
    else if (strcmp(verb, "weigh") == 0 && argc == 5)
        weigh(argv[2], argv[3], argv[4]);
    else if (strcmp(verb, "lora") == 0 && argc == 8)
        lora(argv + 2);
    else if (strcmp(verb, "imatrix") == 0 && (argc == 6 || argc == 7))
        imatrix(argv[2], argv[3][0] == 'g', strtoull(argv[4], NULL, 10),
            strtoull(argv[5], NULL, 10), argv[6]);
    else {
        fputs("twin: see the head of tests/tools/twin.c\n", stderr);
        return 2;
    }
    return 0;
}
