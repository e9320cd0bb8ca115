/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the opening of a model: configuration against the family's plan, plan
 * against the weights. How a weight gets to the device is in weights.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/stop.h"
#include "common/engine/model.h"
#include "common/engine/weights.h"

#define MAX_SIZE ((int64_t)1 << 24)     /* of any one dimension */

/* A dimension of the configuration: positive and sane. */
static int
size_in(const struct moe_config *c, const char *what, int64_t v, int64_t most, size_t *out,
    struct moe_err *e)
{
    if (v < 1 || v > most)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %lld is not in 1 to %lld", c->name, what,
            (long long)v, (long long)most);
    *out = (size_t)v;
    return 0;
}

static int
flag_of(const struct moe_config *c, struct moe_family_flag f, bool *out, struct moe_err *e)
{
    struct moe_json_at at = { c->text, c->name };

    *out = f.value;
    return f.key == NULL ? 0 : moe_json_bool(at, f.key, false, f.value, out, e);
}

/* Keys that config.json need not have because the family's own default is meant. */
static void
fill_in(struct moe_config *c, const struct moe_family *f)
{
    const json_t *v5 = json_object_get(c->text, "rope_parameters");

    if (json_object_get(c->text, "rms_norm_eps") == NULL)
        c->norm_eps = f->norm_eps;
    if (json_object_get(c->text, "max_position_embeddings") == NULL)
        c->max_pos = f->max_pos;
    if (json_object_get(c->text, "rope_theta") == NULL && json_object_get(v5, "rope_theta") == NULL
        && json_object_get(c->rope, "rope_theta") == NULL)
        c->rope_theta = f->rope_theta;
}

/* Numbers that every layer shares. */
static int
read_sizes(struct moe_model *m, struct moe_err *e)
{
    const struct moe_config *c = &m->config;
    const struct {
        const char *what;
        int64_t v, most;
        size_t *out;
    } sizes[] = {
        { "hidden_size", c->hidden, MAX_SIZE, &m->hidden },
        { "vocab_size", c->vocab, MAX_SIZE, &m->vocab },
        { "num_hidden_layers", c->layers, MOE_MODEL_MAX_LAYERS, &m->n_layers },
        { "num_attention_heads", c->heads, MAX_SIZE, &m->heads },
        { "num_key_value_heads", c->kv_heads, MAX_SIZE, &m->kv_heads },
        { "head_dim", c->head_dim, MAX_SIZE, &m->head_dim },
        { "max_position_embeddings", c->max_pos, INT32_MAX, &m->max_pos },
    };
    int rc;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if ((rc = size_in(c, sizes[i].what, sizes[i].v, sizes[i].most, sizes[i].out, e)) != 0)
            return rc;
    }
    if (m->heads % m->kv_heads != 0)
        return moe_err_set(e, MOE_EFORMAT,
            "%s: num_attention_heads: %zu is no multiple of num_key_value_heads %zu", c->name,
            m->heads, m->kv_heads);
    if (c->experts > 0) {
        if ((rc = size_in(c, "experts", c->experts, MOE_MODEL_MAX_EXPERTS, &m->experts, e)) != 0)
            return rc;
        if ((rc = size_in(c, "num_experts_per_tok", c->top_k,
            c->experts < MOE_MODEL_MAX_TOP_K ? c->experts : MOE_MODEL_MAX_TOP_K, &m->top_k,
            e)) != 0)
            return rc;
    }
    if (!(c->norm_eps < 1))
        return moe_err_set(e, MOE_EFORMAT, "%s: rms_norm_eps: %g is out of range", c->name,
            c->norm_eps);
    m->eps = (float)c->norm_eps;
    m->attn_scale = (float)(1 / sqrt((double)m->head_dim));
    m->kv = (struct moe_kv_shape){ m->n_layers, m->kv_heads, m->head_dim, m->head_dim };
    return 0;
}

