/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the policy: routed experts are quantised, everything else is kept byte
 * for byte, and what nobody would load or nobody knows is refused by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_config.h"
#include "cmd/moe-quant/quant_plan.h"
#include "common/base/num.h"

/*
 * Stacks of experts: families whose loaders take the experts of a stack one by
 * one, as experts.N.gate_proj, and why the others are refused.
 */
static const struct { const char *family, *why; } stacks[] = {
    { "qwen2_moe", NULL },
    { "qwen3_moe", NULL },
    { "olmoe", NULL },
    { "deepseek_v2", NULL },
    { "deepseek_v3", NULL },
    { "qwen3_5_moe", NULL },
    { "qwen3_5_moe_text", NULL },
    { "qwen3_vl_moe", NULL },
    { "qwen3_vl_moe_text", NULL },
    { "mixtral", "its loaders want block_sparse_moe.experts.N.w1: save it unfused first" },
    { "phimoe", "its loaders want block_sparse_moe.experts.N.w1: save it unfused first" },
    { "gpt_oss", "no program loads packed integer experts of this family" },
    { "granitemoe", "no program loads packed integer experts of this family" },
    { "granitemoeshared", "no program loads packed integer experts of this family" },
    { "gemma4", "no program loads packed integer experts of this family" },
    { "gemma4_text", "no program loads packed integer experts of this family" },
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

bool
quant_plan_is_dir(const char *dst)
{
    size_t n = strlen(dst);

    return strcmp(dst, "-") != 0 && (n < 12 || strcmp(dst + n - 12, ".safetensors") != 0);
}

static struct quant_plan_item *
add(struct quant_plan *p, struct moe_err *e)
{
    if (p->n == p->cap) {
        size_t cap = p->cap == 0 ? 1024 : 2 * p->cap;
        struct quant_plan_item *t = realloc(p->items, cap * sizeof(*t));

        if (t == NULL) {
            no_memory(e);
            return NULL;
        }
        p->items = t;
        p->cap = cap;
    }
    p->items[p->n] = (struct quant_plan_item){ .src = 0 };
    return &p->items[p->n++];
}

/* ---- What is refused -------------------------------------------------------- */

static int
check_source(struct moe_source *s, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(s);
    const char *path = moe_source_path(s);

    if (moe_source_gguf(s) != NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: a GGUF file: only safetensors are quantised", path);
    if (c != NULL && c->quant != NULL) {
        const char *m = json_string_value(json_object_get(c->quant, "quant_method"));

        return moe_err_set(e, MOE_EUNSUP, "%s: quantization_config: already quantised (%s)",
            c->name, m != NULL ? m : "no method told");
    }
    return 0;
}

/* Parts that only a quantised matrix has. */
static int
check_part(struct moe_source *s, const struct moe_tensor *t, const struct moe_naming *n,
    struct moe_err *e)
{
    bool part = n->part != MOE_PART_WEIGHT && n->part != MOE_PART_BIAS &&
        n->part != MOE_PART_OTHER;

    if (part || (n->role == MOE_ROLE_EXPERT && moe_dtype_bits(t->dtype) <= 8))
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: already quantised (%s)",
            moe_source_path(s), t->name, moe_dtype_name(t->dtype));
    return 0;
}

static int
check_matrix(struct moe_source *s, const struct moe_tensor *t, uint64_t rows, uint64_t cols,
    struct moe_err *e)
{
    uint64_t bytes;

    if (t->dtype != MOE_BF16 && t->dtype != MOE_F16 && t->dtype != MOE_F32)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: %s is not quantised, only BF16, F16 and"
            " F32", moe_source_path(s), t->name, moe_dtype_name(t->dtype));
    if (rows == 0 || cols == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: an empty matrix", moe_source_path(s),
            t->name);
    if (!moe_num_mul(cols, moe_dtype_bits(t->dtype) / 8, &bytes) || bytes > QUANT_PLAN_MAX_ROW)
        return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: a row of over %llu bytes",
            moe_source_path(s), t->name, (unsigned long long)QUANT_PLAN_MAX_ROW);
    return 0;
}

/* ---- Items ------------------------------------------------------------------ */

