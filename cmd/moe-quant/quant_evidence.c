/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sums and their file; what is run is quant_calib.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_evidence.h"
#include "cmd/moe-quant/quant_reader.h"
#include "common/base/out.h"
#include "common/formats/ggufw.h"

#define NAMES 3

/* The inputs that are told apart, and the matrices that each goes into, in llama.cpp's words. */
static const struct kind { enum moe_weight weight; bool experts; const char *names[NAMES]; }
kinds[] = {
    { MOE_W_Q, false, { "attn_q", "attn_k", "attn_v" } },
    { MOE_W_O, false, { "attn_output" } },
    { MOE_W_GATE, false, { "ffn_gate", "ffn_up" } },
    { MOE_W_DOWN, false, { "ffn_down" } },
    { MOE_W_ROUTER, false, { "ffn_gate_inp" } },
    { MOE_W_EXPERT_GATE, true, { "ffn_gate_exps", "ffn_up_exps" } },
    { MOE_W_EXPERT_DOWN, true, { "ffn_down_exps" } },
    { MOE_W_SHARED_GATE, false, { "ffn_gate_shexp", "ffn_up_shexp" } },
    { MOE_W_SHARED_DOWN, false, { "ffn_down_shexp" } },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct sums {
    size_t cols, mats;          /* 0: nothing came in */
    double *sum;                /* [mats][cols] */
    double *count;              /* [mats] */
};

struct quant_evidence {
    size_t layers, experts;
    struct sums *sums;          /* [layers][KINDS] */
    bool full;                  /* out of memory: told when it is written */
};

int
quant_evidence_new(const struct moe_model *m, struct quant_evidence **out, struct moe_err *e)
{
    struct quant_evidence *v = calloc(1, sizeof(*v));

    *out = v;
    if (v != NULL) {
        v->layers = m->hp.n_layers;
        v->experts = m->hp.experts;
        v->sums = calloc(v->layers * KINDS + 1, sizeof(*v->sums));
    }
    return v != NULL && v->sums != NULL ? 0 :
        moe_err_set(e, MOE_ENOMEM, "importance matrix: out of memory");
}

void
quant_evidence_free(struct quant_evidence *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; v->sums != NULL && i < v->layers * KINDS; i++) {
        free(v->sums[i].sum);
        free(v->sums[i].count);
    }
    free(v->sums);
    free(v);
}

static bool
sums_new(struct sums *s, size_t mats, size_t cols)
{
    s->sum = calloc(mats * cols + 1, sizeof(*s->sum));
    s->count = calloc(mats + 1, sizeof(*s->count));
    if (s->sum == NULL || s->count == NULL)
        return false;
    s->cols = cols;
    s->mats = mats;
    return true;
}

void
quant_evidence_add(struct quant_evidence *v, const struct moe_observed *o)
{
    size_t k = 0, at;
    struct sums *s;

    while (k < KINDS && kinds[k].weight != o->weight)
        k++;
    if (k == KINDS || o->layer >= v->layers || v->full)
        return;
    s = &v->sums[o->layer * KINDS + k];
    at = kinds[k].experts ? o->expert : 0;
    if (s->cols == 0 && !sums_new(s, kinds[k].experts ? v->experts : 1, o->cols))
        v->full = true;
    if (v->full || at >= s->mats || o->cols != s->cols)
        return;
    s->count[at] += (double)o->n;
    for (size_t r = 0; r < o->n; r++) {
        const float *x = o->x + r * o->ld;

        for (size_t i = 0; i < s->cols; i++)
            s->sum[at * s->cols + i] += (double)x[i] * (double)x[i];
    }
}

/* ---- The file ------------------------------------------------------------------------- */

/* Calls fn for each pair of tensors, in one order. */
typedef int each_fn(void *ctx, const char *name, const struct sums *s, struct moe_err *e);

static int
each(const struct quant_evidence *v, each_fn *fn, void *ctx, struct moe_err *e)
{
    int rc = 0;

    for (size_t l = 0; l < v->layers; l++) {
        for (size_t k = 0; k < KINDS; k++) {
            const struct sums *s = &v->sums[l * KINDS + k];

            for (size_t i = 0; rc == 0 && s->cols > 0 && i < NAMES && kinds[k].names[i] != NULL;
                i++) {
                char name[64];

                (void)snprintf(name, sizeof(name), "blk.%zu.%s.weight", l, kinds[k].names[i]);
                rc = fn(ctx, name, s, e);
            }
        }
    }
    return rc;
}

static int
declare(void *ctx, const char *name, const struct sums *s, struct moe_err *e)
{
    uint64_t sums[2] = { s->cols, s->mats }, counts[2] = { 1, s->mats };
    char full[96];

    (void)e;
    (void)snprintf(full, sizeof(full), "%s.in_sum2", name);
    moe_ggufw_tensor(ctx, full, MOE_GGML_F32, 2, sums);
    (void)snprintf(full, sizeof(full), "%s.counts", name);
    moe_ggufw_tensor(ctx, full, MOE_GGML_F32, 2, counts);
    return 0;
}

/* n numbers as floats, and zeros up to the next tensor. */
static int
put(struct moe_out *o, const double *x, size_t n, struct moe_err *e)
{
    size_t padded = (n * 4 + MOE_GGUF_ALIGN - 1) / MOE_GGUF_ALIGN * MOE_GGUF_ALIGN;
    float *f = calloc(padded / 4 + 1, sizeof(*f));
    int rc;

    if (f == NULL)
        return moe_err_set(e, MOE_ENOMEM, "importance matrix: out of memory");
    for (size_t i = 0; i < n; i++)
        f[i] = (float)x[i];
    rc = moe_out_write(o, f, padded, e);
    free(f);
    return rc;
}

static int
write_sums(void *ctx, const char *name, const struct sums *s, struct moe_err *e)
{
    int rc = put(ctx, s->sum, s->mats * s->cols, e);

    (void)name;
    return rc == 0 ? put(ctx, s->count, s->mats, e) : rc;
}

int
quant_evidence_write(const struct quant_evidence *v, const char *text, size_t tokens,
    const char *path, bool force, struct moe_err *e)
{
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_buf head = MOE_BUF_INIT, raw = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    int rc = w == NULL || v->full ?
        moe_err_set(e, MOE_ENOMEM, "importance matrix: out of memory") : 0;

    if (rc != 0)
        goto out;
    moe_ggufw_str(w, "general.type", "imatrix", 7);
    moe_ggufw_raw_str(&raw, text, strlen(text));
    moe_ggufw_array(w, "imatrix.datasets", MOE_GGUF_STRING, 1, raw.p, raw.len);
    moe_ggufw_int(w, "imatrix.chunk_count", MOE_GGUF_U32,
        (int64_t)((tokens + QUANT_READER_CONTEXT - 1) / QUANT_READER_CONTEXT));
    moe_ggufw_int(w, "imatrix.chunk_size", MOE_GGUF_U32, QUANT_READER_CONTEXT);
    if ((rc = each(v, declare, w, e)) != 0 || (rc = moe_ggufw_emit(w, &head, e)) != 0 ||
        (rc = moe_out_open(path, force, head.len + moe_ggufw_data(w), &o, e)) != 0 ||
        (rc = moe_out_write(o, head.p, head.len, e)) != 0 ||
        (rc = each(v, write_sums, o, e)) != 0)
        goto out;
    rc = moe_out_commit(o, e);
    o = NULL;
out:
    moe_out_abort(o);
    moe_ggufw_free(w);
    moe_buf_fini(&head);
    moe_buf_fini(&raw);
    return rc;
}