/* Positions that attention sees, 0 = all. */
static int
read_window(const struct moe_model *m, size_t *out, struct moe_err *e)
{
    struct moe_json_at at = { m->config.text, m->config.name };
    int64_t window;
    bool on;
    int rc;

    *out = 0;
    if ((rc = flag_of(&m->config, m->family->window, &on, e)) != 0)
        return rc;
    if ((rc = moe_json_int(at, "sliding_window", false, 0, 1, INT32_MAX, &window, e)) != 0)
        return rc;
    *out = on ? (size_t)window : 0;
    return 0;
}

/* Whether layer l has experts. */
static int
read_sparse(const struct moe_model *m, size_t l, bool *out, struct moe_err *e)
{
    struct moe_json_at at = { m->config.text, m->config.name };
    const json_t *list = NULL;
    int64_t step = 1;
    int rc;

    *out = false;
    if (m->experts == 0)
        return 0;
    if (m->family->step_key != NULL && (rc = moe_json_int(at, m->family->step_key, false, 1, 1,
        MOE_MODEL_MAX_LAYERS, &step, e)) != 0)
        return rc;
    if (m->family->only_dense_key != NULL
        && (rc = moe_json_arr(at, m->family->only_dense_key, false, &list, e)) != 0)
        return rc;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: entry %zu is no whole number", at.name,
                m->family->only_dense_key, i);
        if (json_integer_value(v) == (json_int_t)l)
            return 0;
    }
    *out = (l + 1) % (size_t)step == 0;
    return 0;
}

static int
check_act(const struct moe_config *c, struct moe_err *e)
{
    struct moe_json_at at = { c->text, c->name };
    const char *act;
    int rc;

    if ((rc = moe_json_str(at, "hidden_act", false, "silu", &act, e)) != 0)
        return rc;
    if (strcmp(act, "silu") != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: hidden_act: \"%s\" is not silu", c->name, act);
    return 0;
}

/* ---- Weights ---- */

static int
load_attention(struct moe_model *m, size_t l, struct moe_err *e)
{
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_ATTN_NORM, l, 0 };
    size_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    bool bias, o_bias;
    const struct {
        enum moe_weight w;
        size_t rows, cols;
        const bool *bias;
        struct moe_matrix *out;
    } list[] = {
        { MOE_W_Q, q, m->hidden, &bias, &y->q },
        { MOE_W_K, kv, m->hidden, &bias, &y->k },
        { MOE_W_V, kv, m->hidden, &bias, &y->v },
        { MOE_W_O, m->hidden, q, &o_bias, &y->o },
    };
    int rc;

    if ((rc = flag_of(&m->config, m->family->qkv_bias, &bias, e)) != 0)
        return rc;
    if ((rc = flag_of(&m->config, m->family->o_bias, &o_bias, e)) != 0)
        return rc;
    if ((rc = moe_weights_vector(at, ".weight", m->hidden, &y->attn_norm, e)) != 0)
        return rc;
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        at.w = list[i].w;
        if ((rc = moe_weights_matrix(at, list[i].rows, list[i].cols, *list[i].bias, list[i].out,
            e)) != 0)
            return rc;
    }
    if (m->family->qk_norm == MOE_QK_NORM_NONE)
        return 0;
    at.w = MOE_W_Q_NORM;
    if ((rc = moe_weights_vector(at, ".weight", m->head_dim, &y->q_norm, e)) != 0)
        return rc;
    at.w = MOE_W_K_NORM;
    return moe_weights_vector(at, ".weight", m->head_dim, &y->k_norm, e);
}