static void
describe(struct quant_plan_item *x, const struct moe_tensor *t, const struct moe_naming *n)
{
    x->dtype = t->dtype;
    x->role = n->role;
    x->proj = n->proj;
    x->layer = n->layer;
    x->expert = n->expert;
}

static int
keep(struct moe_source *s, struct quant_plan *p, size_t i, const struct moe_naming *n,
    struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    struct quant_plan_item *x;

    if (n->role == MOE_ROLE_UNKNOWN && t->rank >= 2 && t->end - t->begin >= QUANT_PLAN_BIG)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: nothing is known of this name, and %llu"
            " bytes are not copied unseen", moe_source_path(s), t->name,
            (unsigned long long)(t->end - t->begin));
    if ((x = add(p, e)) == NULL)
        return MOE_ENOMEM;
    describe(x, t, n);
    x->src = i;
    x->len = t->end - t->begin;
    x->name = t->name;
    return 0;
}

/* One matrix of tensor i, from byte `at`. */
static int
quantise(struct moe_source *s, struct quant_plan *p, size_t i, uint64_t at, uint64_t rows,
    uint64_t cols, const struct moe_naming *n, const char *name, struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    size_t layer = n->layer < 0 ? 0 : (size_t)n->layer;
    struct quant_plan_item *x;

    if (n->layer >= QUANT_PLAN_MAX_LAYERS)
        return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: a layer over %d", moe_source_path(s),
            t->name, QUANT_PLAN_MAX_LAYERS);
    if ((x = add(p, e)) == NULL ||
        (x->name = moe_arena_text(&p->arena, name, strlen(name))) == NULL)
        return no_memory(e);
    describe(x, t, n);
    x->quantised = true;
    x->src = i;
    x->at = at;
    x->rows = rows;
    x->cols = cols;
    x->len = rows * cols * (moe_dtype_bits(t->dtype) / 8);
    if (p->layers <= layer)
        p->layers = layer + 1;
    return 0;
}

static int
single(struct moe_source *s, struct quant_plan *p, size_t i, const struct moe_naming *n,
    struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    int rc;

    if (t->rank != 2 || n->proj == MOE_PROJ_GATE_UP)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: %s", moe_source_path(s), t->name,
            t->rank != 2 ? "an expert's weight must have two dimensions" :
            "no program loads gate and up of one expert in one matrix");
    if ((rc = check_matrix(s, t, t->shape[0], t->shape[1], e)) != 0)
        return rc;
    return quantise(s, p, i, 0, t->shape[0], t->shape[1], n, n->module, e);
}

static int
check_stack(struct moe_source *s, const struct moe_tensor *t, const struct moe_naming *n,
    struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(s);
    const char *path = moe_source_path(s), *why = "the layout of its family is not known";
    bool transposed = n->transposed;

    for (size_t k = 0; c != NULL && k < sizeof(stacks) / sizeof(stacks[0]); k++) {
        if (strcmp(stacks[k].family, c->family) == 0)
            why = stacks[k].why;
    }
    if (why != NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: a stack of experts: %s", path, t->name,
            why);
    if (t->rank != 3 || t->shape[0] != (uint64_t)c->experts)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: a stack of experts must be [%lld, out,"
            " in]", path, t->name, (long long)c->experts);
    /* [E, 2I, H] or [E, H, 2I]; [E, H, I] or [E, I, H]: the shape tells, unless it is square. */
    if (t->shape[1] != t->shape[2]) {
        uint64_t in = (uint64_t)(n->proj == MOE_PROJ_DOWN ? c->expert_inter : c->hidden);

        transposed = t->shape[2] != in;
    }
    if (transposed)
        return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: a stack stored [in, out]: save it with"
            " transformers 5 first", path, t->name);
    if (n->proj == MOE_PROJ_GATE_UP && t->shape[1] % 2 != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: an odd number of rows for gate and up",
            path, t->name);
    return 0;
}

