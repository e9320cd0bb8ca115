/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what becomes of each tensor of the source: which matrices it holds,
 * which scheme the policy gives them, and what is refused by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_config.h"
#include "cmd/moe-quant/quant_layout.h"
#include "cmd/moe-quant/quant_plan.h"
#include "common/base/num.h"

/*
 * Names of experts that come out of a stack, by family: the folder of the layer
 * they lie in, and those of gate, up, down. No released loader takes the experts
 * of the `odd` ones one by one.
 */
static const struct { const char *family, *folder, *proj[3]; bool odd; } stacks[] = {
    { "mixtral", "block_sparse_moe", { "w1", "w3", "w2" }, false },
    { "phimoe", "block_sparse_moe", { "w1", "w3", "w2" }, false },
    { "granitemoe", "block_sparse_moe", { "gate_proj", "up_proj", "down_proj" }, true },
    { "granitemoeshared", "block_sparse_moe", { "gate_proj", "up_proj", "down_proj" }, true },
    { "gpt_oss", NULL, { "gate_proj", "up_proj", "down_proj" }, true },
    { "gemma4", NULL, { "gate_proj", "up_proj", "down_proj" }, true },
    { "gemma4_text", NULL, { "gate_proj", "up_proj", "down_proj" }, true },
    { NULL, NULL, { "gate_proj", "up_proj", "down_proj" }, false },
};

struct job { struct moe_source *s; struct quant_plan *p; struct moe_err *e; };

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
refuse(const struct job *j, int code, size_t i, const char *why)
{
    return moe_err_set(j->e, code, "%s: tensor %s: %s", moe_source_path(j->s),
        moe_source_at(j->s, i)->name, why);
}

bool
quant_plan_is_dir(const char *dst)
{
    size_t n = strlen(dst);

    return strcmp(dst, "-") != 0 && (n < 12 || strcmp(dst + n - 12, ".safetensors") != 0);
}

bool
quant_plan_quantised(const struct quant_plan_item *t)
{
    return t->scheme.codec != NULL && t->scheme.codec->grid != QUANT_GRID_PLAIN;
}

uint64_t
quant_plan_bytes(const struct quant_plan_item *t)
{
    return t->scheme.codec == NULL ? t->len : quant_scheme_bytes(&t->scheme, t->rows, t->cols);
}

size_t
quant_plan_count(const struct quant_plan *p, const struct moe_source *s, enum quant_plan_use use)
{
    size_t n = 0;

    for (size_t i = 0; i < moe_source_n(s); i++)
        n += p->used[i] == use;
    return n;
}

/* ---- Items -------------------------------------------------------------------- */

static struct quant_plan_item *
add(const struct job *j, size_t i, const struct moe_naming *n)
{
    struct quant_plan *p = j->p;
    struct quant_plan_item *x;

    if (p->n == p->cap) {
        size_t cap = p->cap == 0 ? 1024 : 2 * p->cap;

        if ((x = realloc(p->items, cap * sizeof(*x))) == NULL) {
            no_memory(j->e);
            return NULL;
        }
        p->items = x;
        p->cap = cap;
    }
    x = &p->items[p->n++];
    *x = (struct quant_plan_item){ .src = i, .dtype = moe_source_at(j->s, i)->dtype,
        .role = n->role, .proj = n->proj, .layer = n->layer, .expert = n->expert };
    return x;
}

static int
copy(const struct job *j, size_t i, const struct moe_naming *n)
{
    const struct moe_tensor *t = moe_source_at(j->s, i);
    struct quant_plan_item *x;

    if (n->role == MOE_ROLE_UNKNOWN && t->rank >= 2 && t->end - t->begin >= QUANT_PLAN_BIG &&
        !quant_policy_named(j->p->policy, n->module, n->role))
        return moe_err_set(j->e, MOE_EUNSUP, "%s: tensor %s: nothing is known of this name, and"
            " %llu bytes are not copied unseen; a rule of --policy can name it",
            moe_source_path(j->s), t->name, (unsigned long long)(t->end - t->begin));
    if ((x = add(j, i, n)) == NULL)
        return MOE_ENOMEM;
    x->len = t->end - t->begin;
    x->name = t->name;
    j->p->used[i] = QUANT_USE_COPIED;
    return 0;
}

