/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the walk over a model's tensors: from a name to its matrix, from the
 * matrix to its cut. Rules are cutrule.c's, arithmetic is cut.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/cutplan.h"
#include "common/formats/cutrule.h"
#include "common/formats/qparts.h"

struct job {
    const struct moe_cutplan_in *in;
    struct moe_cutplan *p;
    struct moe_qscheme *scheme;
    struct moe_cutrule rule;
    const char *family;
    int64_t layers;
    bool tied;
    struct moe_err *e;
};

static int
by_name(const void *a, const void *b, void *ctx)
{
    const struct moe_cutplan_item *x = ctx;

    return strcmp(x[*(const size_t *)a].t->name, x[*(const size_t *)b].t->name);
}

size_t
moe_cutplan_find(const struct moe_cutplan *p, const char *name)
{
    size_t lo = 0, hi = p->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, i = p->by_name[mid];
        int c = strcmp(name, p->items[i].t->name);

        if (c == 0)
            return i;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return SIZE_MAX;
}

/* ---- One matrix ------------------------------------------------------------------- */

/* The tensor that has the values of item's matrix; itself if it is none's. */
static const struct moe_cutplan_item *
values_of(const struct job *j, const struct moe_cutplan_item *x)
{
    static const char *const suffixes[] = {
        ".weight_packed", ".qweight", ".weight", "_blocks", ""
    };

    for (size_t k = 0; k < sizeof(suffixes) / sizeof(suffixes[0]); k++) {
        char name[MOE_QPARTS_NAME];
        int n = snprintf(name, sizeof(name), "%s%s", x->naming.module, suffixes[k]);
        size_t i = n < 0 || n >= (int)sizeof(name) ? SIZE_MAX : moe_cutplan_find(j->p, name);

        if (i != SIZE_MAX)
            return &j->p->items[i];
    }
    return x;
}

static bool
is_wide(enum moe_dtype t)
{
    return t == MOE_F16 || t == MOE_BF16 || t == MOE_F32 || t == MOE_F64;
}

/* How a matrix is encoded: the tensor of its values decides, the configuration tells the rest. */
static int
encoding(const struct job *j, const struct moe_cutplan_item *v, struct moe_qrule *q)
{
    const struct moe_gguf_tensor *g;

    *q = (struct moe_qrule){ .enc = MOE_ENC_PLAIN };
    if (j->in->gguf != NULL) {
        g = moe_gguf_find(j->in->gguf, v->t->name);
        if (g != NULL && v->t->dtype == MOE_U8) {
            q->enc = MOE_ENC_GGML;
            (void)moe_ggml_block(g->type, &q->group, &q->block_rows);
        }
        return 0;
    }
    if (v->naming.part == MOE_PART_WEIGHT && is_wide(v->t->dtype))
        return 0;
    return moe_qscheme_rule(j->scheme, v->naming.module, q, j->e);
}

/* Whether the rows of x's matrix are in no order of groups. */
static int
act_order(const struct job *j, const struct moe_cutplan_item *x, const struct moe_qrule *q,
    const struct moe_cut_axis *a, bool *yes)
{
    static const char *const suffixes[] = { ".g_idx", ".weight_g_idx" };

    *yes = false;
    for (size_t k = 0; a->dir == MOE_CUT_IN && j->in->act_order != NULL && k < 2; k++) {
        char name[MOE_QPARTS_NAME];
        int n = snprintf(name, sizeof(name), "%s%s", x->naming.module, suffixes[k]);
        size_t i = n < 0 || n >= (int)sizeof(name) ? SIZE_MAX : moe_cutplan_find(j->p, name);

        if (i != SIZE_MAX)
            return j->in->act_order(j->in->ctx, i, q->group, yes, j->e);
    }
    return 0;
}

static int
cut_item(const struct job *j, struct moe_cutplan_item *x)
{
    const struct moe_cutplan_item *v = values_of(j, x);
    const struct moe_grid *g = j->in->grid;
    struct moe_cut_axis axis;
    struct moe_qrule q;
    struct moe_cut cut;
    uint64_t rows = 1, cols = 1;
    bool unordered;
    int rc;

    if ((rc = encoding(j, v, &q)) != 0)
        return rc;
    /* A matrix whose values are missing, or a scalar, has no size; the rule then sees 1 x 1. */
    if (v->t->rank > (v->naming.stacked ? 1 : 0) &&
        (v->naming.part == MOE_PART_WEIGHT || v->naming.part == MOE_PART_PACKED) &&
        (rc = moe_cut_size(&q, &v->naming, v->t, &rows, &cols, j->e)) != 0)
        return rc;
    if (g->tp == 1)
        axis = (struct moe_cut_axis){ .dir = MOE_CUT_NONE };
    else if ((rc = moe_cutrule_axis(&j->rule, &v->naming, rows, cols, g->tp, &axis, j->e)) != 0)
        return rc;
    axis.spread = j->in->spread;
    if ((rc = act_order(j, x, &q, &axis, &unordered)) != 0 ||
        (rc = moe_cut_make(&axis, g->tp, &q, &x->naming, x->t, unordered, &cut, j->e)) != 0)
        return rc;
    return moe_scatter_init(&x->scatter, &cut, g, &x->naming, x->t, j->e);
}

