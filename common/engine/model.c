/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the opening of a model: the weights that its numbers (hparams.c) and its
 * family's plan ask for. How a weight gets to the device is in weights.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/stop.h"
#include "common/engine/bank.h"
#include "common/engine/ggufplan.h"
#include "common/engine/hparams.h"
#include "common/engine/model.h"
#include "common/engine/records.h"
#include "common/engine/weights.h"
#include "common/formats/ggufconfig.h"

#define MAX_SIZE ((int64_t)1 << 24)     /* of any one dimension */

static int
load_norm(struct moe_model *m, enum moe_weight w, size_t l, struct moe_view *weight,
    struct moe_view *bias, struct moe_err *e)
{
    struct moe_weights_at at = { m, w, l, 0 };
    int rc = moe_weights_vector(at, ".weight", m->hp.hidden, weight, e);

    if (rc != 0 || m->family->norm != MOE_NORM_LAYER)
        return rc;
    return moe_weights_vector(at, ".bias", m->hp.hidden, bias, e);
}

/* A list of matrices of one layer. */
struct matrix {
    enum moe_weight w;
    size_t rows, cols;
    bool bias;
    struct moe_matrix *out;
};

static int
load_list(struct moe_model *m, size_t l, const struct matrix *list, size_t n, struct moe_err *e)
{
    for (size_t i = 0; i < n; i++) {
        struct moe_weights_at at = { m, list[i].w, l, 0 };
        int rc = moe_weights_matrix(at, list[i].rows, list[i].cols, list[i].bias, list[i].out, e);

        if (rc != 0)
            return rc;
    }
    return 0;
}

static int
load_heads(struct moe_model *m, size_t l, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_Q_NORM, l, 0 };
    size_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
    bool whole = m->family->qk_norm == MOE_QK_NORM_WHOLE;
    const struct matrix list[] = {
        { MOE_W_Q, q, h->hidden, h->qkv_bias, &y->q },
        { MOE_W_K, kv, h->hidden, h->qkv_bias, &y->k },
        { MOE_W_V, kv, h->hidden, h->qkv_bias, &y->v },
        { MOE_W_O, h->hidden, q, h->o_bias, &y->o },
    };
    int rc = load_list(m, l, list, sizeof(list) / sizeof(list[0]), e);

    if (rc != 0 || !h->qk_norm)
        return rc;
    if ((rc = moe_weights_vector(at, ".weight", whole ? q : h->head_dim, &y->q_norm, e)) != 0)
        return rc;
    at.w = MOE_W_K_NORM;
    return moe_weights_vector(at, ".weight", whole ? kv : h->head_dim, &y->k_norm, e);
}

static int
load_latent(struct moe_model *m, size_t l, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_KV_A_NORM, l, 0 };
    size_t q = h->heads * h->head_dim;
    const struct matrix list[] = {
        { MOE_W_KV_A, h->kv_lora + h->rope_dim, h->hidden, h->qkv_bias, &y->kv_a },
        { MOE_W_O, h->hidden, h->heads * h->v_dim, h->o_bias, &y->o },
        { h->q_lora > 0 ? MOE_W_Q_B : MOE_W_Q, q, h->q_lora > 0 ? h->q_lora : h->hidden, false,
            &y->q },
        { MOE_W_Q_A, h->q_lora, h->hidden, h->qkv_bias, &y->q_a },
    };
    int rc = load_list(m, l, list, h->q_lora > 0 ? 4 : 3, e);

    if (rc != 0 || (rc = moe_weights_vector(at, ".weight", h->kv_lora, &y->kv_a_norm, e)) != 0)
        return rc;
    at.w = MOE_W_Q_A_NORM;
    if (h->q_lora > 0 && (rc = moe_weights_vector(at, ".weight", h->q_lora, &y->q_a_norm,
        e)) != 0)
        return rc;
    at.w = MOE_W_KV_B;
    return moe_weights_latent(at, &y->key, &y->value, e);
}

static int
load_attention(struct moe_model *m, size_t l, struct moe_err *e)
{
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_SINKS, l, 0 };
    int rc;

    if ((rc = load_norm(m, MOE_W_ATTN_NORM, l, &y->attn_norm, &y->attn_norm_bias, e)) != 0)
        return rc;
    rc = m->family->latent ? load_latent(m, l, e) : load_heads(m, l, e);
    if (rc != 0 || m->family->weights[MOE_W_SINKS] == NULL)
        return rc;
    return moe_weights_vector(at, "", m->hp.heads, &y->sinks, e);
}

/* The expert that every row goes through. */
static int
load_shared(struct moe_model *m, size_t l, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct moe_layer *y = &m->layers[l];
    struct moe_expert *x = &y->shared;
    bool fused = m->family->weights[MOE_W_SHARED_GATE_UP] != NULL;
    const struct matrix list[] = {
        { MOE_W_SHARED_DOWN, h->hidden, h->shared_inter, h->mlp_bias, &x->down },
        { MOE_W_SHARED_GATE, h->shared_inter, h->hidden, h->mlp_bias, &x->gate },
        { MOE_W_SHARED_UP, h->shared_inter, h->hidden, h->mlp_bias, &x->up },
    };
    const struct matrix mix = { MOE_W_SHARED_MIX, 1, h->hidden, false, &y->shared_mix };
    struct moe_weights_at at = { m, MOE_W_SHARED_GATE_UP, l, 0 };
    int rc = load_list(m, l, list, fused ? 1 : 3, e);

    if (rc == 0 && fused)
        rc = moe_weights_halves(at, h->shared_inter, h->hidden, &x->gate, &x->up, e);
    if (rc == 0 && m->family->weights[MOE_W_SHARED_MIX] != NULL)
        rc = load_list(m, l, &mix, 1, e);
    return rc;
}