static void
mark(void *ctx, size_t tensor)
{
    struct quant_plan *p = ctx;

    p->used[tensor] = QUANT_USE_WRITTEN;
}

static bool
is_plain(const struct moe_tensor *t)
{
    return t->dtype == MOE_BF16 || t->dtype == MOE_F16 || t->dtype == MOE_F32;
}

/* The stored matrix of a module (of one expert of it) that tensor i holds the codes of. */
static int
locate(const struct job *j, size_t i, const struct moe_naming *n, int64_t expert,
    struct quant_input *in)
{
    const struct moe_tensor *t = moe_source_at(j->s, i);
    int d = expert < 0 ? 0 : 1;

    if (!is_plain(t))
        return quant_input_find(j->s, j->p->scheme, n->module, expert, in, mark, j->p, j->e);
    *in = (struct quant_input){ .step = 1, .m = { .enc = MOE_ENC_PLAIN, .dtype = t->dtype,
        .rows = t->shape[d], .cols = t->shape[d + 1] } };
    in->rows = in->m.rows;
    in->cols = in->m.cols;
    in->data.src = i;
    in->data.len = expert < 0 ? t->end - t->begin : (t->end - t->begin) / t->shape[0];
    in->data.at = expert < 0 ? 0 : (uint64_t)expert * in->data.len;
    in->scale.src = in->zero.src = in->g_idx.src = SIZE_MAX;
    mark(j->p, i);
    return 0;
}

/* One matrix to write anew. */
static int
write_matrix(const struct job *j, size_t i, const struct moe_naming *n, const char *name,
    const struct quant_input *in, const struct quant_scheme *scheme)
{
    struct quant_plan_item *x;
    uint64_t bits = moe_dtype_bits(moe_source_at(j->s, i)->dtype);
    int rc;

    if (n->layer >= QUANT_PLAN_MAX_LAYERS)
        return refuse(j, MOE_ELIMIT, i, "too high a layer");
    if (in->rows == 0 || in->cols == 0)
        return refuse(j, MOE_EFORMAT, i, "an empty matrix");
    if (moe_source_is_stream(j->s) && !quant_input_direct(in))
        return refuse(j, MOE_EUNSUP, i, "its parts cannot be had from a stream in the order that"
            " is needed: give a file");
    if ((x = add(j, i, n)) == NULL)
        return MOE_ENOMEM;
    if ((x->name = moe_arena_text(&j->p->arena, name, strlen(name))) == NULL)
        return no_memory(j->e);
    x->scheme = *scheme;
    x->in = *in;
    x->rows = in->rows;
    x->cols = in->cols;
    x->len = in->m.enc == MOE_ENC_PLAIN ? in->rows * in->cols * bits / 8 :
        in->data.len / (in->m.rows / in->rows);
    x->lora = j->p->lora != NULL ? quant_lora_find(j->p->lora, name) : 0;
    if (x->lora != 0 && (rc = quant_lora_fits(j->p->lora, x->lora, x->rows, x->cols, j->e)) != 0)
        return rc;
    if (scheme->codec->scale == QUANT_SCALE_FLOAT)
        x->scheme.scale = x->dtype == MOE_F16 ? MOE_F16 : MOE_BF16;
    return 0;
}

/* What is kept is copied if it is plain and nothing is added to it, and else decoded. */
static int
scheme_of(const struct job *j, const char *module, const struct moe_naming *n,
    const struct moe_tensor *t, struct quant_scheme *out)
{
    int rc = quant_policy_find(j->p->policy, module, n->role, out, j->e);

    if (rc != 0 || out->codec != NULL)
        return rc;
    if (!is_plain(t))
        *out = (struct quant_scheme){ .codec = quant_scheme_find("bf16") };
    else if (j->p->lora != NULL && quant_lora_find(j->p->lora, module) != 0)
        *out = (struct quant_scheme){ .codec = quant_scheme_find(t->dtype == MOE_F32 ? "f32" :
            t->dtype == MOE_F16 ? "f16" : "bf16") };
    return 0;
}