/* ---- Stages -------------------------------------------------------------------------- */

/* Embedding first, final norm and head last, a tied embedding on both; towers first. */
static void
stage_item(const struct job *j, struct moe_cutplan_item *x, bool has_head)
{
    if (x->naming.layer >= 0 && x->naming.role != MOE_ROLE_OTHER_TOWER)
        return;
    switch (x->naming.role) {
    case MOE_ROLE_EMBED:
        x->first_stage = true;
        x->last_stage = j->tied || !has_head;
        break;
    case MOE_ROLE_HEAD: case MOE_ROLE_NORM: case MOE_ROLE_MTP: x->last_stage = true; break;
    case MOE_ROLE_OTHER_TOWER: x->first_stage = true; break;
    default: x->every_stage = true;
    }
}

bool
moe_cutplan_on_stage(const struct moe_cutplan *p, size_t i, uint32_t pp)
{
    const struct moe_cutplan_item *x = &p->items[i];

    if (x->first_stage || x->last_stage || x->every_stage)
        return x->every_stage || (x->first_stage && pp == 0) ||
            (x->last_stage && pp == p->grid->pp - 1);
    return moe_grid_stage(p->grid, (uint64_t)x->naming.layer) == pp;
}

bool
moe_cutplan_part(const struct moe_cutplan *p, size_t i, uint32_t pp, uint32_t ep, uint32_t tp,
    uint64_t shape[MOE_SAFET_MAX_RANK], uint64_t *bytes)
{
    const struct moe_cutplan_item *x = &p->items[i];

    return moe_cutplan_on_stage(p, i, pp) &&
        moe_scatter_part(&x->scatter, ep, tp, x->t, shape, bytes);
}

/* ---- All of them ------------------------------------------------------------------------ */

static int
setup(struct job *j)
{
    const struct moe_config *c = j->in->config;

    if (c == NULL) {
        if (j->in->grid->tp > 1 || j->in->grid->pp > 1)
            return moe_err_set(j->e, MOE_EUNSUP, "%s: without a config.json heads and layers are"
                " not known; only experts can be dealt out", j->in->name);
        return moe_qscheme_new(NULL, j->in->name, &j->scheme, j->e);
    }
    j->family = c->family;
    j->layers = c->layers;
    j->tied = c->tied;
    j->rule = (struct moe_cutrule){ (uint64_t)c->heads, (uint64_t)c->kv_heads };
    return moe_qscheme_new(c->quant, c->name, &j->scheme, j->e);
}

int
moe_cutplan_make(const struct moe_cutplan_in *in, struct moe_cutplan *out, struct moe_err *e)
{
    struct job j = { .in = in, .p = out, .e = e };
    bool has_head = false;
    int rc;

    *out = (struct moe_cutplan){ .n = in->n, .grid = in->grid };
    if ((rc = moe_grid_check(in->grid, e)) != 0)
        return rc;
    out->items = calloc(in->n + 1, sizeof(*out->items));
    out->by_name = calloc(in->n + 1, sizeof(*out->by_name));
    if (out->items == NULL || out->by_name == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", in->name);
        goto out;
    }
    if ((rc = setup(&j)) != 0)
        goto out;
    for (size_t i = 0; i < in->n; i++) {
        struct moe_cutplan_item *x = &out->items[i];

        x->t = in->t[i];
        out->by_name[i] = i;
        (void)moe_naming_parse(j.family, j.layers, x->t->name, &x->naming);
        if (x->naming.ambiguous && in->grid->tp > 1) {
            rc = moe_err_set(e, MOE_EUNSUP, "%s: %s: how its family lays out experts is not known",
                in->name, x->t->name);
            goto out;
        }
        has_head = has_head || x->naming.role == MOE_ROLE_HEAD;
    }
    qsort_r(out->by_name, in->n, sizeof(*out->by_name), by_name, out->items);
    for (size_t i = 0; i < in->n && rc == 0; i++) {
        stage_item(&j, &out->items[i], has_head);
        if ((rc = cut_item(&j, &out->items[i])) != 0)
            moe_err_at(e, "%s", in->name);
    }
out:
    moe_qscheme_free(j.scheme);
    if (rc != 0)
        moe_cutplan_free(out);
    return rc;
}

void
moe_cutplan_free(struct moe_cutplan *p)
{
    free(p->items);
    free(p->by_name);
    *p = (struct moe_cutplan){ .n = 0 };
}