/* A stack [E, out, in], expert by expert; gate and up are halves of its rows. */
static int
stack(struct moe_source *s, struct quant_plan *p, size_t i, const struct moe_naming *n,
    struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    size_t head = strlen(n->module);
    bool pair = n->proj == MOE_PROJ_GATE_UP;
    uint64_t rows, cols, at = 0;
    int rc;

    if ((rc = check_stack(s, t, n, e)) != 0)
        return rc;
    rows = pair ? t->shape[1] / 2 : t->shape[1];
    cols = t->shape[2];
    if ((rc = check_matrix(s, t, rows, cols, e)) != 0)
        return rc;
    while (head > 0 && n->module[head - 1] != '.')
        head--;
    for (uint64_t x = 0; x < t->shape[0]; x++) {
        for (int half = 0; half < (pair ? 2 : 1); half++) {
            struct moe_naming one = *n;
            char name[320];

            one.expert = (int)x;
            one.proj = pair ? (half == 0 ? MOE_PROJ_GATE : MOE_PROJ_UP) : n->proj;
            (void)snprintf(name, sizeof(name), "%.*s%llu.%s_proj", (int)head, n->module,
                (unsigned long long)x, moe_naming_proj(one.proj));
            if ((rc = quantise(s, p, i, at, rows, cols, &one, name, e)) != 0)
                return rc;
            at += p->items[p->n - 1].len;
        }
    }
    return 0;
}

static int
decide(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(s);

    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        struct moe_naming n;
        int rc;

        (void)moe_naming_parse(c != NULL ? c->family : NULL, c != NULL ? c->layers : 0, t->name,
            &n);
        if ((rc = check_part(s, t, &n, e)) != 0)
            return rc;
        if (n.role != MOE_ROLE_EXPERT || n.part != MOE_PART_WEIGHT)
            rc = keep(s, p, i, &n, e);
        else
            rc = n.stacked ? stack(s, p, i, &n, e) : single(s, p, i, &n, e);
        if (rc != 0)
            return rc;
    }
    if (p->layers == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: no routed experts: nothing to quantise",
            moe_source_path(s));
    return 0;
}

/* ---- Groups ----------------------------------------------------------------- */

/* The largest group that divides, or the one asked for; 0 if there is none. */
static uint64_t
fit(uint64_t cols, uint64_t want, uint64_t most)
{
    if (want != 0)
        return cols % want == 0 ? want : 0;
    for (uint64_t g = most; g >= 32; g /= 2) {
        if (cols % g == 0)
            return g;
    }
    return 0;
}

/* One group size for all experts of a layer: loaders read the scheme from one of them. */
static int
choose_groups(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    if ((p->layer_group = calloc(p->layers, sizeof(*p->layer_group))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        uint64_t *g, fits;

        if (!x->quantised)
            continue;
        g = &p->layer_group[x->layer < 0 ? 0 : x->layer];
        fits = fit(x->cols, p->opt.group, *g != 0 ? *g : 128);
        if (fits == 0 && p->opt.group != 0 && fit(x->cols, 0, 128) != 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu columns are no multiple of the"
                " group of %llu; %llu would fit", moe_source_path(s),
                moe_source_at(s, x->src)->name, (unsigned long long)x->cols,
                (unsigned long long)p->opt.group, (unsigned long long)fit(x->cols, 0, 128));
        if (fits == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu columns are no multiple of any"
                " group (128, 64, 32)", moe_source_path(s), moe_source_at(s, x->src)->name,
                (unsigned long long)x->cols);
        *g = fits;
    }
    for (size_t i = 0; i < p->n; i++) {
        struct quant_plan_item *x = &p->items[i];

        if (!x->quantised)
            continue;
        x->group = p->layer_group[x->layer < 0 ? 0 : x->layer];
        if (x->group == 0 || x->len / x->group > QUANT_PLAN_MAX_SCALES)
            return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: scales of over %llu bytes",
                moe_source_path(s), moe_source_at(s, x->src)->name,
                (unsigned long long)QUANT_PLAN_MAX_SCALES);
    }
    return 0;
}

/* Every layer with experts has all of them, with three projections each. */
static int
check_complete(struct moe_source *s, const struct quant_plan *p, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(s);
    size_t *count;
    int rc = 0;

    if (c == NULL || c->experts == 0 || !moe_source_is_dir(s))
        return 0;
    if ((count = calloc(p->layers, sizeof(*count))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].quantised && p->items[i].layer >= 0)
            count[p->items[i].layer]++;
    }
    for (size_t l = 0; rc == 0 && l < p->layers; l++) {
        if (count[l] != 0 && count[l] != 3 * (size_t)c->experts)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: layer %zu: %zu matrices of experts, want %zu",
                moe_source_path(s), l, count[l], 3 * (size_t)c->experts);
    }
    free(count);
    return rc;
}