static int
load_sparse(struct moe_model *m, size_t l, struct moe_pool *pool, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_ROUTER_BIAS, l, 0 };
    const struct matrix router = { MOE_W_ROUTER, h->experts, h->hidden, h->router_bias,
        &y->router };
    int rc;

    if ((rc = load_list(m, l, &router, 1, e)) != 0)
        return rc;
    if (m->family->weights[MOE_W_ROUTER_BIAS] != NULL &&
        (rc = moe_weights_numbers(at, "", h->experts, &y->router_bias, e)) != 0)
        return rc;
    if ((y->experts = calloc(h->experts, sizeof(*y->experts))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
    if ((rc = moe_bank_load(m, l, pool, y->experts, e)) != 0 || h->shared_inter == 0)
        return rc;
    return load_shared(m, l, e);
}

static int
load_mlp(struct moe_model *m, size_t l, struct moe_pool *pool, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct moe_layer *y = &m->layers[l];
    const struct matrix list[] = {
        { MOE_W_GATE, h->inter, h->hidden, h->mlp_bias, &y->gate },
        { MOE_W_UP, h->inter, h->hidden, h->mlp_bias, &y->up },
        { MOE_W_DOWN, h->hidden, h->inter, h->mlp_bias, &y->down },
    };
    int rc = load_norm(m, MOE_W_MLP_NORM, l, &y->mlp_norm, &y->mlp_norm_bias, e);

    if (rc != 0)
        return rc;
    if (y->sparse)
        return load_sparse(m, l, pool, e);
    if (m->family->weights[MOE_W_GATE] == NULL || h->inter == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: layer %zu has no experts", m->config.name, l);
    return load_list(m, l, list, sizeof(list) / sizeof(list[0]), e);
}

static int
load_ends(struct moe_model *m, struct moe_err *e)
{
    const struct moe_hparams *h = &m->hp;
    struct matrix list[] = {
        { MOE_W_EMBED, h->vocab, h->hidden, false, &m->embed },
        { MOE_W_HEAD, h->vocab, h->hidden, h->head_bias, &m->head },
    };
    int rc = load_list(m, 0, list, m->config.tied ? 1 : 2, e);

    if (rc == 0 && m->config.tied) {
        struct moe_weights_at at = { m, MOE_W_HEAD, 0, 0 };

        m->head = m->embed;
        if (h->head_bias)
            rc = moe_weights_vector(at, ".bias", h->vocab, &m->head.bias, e);
    }
    return rc != 0 ? rc : load_norm(m, MOE_W_NORM, 0, &m->norm, &m->norm_bias, e);
}

static int
load(struct moe_model *m, struct moe_pool *pool, struct moe_err *e)
{
    int rc;

    if ((rc = moe_hparams_read(m, e)) != 0 ||
        (rc = moe_records_open(m->source, &m->records, e)) != 0 ||
        (rc = moe_qscheme_new(m->config.quant, m->config.name, &m->scheme, e)) != 0 ||
        (rc = load_ends(m, e)) != 0)
        return rc;
    if ((m->layers = calloc(m->hp.n_layers, sizeof(*m->layers))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "layers: out of memory");
    for (size_t l = 0; l < m->hp.n_layers; l++) {
        if ((rc = moe_stop_check(e)) != 0 || (rc = moe_hparams_layer(m, l, e)) != 0 ||
            (rc = load_attention(m, l, e)) != 0 || (rc = load_mlp(m, l, pool, e)) != 0)
            return rc;
    }
    return m->backend->ops->finish(m->backend, e);
}

/* The configuration, of a directory or from the metadata of a GGUF file, and the family's plan. */
static int
configure(struct moe_model *m, const char *path, struct moe_err *e)
{
    const struct moe_gguf *g = moe_source_gguf(m->source);
    const struct moe_config *c = moe_source_config(m->source);
    int rc;

    if (g != NULL) {
        if ((rc = moe_ggufconfig_read(g, path, &m->config, e)) != 0)
            return rc;
        m->own_config = true;
    } else if (c == NULL) {
        return moe_err_set(e, MOE_ENOENT, "%s: no config.json", path);
    } else {
        m->config = *c;
    }
    if ((m->family = moe_family_find(m->config.family)) == NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: model_type: \"%s\" is not a family that runs here",
            m->config.name, m->config.family);
    if (g != NULL) {
        m->plan = moe_ggufplan_of(m->family);
        m->family = &m->plan;
    }
    return 0;
}

int
moe_model_open(const char *path, struct moe_backend *b, struct moe_pool *pool,
    struct moe_model **out, struct moe_err *e)
{
    struct moe_model *m = calloc(1, sizeof(*m));
    int rc;

    *out = NULL;
    if (m == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    m->backend = b;
    if ((rc = moe_source_open(path, &m->source, e)) != 0)
        goto out;
    if (moe_source_is_stream(m->source)) {
        rc = moe_err_set(e, MOE_EUNSUP, "%s: a stream cannot be run: weights are read many times",
            path);
        goto out;
    }
    if ((rc = configure(m, path, e)) != 0)
        goto out;
    if ((rc = load(m, pool, e)) != 0)
        goto out;
    *out = m;
    m = NULL;
out:
    moe_model_close(m);
    return rc;
}

void
moe_model_close(struct moe_model *m)
{
    if (m == NULL)
        return;
    moe_weights_fini(m);
    for (size_t l = 0; m->layers != NULL && l < m->hp.n_layers; l++) {
        free(m->layers[l].experts);
        free(m->layers[l].router_bias);
    }
    free(m->layers);
    moe_qscheme_free(m->scheme);
    moe_records_close(m->records);
    if (m->own_config)
        moe_config_free(&m->config);
    moe_source_close(m->source);
    free(m);
}