static int
single(const struct job *j, size_t i, const struct moe_naming *n)
{
    const struct moe_tensor *t = moe_source_at(j->s, i);
    struct quant_scheme scheme;
    struct quant_input in;
    int rc;

    if (t->rank != 2 && n->role == MOE_ROLE_EXPERT)
        return refuse(j, MOE_EUNSUP, i, "an expert's weight must have two dimensions");
    if (is_plain(t) && t->rank != 2)
        return copy(j, i, n);
    if ((rc = scheme_of(j, n->module, n, t, &scheme)) != 0)
        return rc;
    if (scheme.codec == NULL)
        return copy(j, i, n);
    if (n->proj == MOE_PROJ_GATE_UP && n->role == MOE_ROLE_EXPERT)
        return refuse(j, MOE_EUNSUP, i, "no program loads gate and up of one expert in one matrix");
    if ((rc = locate(j, i, n, -1, &in)) != 0)
        return rc;
    return write_matrix(j, i, n, n->module, &in, &scheme);
}

/* ---- Stacks ------------------------------------------------------------------- */

/* Name of one matrix out of a stack. */
static void
member_name(const struct job *j, const struct moe_naming *n, uint64_t expert, char *name,
    size_t size)
{
    const struct moe_config *c = moe_source_config(j->s);
    const char *folder, *end, *found;
    size_t k = 0, head;
    int proj = n->proj == MOE_PROJ_GATE ? 0 : n->proj == MOE_PROJ_UP ? 1 : 2;

    while (stacks[k].family != NULL && (c == NULL || strcmp(stacks[k].family, c->family) != 0))
        k++;
    j->p->odd_names = j->p->odd_names || stacks[k].odd;
    folder = stacks[k].folder;
    end = strrchr(n->module, '.');
    head = end != NULL ? (size_t)(end - n->module) : 0;
    if (head >= 8 && strncmp(n->module + head - 8, ".experts", 8) == 0)
        head -= 8;
    found = head >= 4 && folder != NULL && strncmp(n->module + head - 4, ".mlp", 4) == 0 ?
        folder : NULL;
    if (found != NULL)
        head -= 3;
    (void)snprintf(name, size, "%.*s%s%sexperts.%llu.%s", (int)head, n->module,
        found != NULL ? found : "", head + (found != NULL) > 0 ? "." : "",
        (unsigned long long)expert, stacks[k].proj[proj]);
}

static int
check_stack(const struct job *j, size_t i, const struct moe_naming *n, bool *transposed)
{
    const struct moe_config *c = moe_source_config(j->s);
    const struct moe_tensor *t = moe_source_at(j->s, i);

    if (n->ambiguous || c == NULL || c->experts == 0)
        return refuse(j, MOE_EUNSUP, i, "a stack of experts: the layout of its family is not"
            " known");
    if (t->rank < 3 || t->shape[0] != (uint64_t)c->experts ||
        (is_plain(t) && t->rank != 3))
        return moe_err_set(j->e, MOE_EFORMAT, "%s: tensor %s: a stack of experts must be [%lld,"
            " out, in]", moe_source_path(j->s), t->name, (long long)c->experts);
    *transposed = n->transposed && is_plain(t);
    /* [E, 2I, H] or [E, H, 2I]; [E, H, I] or [E, I, H]: the shape tells, unless it is square. */
    if (is_plain(t) && t->shape[1] != t->shape[2]) {
        uint64_t in = (uint64_t)(n->proj == MOE_PROJ_DOWN ? c->expert_inter : c->hidden);

        *transposed = t->shape[2] != in;
    }
    return 0;
}