static int
load_mlp(struct moe_model *m, size_t l, struct moe_pool *pool, struct moe_err *e)
{
    struct moe_layer *y = &m->layers[l];
    struct moe_weights_at at = { m, MOE_W_MLP_NORM, l, 0 };
    size_t inter = 0;
    int rc;

    if ((rc = moe_weights_vector(at, ".weight", m->hidden, &y->mlp_norm, e)) != 0)
        return rc;
    if ((rc = size_in(&m->config, y->sparse ? "moe_intermediate_size" : "intermediate_size",
        y->sparse ? m->config.expert_inter : m->config.inter, MAX_SIZE, &inter, e)) != 0)
        return rc;
    m->widest = inter > m->widest ? inter : m->widest;
    if (y->sparse) {
        at.w = MOE_W_ROUTER;
        if ((rc = moe_weights_matrix(at, m->experts, m->hidden, false, &y->router, e)) != 0)
            return rc;
        if ((y->experts = calloc(m->experts, sizeof(*y->experts))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
        return moe_weights_experts(m, l, inter, pool, y->experts, e);
    }
    if (m->family->weights[MOE_W_GATE] == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: layer %zu has no experts", m->config.name, l);
    at.w = MOE_W_GATE;
    if ((rc = moe_weights_matrix(at, inter, m->hidden, false, &y->gate, e)) != 0)
        return rc;
    at.w = MOE_W_UP;
    if ((rc = moe_weights_matrix(at, inter, m->hidden, false, &y->up, e)) != 0)
        return rc;
    at.w = MOE_W_DOWN;
    return moe_weights_matrix(at, m->hidden, inter, false, &y->down, e);
}

static int
load_ends(struct moe_model *m, struct moe_err *e)
{
    struct moe_weights_at at = { m, MOE_W_EMBED, 0, 0 };
    int rc;

    if ((rc = moe_weights_matrix(at, m->vocab, m->hidden, false, &m->embed, e)) != 0)
        return rc;
    at.w = MOE_W_NORM;
    if ((rc = moe_weights_vector(at, ".weight", m->hidden, &m->norm, e)) != 0)
        return rc;
    m->head = m->embed;
    if (m->config.tied)
        return 0;
    at.w = MOE_W_HEAD;
    return moe_weights_matrix(at, m->vocab, m->hidden, false, &m->head, e);
}

static int
load(struct moe_model *m, struct moe_pool *pool, struct moe_err *e)
{
    size_t window;
    int rc;

    if ((rc = read_sizes(m, e)) != 0)
        return rc;
    if ((rc = check_act(&m->config, e)) != 0)
        return rc;
    if ((rc = flag_of(&m->config, m->family->renorm, &m->renorm, e)) != 0)
        return rc;
    if ((rc = read_window(m, &window, e)) != 0)
        return rc;
    if ((rc = moe_qscheme_new(m->config.quant, m->config.name, &m->scheme, e)) != 0)
        return rc;
    if ((rc = load_ends(m, e)) != 0)
        return rc;
    if ((m->layers = calloc(m->n_layers, sizeof(*m->layers))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "layers: out of memory");
    for (size_t l = 0; l < m->n_layers; l++) {
        m->layers[l].window = window;
        if ((rc = moe_stop_check(e)) != 0)
            return rc;
        if ((rc = read_sparse(m, l, &m->layers[l].sparse, e)) != 0)
            return rc;
        if ((rc = load_attention(m, l, e)) != 0)
            return rc;
        if ((rc = load_mlp(m, l, pool, e)) != 0)
            return rc;
    }
    return m->backend->ops->finish(m->backend, e);
}

int
moe_model_open(const char *path, struct moe_backend *b, struct moe_pool *pool,
    struct moe_model **out, struct moe_err *e)
{
    struct moe_model *m = calloc(1, sizeof(*m));
    const struct moe_config *c;
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
    if ((c = moe_source_config(m->source)) == NULL) {
        rc = moe_err_set(e, MOE_ENOENT, "%s: no config.json", path);
        goto out;
    }
    if ((m->family = moe_family_find(c->family)) == NULL) {
        rc = moe_err_set(e, MOE_EUNSUP, "%s: model_type: \"%s\" is not a family that runs here",
            c->name, c->family);
        goto out;
    }
    m->config = *c;
    fill_in(&m->config, m->family);
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
    for (size_t l = 0; m->layers != NULL && l < m->n_layers; l++)
        free(m->layers[l].experts);
    free(m->layers);
    moe_qscheme_free(m->scheme);
    moe_source_close(m->source);
    free(m);
}