/* ---- Output ----------------------------------------------------------------- */

/* Tensor k of an item's three. */
static int
output(struct quant_plan *p, const struct quant_plan_item *x, const char *suffix,
    enum moe_dtype dtype, int rank, uint64_t d0, uint64_t d1, struct moe_err *e)
{
    uint64_t *shape = moe_arena_get(&p->arena, 2 * sizeof(*shape));
    size_t n = strlen(x->name), k = strlen(suffix);
    char *name = moe_arena_get(&p->arena, n + k + 1);

    if (shape == NULL || name == NULL)
        return no_memory(e);
    memcpy(name, x->name, n);
    memcpy(name + n, suffix, k + 1);
    shape[0] = d0;
    shape[1] = d1;
    p->out[p->n_out++] = (struct moe_tensor){ .name = name, .dtype = dtype, .rank = rank,
        .shape = shape };
    return 0;
}

static int
outputs(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    int rc;

    if ((p->out = calloc(3 * p->n + 1, sizeof(*p->out))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        struct quant_plan_item *x = &p->items[i];
        enum moe_dtype scale = x->dtype == MOE_F16 ? MOE_F16 : MOE_BF16;

        x->out = p->n_out;
        if (!x->quantised)
            p->out[p->n_out++] = *moe_source_at(s, x->src);
        else if ((rc = output(p, x, ".weight_packed", MOE_I32, 2, x->rows,
                x->cols * (uint64_t)p->opt.bits / 32, e)) != 0 ||
            (rc = output(p, x, ".weight_scale", scale, 2, x->rows, x->cols / x->group,
                e)) != 0 ||
            (rc = output(p, x, ".weight_shape", MOE_I64, 1, 2, 0, e)) != 0)
            return rc;
    }
    return 0;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
check_names(struct moe_source *s, const struct quant_plan *p, struct moe_err *e)
{
    const char **names = malloc(p->n_out * sizeof(*names));
    int rc = 0;

    if (names == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n_out; i++)
        names[i] = p->out[i].name;
    qsort(names, p->n_out, sizeof(*names), compare_names);
    for (size_t i = 1; rc == 0 && i < p->n_out; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: tensor %s would be written twice",
                moe_source_path(s), names[i]);
    }
    free(names);
    return rc;
}

int
quant_plan_make(struct moe_source *s, const char *dst, struct quant_plan_options opt,
    struct quant_plan *p, struct moe_err *e)
{
    int rc;

    *p = (struct quant_plan){ .opt = opt };
    if ((rc = check_source(s, e)) != 0 || (rc = decide(s, p, e)) != 0 ||
        (rc = choose_groups(s, p, e)) != 0 || (rc = check_complete(s, p, e)) != 0 ||
        (rc = outputs(s, p, e)) != 0 || (rc = check_names(s, p, e)) != 0 ||
        (rc = quant_config_make(s, p, &p->config, e)) != 0)
        return rc;
    if (quant_plan_is_dir(dst) && p->config.len == 0)
        return moe_err_set(e, MOE_ENOENT, "%s: no config.json, which a directory needs",
            moe_source_path(s));
    if (!quant_plan_is_dir(dst) && p->config.len > 0) {
        p->meta[0] = "moe.config";
        p->meta[1] = p->config.p;
    }
    p->sink = (struct moe_sink_plan){ .tensors = p->out, .n = p->n_out, .meta = p->meta,
        .shard_bytes = quant_plan_is_dir(dst) ? QUANT_PLAN_SHARD : 0, .align = 8 };
    return 0;
}

void
quant_plan_free(struct quant_plan *p)
{
    free(p->items);
    free(p->out);
    free(p->layer_group);
    moe_buf_fini(&p->config);
    moe_arena_fini(&p->arena);
}

uint64_t
quant_plan_bytes(const struct quant_plan *p, const struct quant_plan_item *t)
{
    if (!t->quantised)
        return t->len;
    return t->rows * t->cols * (uint64_t)p->opt.bits / 8 +
        t->rows * (t->cols / t->group) * 2 + 16;
}