/* The one or two matrices of one expert. */
static int
member(const struct job *j, size_t i, const struct moe_naming *n, uint64_t expert,
    bool transposed, bool *kept)
{
    bool pair = n->proj == MOE_PROJ_GATE_UP;
    struct quant_scheme scheme;
    struct quant_input in;
    int rc;

    for (int half = 0; half < (pair ? 2 : 1); half++) {
        struct moe_naming one = *n;
        char name[320];
        uint64_t rows;

        one.expert = (int)expert;
        one.proj = pair ? (half == 0 ? MOE_PROJ_GATE : MOE_PROJ_UP) : n->proj;
        member_name(j, &one, expert, name, sizeof(name));
        if ((rc = scheme_of(j, name, &one, moe_source_at(j->s, i), &scheme)) != 0)
            return rc;
        if (expert == 0 && half == 0)
            *kept = scheme.codec == NULL;
        if (*kept != (scheme.codec == NULL))
            return moe_err_set(j->e, MOE_EUNSUP, "%s: tensor %s: the policy keeps some of its"
                " matrices and not others (%s)", moe_source_path(j->s),
                moe_source_at(j->s, i)->name, name);
        if (*kept)
            continue;
        if ((rc = locate(j, i, n, (int64_t)expert, &in)) != 0)
            return rc;
        rows = transposed ? in.m.cols : in.m.rows;
        if (pair && rows % 2 != 0)
            return refuse(j, MOE_EFORMAT, i, "an odd number of rows for gate and up");
        if (!pair)
            quant_input_view(&in, transposed, 0, 1, rows);
        else if (n->interleaved)
            quant_input_view(&in, transposed, (uint64_t)half, 2, rows / 2);
        else
            quant_input_view(&in, transposed, (uint64_t)half * (rows / 2), 1, rows / 2);
        if ((rc = write_matrix(j, i, &one, name, &in, &scheme)) != 0)
            return rc;
    }
    return 0;
}

static int
stack(const struct job *j, size_t i, const struct moe_naming *n)
{
    bool transposed = false, kept = false;
    int rc = check_stack(j, i, n, &transposed);

    for (uint64_t x = 0; rc == 0 && x < moe_source_at(j->s, i)->shape[0]; x++)
        rc = member(j, i, n, x, transposed, &kept);
    return rc == 0 && kept ? copy(j, i, n) : rc;
}

/* ---- The whole ---------------------------------------------------------------- */

/* Parts that belong to codes: their matrix's tensor brings them in. */
static bool
follows(const struct moe_naming *n)
{
    return n->part == MOE_PART_SCALE || n->part == MOE_PART_ZERO || n->part == MOE_PART_SHAPE ||
        n->part == MOE_PART_G_IDX || n->part == MOE_PART_GLOBAL;
}

static bool
is_matrix(const struct moe_tensor *t, const struct moe_naming *n)
{
    if (n->part != MOE_PART_WEIGHT && n->part != MOE_PART_PACKED)
        return false;
    return t->rank >= 2 && (is_plain(t) || moe_dtype_bits(t->dtype) <= 8 || t->dtype == MOE_I32);
}

static int
decide(const struct job *j)
{
    const struct moe_config *c = moe_source_config(j->s);
    struct moe_naming n;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < moe_source_n(j->s); i++) {
        const struct moe_tensor *t = moe_source_at(j->s, i);

        (void)moe_naming_parse(c != NULL ? c->family : NULL, c != NULL ? c->layers : 0, t->name,
            &n);
        if (follows(&n))
            continue;
        if (n.part == MOE_PART_INPUT_SCALE)
            j->p->used[i] = QUANT_USE_DROPPED;
        else if (!is_matrix(t, &n))
            rc = copy(j, i, &n);
        else
            rc = n.stacked ? stack(j, i, &n) : single(j, i, &n);
    }
    for (size_t i = 0; rc == 0 && i < moe_source_n(j->s); i++) {
        if (j->p->used[i] == QUANT_USE_NONE)
            rc = refuse(j, MOE_EFORMAT, i, "a part of a quantised matrix whose codes are not"
                " there");
    }
    return rc;
}

/* Every layer with routed experts has all of them, with three projections each. */
static int
check_complete(const struct job *j)
{
    const struct moe_config *c = moe_source_config(j->s);
    size_t layers = 0, *count;
    int rc = 0;

    for (size_t i = 0; i < j->p->n; i++) {
        const struct quant_plan_item *x = &j->p->items[i];

        if (x->role == MOE_ROLE_EXPERT && quant_plan_quantised(x) &&
            (size_t)x->layer + 1 > layers)
            layers = (size_t)x->layer + 1;
    }
    if (c == NULL || c->experts == 0 || !moe_source_is_dir(j->s) || layers == 0)
        return 0;
    if ((count = calloc(layers, sizeof(*count))) == NULL)
        return no_memory(j->e);
    for (size_t i = 0; i < j->p->n; i++) {
        const struct quant_plan_item *x = &j->p->items[i];

        if (x->role == MOE_ROLE_EXPERT && quant_plan_quantised(x) && x->layer >= 0)
            count[x->layer]++;
    }
    for (size_t l = 0; rc == 0 && l < layers; l++) {
        if (count[l] != 0 && count[l] != 3 * (size_t)c->experts)
            rc = moe_err_set(j->e, MOE_EFORMAT, "%s: layer %zu: %zu matrices of experts, want"
                " %zu", moe_source_path(j->s), l, count[l], 3 * (size_t)c->experts);
    }
    free(count);
    return rc;
}

static int
check_something(const struct job *j)
{
    for (size_t i = 0; i < j->p->n; i++) {
        if (quant_plan_quantised(&j->p->items[i]))
            return 0;
    }
    if (j->p->opt.plain || j->p->lora != NULL)
        return 0;
    return moe_err_set(j->e, MOE_EFORMAT, "%s: no routed experts, and no rule for others: nothing"
        " to quantise", moe_source_path(j->s));
}

/* Find the weights of the errors of what is searched; it is an error if there are none at all. */
static int
weigh(const struct job *j)
{
    size_t found = 0;
    int rc = 0;

    for (size_t i = 0; j->p->imatrix != NULL && rc == 0 && i < j->p->n; i++) {
        struct quant_plan_item *x = &j->p->items[i];

        if (!quant_plan_quantised(x) || x->redeal || x->scheme.search == QUANT_SEARCH_RTN)
            continue;
        rc = quant_imatrix_find(j->p->imatrix, x->role, x->proj, x->layer, x->expert, x->cols,
            &x->weights, &x->found, j->e);
        found += x->found != QUANT_IMATRIX_NONE;
    }
    if (rc == 0 && j->p->imatrix != NULL && found == 0)
        rc = moe_err_set(j->e, MOE_EFORMAT, "%s: importance matrix: it has nothing for what is"
            " quantised", j->p->opt.imatrix_file);
    return rc;
}

static int
prepare(const struct job *j)
{
    const struct moe_config *c = moe_source_config(j->s);
    int rc;

    if (moe_source_gguf(j->s) != NULL)
        return moe_err_set(j->e, MOE_EUNSUP, "%s: a GGUF file: only safetensors are quantised",
            moe_source_path(j->s));
    if (moe_source_is_stream(j->s) && c != NULL && c->quant != NULL && !j->p->opt.plain)
        return moe_err_set(j->e, MOE_EUNSUP, "%s: quantization_config: a stream that is quantised"
            " already: its scales may come after its codes; give a file", c->name);
    if ((j->p->used = calloc(moe_source_n(j->s) + 1, 1)) == NULL)
        return no_memory(j->e);
    if ((rc = moe_qscheme_new(c != NULL ? c->quant : NULL, c != NULL ? c->name : "", &j->p->scheme,
        j->e)) != 0)
        return rc;
    if (j->p->opt.imatrix_file != NULL && (rc = quant_imatrix_open(j->p->opt.imatrix_file,
        &j->p->imatrix, j->e)) != 0)
        return rc;
    if (j->p->opt.lora_dir != NULL && (rc = quant_lora_open(j->p->opt.lora_dir, &j->p->lora,
        j->e)) != 0)
        return rc;
    return quant_policy_open(j->p->opt.policy_file, &j->p->opt.policy, &j->p->policy, j->e);
}

int
quant_plan_make(struct moe_source *s, const char *dst, const struct quant_plan_options *opt,
    struct quant_plan *p, struct moe_err *e)
{
    const struct job j = { s, p, e };
    int rc;

    *p = (struct quant_plan){ .opt = *opt };
    if ((rc = prepare(&j)) != 0 || (rc = decide(&j)) != 0 ||
        (rc = quant_policy_check(p->policy, e)) != 0 ||
        (p->lora != NULL && (rc = quant_lora_check(p->lora, e)) != 0) ||
        (rc = check_something(&j)) != 0 ||
        (rc = quant_layout_agree(s, p, e)) != 0 || (rc = check_complete(&j)) != 0 ||
        (rc = weigh(&j)) != 0 ||
        (rc = quant_layout_outputs(s, p, e)) != 0 ||
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
    free(p->used);
    free(p->ranges);
    quant_imatrix_close(p->imatrix);
    quant_lora_close(p->lora);
    quant_policy_free(p->policy);
    moe_qscheme_free(p->scheme);
    moe_buf_fini(&p->config);
    moe_arena_fini(&p->arena);
}
