/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of a configuration by a family's plan. Reads no weights.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/engine/hparams.h"

#define MAX_SIZE ((int64_t)1 << 24)     /* of any one dimension */

static struct moe_json_at
text_of(const struct moe_model *m)
{
    return (struct moe_json_at){ m->config.text, m->config.name };
}

/* A dimension: positive and sane. */
static int
size_in(const struct moe_model *m, const char *what, int64_t v, int64_t most, size_t *out,
    struct moe_err *e)
{
    if (v < 1 || v > most)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %lld is not in 1 to %lld", m->config.name,
            what, (long long)v, (long long)most);
    *out = (size_t)v;
    return 0;
}

/* A dimension that only some families have. */
static int
size_key(const struct moe_model *m, const char *key, bool must, int64_t least, size_t *out,
    struct moe_err *e)
{
    int64_t v;
    int rc = moe_json_int(text_of(m), key, must, 0, least, MAX_SIZE, &v, e);

    *out = rc == 0 ? (size_t)v : 0;
    return rc;
}

static int
flag(const struct moe_model *m, struct moe_family_flag f, bool *out, struct moe_err *e)
{
    *out = f.value;
    return f.key == NULL ? 0 : moe_json_bool(text_of(m), f.key, false, f.value, out, e);
}

/* A finite number; `none` when neither key nor plan has one. */
static int
number(const struct moe_model *m, struct moe_family_number f, double none, float *out,
    struct moe_err *e)
{
    double v = f.value == 0 ? none : f.value;
    int rc = f.key == NULL ? 0 : moe_json_real(text_of(m), f.key, false, v, &v, e);

    if (rc == 0 && !(fabs(v) <= 1e6))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %s: %g is out of range", m->config.name, f.key, v);
    *out = (float)v;
    return rc;
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
    if (json_object_get(c->text, "tie_word_embeddings") == NULL &&
        json_object_get(c->tree, "tie_word_embeddings") == NULL)
        c->tied = f->tied;
    if (json_object_get(c->text, "rope_theta") == NULL && json_object_get(v5, "rope_theta") == NULL
        && json_object_get(c->rope, "rope_theta") == NULL)
        c->rope_theta = f->rope_theta;
}

static int
refuse(const struct moe_model *m, const struct moe_family_must *r, const json_t *have,
    struct moe_err *e)
{
    char *text = json_dumps(have, JSON_ENCODE_ANY | JSON_COMPACT);

    moe_err_set(e, MOE_EUNSUP, "%s: %s: %s does not run here, only %s", m->config.name, r->key,
        text == NULL ? "this" : text, r->value);
    free(text);
    return MOE_EUNSUP;
}

/* Values that change what is computed, and of which one is computed here. */
static int
check_must(const struct moe_model *m, struct moe_err *e)
{
    static const struct moe_family_must all[] = { { "hidden_act", "\"silu\"" }, { NULL, NULL } };
    const struct moe_family_must *lists[] = { all, m->family->must };

    for (size_t k = 0; k < 2; k++) {
        for (const struct moe_family_must *r = lists[k]; r != NULL && r->key != NULL; r++) {
            const json_t *have = json_object_get(m->config.text, r->key);
            json_t *want = json_loads(r->value, JSON_DECODE_ANY, NULL);
            bool same = have == NULL || json_is_null(have) || json_equal(have, want);

            json_decref(want);
            if (!same)
                return refuse(m, r, have, e);
        }
    }
    return 0;
}

/* ---- Sizes ------------------------------------------------------------------------- */

static int
read_sizes(struct moe_model *m, struct moe_err *e)
{
    const struct moe_config *c = &m->config;
    struct moe_hparams *h = &m->hp;
    const struct {
        const char *what;
        int64_t v, most;
        size_t *out;
    } sizes[] = {
        { "hidden_size", c->hidden, MAX_SIZE, &h->hidden },
        { "vocab_size", c->vocab, MAX_SIZE, &h->vocab },
        { "num_hidden_layers", c->layers, MOE_MODEL_MAX_LAYERS, &h->n_layers },
        { "num_attention_heads", c->heads, MAX_SIZE, &h->heads },
        { "num_key_value_heads", c->kv_heads, MAX_SIZE, &h->kv_heads },
        { "head_dim", c->head_dim, MAX_SIZE, &h->head_dim },
        { "max_position_embeddings", c->max_pos, INT32_MAX, &h->max_pos },
    };
    int rc;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if ((rc = size_in(m, sizes[i].what, sizes[i].v, sizes[i].most, sizes[i].out, e)) != 0)
            return rc;
    }
    if (h->heads % h->kv_heads != 0)
        return moe_err_set(e, MOE_EFORMAT,
            "%s: num_attention_heads: %zu is no multiple of num_key_value_heads %zu", c->name,
            h->heads, h->kv_heads);
    if (!(c->norm_eps < 1))
        return moe_err_set(e, MOE_EFORMAT, "%s: rms_norm_eps: %g is out of range", c->name,
            c->norm_eps);
    h->eps = (float)c->norm_eps;
    return 0;
}

/* Inner rows of MLPs. A family with a router has experts when the configuration counts some. */
static int
read_mlp(struct moe_model *m, struct moe_err *e)
{
    const struct moe_config *c = &m->config;
    struct moe_hparams *h = &m->hp;
    bool routed = m->family->weights[MOE_W_ROUTER] != NULL;
    int64_t most = c->experts < MOE_MODEL_MAX_TOP_K ? c->experts : MOE_MODEL_MAX_TOP_K;
    int rc;

    h->inter = c->inter > 0 && c->inter <= MAX_SIZE ? (size_t)c->inter : 0;
    if (!routed || c->experts == 0) {
        if (routed && m->family->weights[MOE_W_GATE] == NULL)
            return moe_err_set(e, MOE_EFORMAT, "%s: it has no experts", c->name);
        return size_in(m, "intermediate_size", c->inter, MAX_SIZE, &h->inter, e);
    }
    if ((rc = size_in(m, "experts", c->experts, MOE_MODEL_MAX_EXPERTS, &h->experts, e)) != 0 ||
        (rc = size_in(m, "num_experts_per_tok", c->top_k, most, &h->top_k, e)) != 0 ||
        (rc = size_in(m, "moe_intermediate_size", c->expert_inter, MAX_SIZE, &h->expert_inter,
            e)) != 0)
        return rc;
    if (m->family->router == MOE_ROUTER_SPARSEMIXER && h->top_k != 2)
        return moe_err_set(e, MOE_EUNSUP, "%s: num_experts_per_tok: only 2 runs here", c->name);
    h->shared_inter = m->family->shared_as_expert ? h->expert_inter : 0;
    if (m->family->weights[MOE_W_SHARED_DOWN] != NULL && c->shared_inter > 0)
        return size_in(m, "shared experts", c->shared_inter, MAX_SIZE, &h->shared_inter, e);
    return 0;
}

/* ---- Attention ------------------------------------------------------------------------ */

/* YaRN's correction of the softmax, which DeepSeek's models take into the scale. */
static int
latent_scale(const struct moe_model *m, double *scale, struct moe_err *e)
{
    struct moe_json_at at = { m->config.rope, m->config.name };
    double factor, all, f;
    const char *type;
    int rc;

    if (at.o == NULL)
        return 0;
    if ((rc = moe_json_str(at, "type", false, "", &type, e)) != 0 ||
        (rc = moe_json_str(at, "rope_type", false, type, &type, e)) != 0 ||
        (rc = moe_json_real(at, "factor", false, 1, &factor, e)) != 0 ||
        (rc = moe_json_real(at, "mscale_all_dim", false, 0, &all, e)) != 0)
        return rc;
    if (strcmp(type, "yarn") != 0 || all == 0 || factor <= 1)
        return 0;
    f = 0.1 * all * log(factor) + 1;
    *scale *= f * f;
    return 0;
}

static int
read_latent(struct moe_model *m, struct moe_err *e)
{
    struct moe_hparams *h = &m->hp;
    int rc;

    if ((rc = size_key(m, "q_lora_rank", false, 0, &h->q_lora, e)) != 0 ||
        (rc = size_key(m, "kv_lora_rank", true, 1, &h->kv_lora, e)) != 0 ||
        (rc = size_key(m, "qk_nope_head_dim", true, 1, &h->nope, e)) != 0 ||
        (rc = size_key(m, "qk_rope_head_dim", true, 2, &h->rope_dim, e)) != 0 ||
        (rc = size_key(m, "v_head_dim", true, 1, &h->v_dim, e)) != 0)
        return rc;
    h->head_dim = h->nope + h->rope_dim;
    h->kv_heads = 1;
    m->kv = (struct moe_kv_shape){ h->n_layers, 1, h->kv_lora + h->rope_dim, h->kv_lora };
    return 0;
}

static int
read_attention(struct moe_model *m, struct moe_err *e)
{
    const struct moe_family *f = m->family;
    struct moe_hparams *h = &m->hp;
    float part, scale;
    double own;
    int rc;

    h->v_dim = h->rope_dim = h->head_dim;
    m->kv = (struct moe_kv_shape){ h->n_layers, h->kv_heads, h->head_dim, h->head_dim };
    if (f->latent && (rc = read_latent(m, e)) != 0)
        return rc;
    if ((rc = number(m, f->rope_part, 1, &part, e)) != 0)
        return rc;
    if (!f->latent)
        h->rope_dim = (size_t)((double)part * (double)h->head_dim);
    if (!(part > 0 && part <= 1) || h->rope_dim < 2 || h->rope_dim % 2 != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: head_dim or qk_rope_head_dim: %zu elements"
            " of a head rotate, which is not even",
            m->config.name, h->rope_dim);
    own = 1 / sqrt((double)h->head_dim);
    if ((f->latent && (rc = latent_scale(m, &own, e)) != 0) ||
        (rc = number(m, f->attn_scale, own, &scale, e)) != 0)
        return rc;
    h->attn_scale = scale;
    if (f->clip_key != NULL && (rc = number(m, (struct moe_family_number){ f->clip_key, 0 }, 0,
        &h->clip, e)) != 0)
        return rc;
    return 0;
}

/* ---- Everything else ------------------------------------------------------------------- */

static int
read_flags(struct moe_model *m, struct moe_err *e)
{
    const struct moe_family *f = m->family;
    struct moe_hparams *h = &m->hp;
    struct moe_family_flag norm = f->qk_norm_on.key != NULL ? f->qk_norm_on :
        (struct moe_family_flag){ NULL, f->qk_norm != MOE_QK_NORM_NONE };
    const struct { struct moe_family_flag f; bool *out; } list[] = {
        { f->qkv_bias, &h->qkv_bias }, { f->o_bias, &h->o_bias }, { f->mlp_bias, &h->mlp_bias },
        { f->router_bias, &h->router_bias }, { f->expert_bias, &h->expert_bias },
        { f->head_bias, &h->head_bias }, { norm, &h->qk_norm }, { f->renorm, &h->renorm },
        { f->rope_pairs, &h->rope_pairs },
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(list) / sizeof(list[0]); i++)
        rc = flag(m, list[i].f, list[i].out, e);
    return rc;
}

static int
read_numbers(struct moe_model *m, struct moe_err *e)
{
    const struct moe_family *f = m->family;
    struct moe_hparams *h = &m->hp;
    const struct { struct moe_family_number f; double none; float *out; } list[] = {
        { f->embed_scale, 1, &h->embed_scale }, { f->residual_scale, 1, &h->residual_scale },
        { f->logits_div, 1, &h->logits_div }, { f->route_scale, 1, &h->route_scale },
        { { "router_jitter_noise", 0.01 }, 0, &h->jitter },
        { { "swiglu_limit", 7 }, 0, &h->act_limit },
        { { "swiglu_alpha", 1.702 }, 0, &h->act_alpha },
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(list) / sizeof(list[0]); i++)
        rc = number(m, list[i].f, list[i].none, list[i].out, e);
    if (rc == 0 && (!(h->logits_div != 0) || !(h->act_alpha > 0) || !(h->act_limit > 0)))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: logits_scaling, swiglu_limit or swiglu_alpha is out"
            " of range", m->config.name);
    return rc;
}

static int
read_groups(struct moe_model *m, struct moe_err *e)
{
    struct moe_hparams *h = &m->hp;
    const char *method;
    int64_t n, k;
    int rc;

    if (m->family->groups == MOE_GROUPS_NONE || h->experts == 0)
        return 0;
    if (m->family->groups == MOE_GROUPS_MAX) {
        if ((rc = moe_json_str(text_of(m), "topk_method", false, "greedy", &method, e)) != 0)
            return rc;
        if (strcmp(method, "greedy") == 0)
            return 0;
        if (strcmp(method, "group_limited_greedy") != 0)
            return moe_err_set(e, MOE_EUNSUP, "%s: topk_method: \"%s\" does not run here",
                m->config.name, method);
    }
    if ((rc = moe_json_int(text_of(m), "n_group", false, 1, 1, (int64_t)h->experts, &n, e)) != 0 ||
        (rc = moe_json_int(text_of(m), "topk_group", false, n, 1, n, &k, e)) != 0)
        return rc;
    h->n_group = (size_t)n;
    h->topk_group = (size_t)k;
    if (h->experts % h->n_group != 0 || h->experts / h->n_group < 2 ||
        h->topk_group * (h->experts / h->n_group) < h->top_k)
        return moe_err_set(e, MOE_EFORMAT, "%s: n_group: %zu groups of %zu experts, %zu of them"
            " kept, for %zu", m->config.name, h->n_group, h->experts, h->topk_group, h->top_k);
    if (h->topk_group < h->n_group)
        h->groups = m->family->groups;
    return 0;
}

int
moe_hparams_read(struct moe_model *m, struct moe_err *e)
{
    int rc;

    fill_in(&m->config, m->family);
    if ((rc = check_must(m, e)) != 0 || (rc = read_sizes(m, e)) != 0 ||
        (rc = read_mlp(m, e)) != 0 || (rc = read_attention(m, e)) != 0 ||
        (rc = read_flags(m, e)) != 0 || (rc = read_numbers(m, e)) != 0)
        return rc;
    return read_groups(m, e);
}

/* ---- Layers -------------------------------------------------------------------------------- */

/* Entry l of a list of layer types; *out: whether it slides. */
static int
typed_layer(const struct moe_model *m, const json_t *list, size_t l, bool *out,
    struct moe_err *e)
{
    const char *type = json_string_value(json_array_get(list, l));

    if (json_array_size(list) != m->hp.n_layers || type == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: layer_types: not a word for each of %zu layers",
            m->config.name, m->hp.n_layers);
    *out = strcmp(type, "sliding_attention") == 0;
    if (!*out && strcmp(type, "full_attention") != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: layer_types: \"%s\" does not run here",
            m->config.name, type);
    return 0;
}

/* Positions that attention sees in layer l, 0 = all. */
static int
read_window(const struct moe_model *m, size_t l, size_t *out, struct moe_err *e)
{
    const json_t *types;
    int64_t window, from;
    bool on;
    int rc;

    *out = 0;
    if ((rc = flag(m, m->family->window, &on, e)) != 0 ||
        (rc = moe_json_int(text_of(m), "sliding_window", false, 0, 1, INT32_MAX, &window,
            e)) != 0 ||
        (rc = moe_json_arr(text_of(m), "layer_types", false, &types, e)) != 0)
        return rc;
    if (types != NULL) {
        if ((rc = typed_layer(m, types, l, &on, e)) != 0)
            return rc;
        if (on && window == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: sliding_window: missing, and layer %zu"
                " slides", m->config.name, l);
    } else if (m->family->window_layers == MOE_WINDOW_FROM_MAX) {
        if ((rc = moe_json_int(text_of(m), "max_window_layers", false, INT32_MAX, 0, INT32_MAX,
            &from, e)) != 0)
            return rc;
        on = on && l >= (size_t)from;
    } else if (m->family->window_layers == MOE_WINDOW_EVEN) {
        on = on && l % 2 == 0;
    }
    *out = on ? (size_t)window : 0;
    return 0;
}

/* Whether the list under the family's key has layer l. */
static int
listed(const struct moe_model *m, size_t l, bool *out, struct moe_err *e)
{
    const char *key = m->family->only_dense_key;
    const json_t *list = NULL;
    int rc;

    *out = false;
    if (key == NULL)
        return 0;
    if ((rc = moe_json_arr(text_of(m), key, false, &list, e)) != 0)
        return rc;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: entry %zu is no whole number",
                m->config.name, key, i);
        *out = *out || json_integer_value(v) == (json_int_t)l;
    }
    return 0;
}

/* A bound on layers; `none` when the family has no such key or it is missing or negative. */
static int
bound(const struct moe_model *m, const char *key, int64_t none, int64_t least, int64_t *out,
    struct moe_err *e)
{
    int rc = 0;

    *out = none;
    if (key != NULL)
        rc = moe_json_int(text_of(m), key, false, none, least, INT32_MAX, out, e);
    if (*out < 0)
        *out = none;
    return rc;
}

static int
read_sparse(const struct moe_model *m, size_t l, bool *out, struct moe_err *e)
{
    const struct moe_family *f = m->family;
    int64_t step, first, from, to;
    bool dense;
    int rc;

    *out = false;
    if (m->hp.experts == 0)
        return 0;
    if ((rc = listed(m, l, &dense, e)) != 0 ||
        (rc = bound(m, f->step_key, 1, 1, &step, e)) != 0 ||
        (rc = bound(m, f->first_dense.key, (int64_t)f->first_dense.value, 0, &first, e)) != 0 ||
        (rc = bound(m, f->from_key, 0, 0, &from, e)) != 0 ||
        (rc = bound(m, f->to_key, INT32_MAX, -1, &to, e)) != 0)
        return rc;
    *out = !dense && (l + 1) % (size_t)step == 0 && l >= (size_t)first && l >= (size_t)from &&
        l <= (size_t)to;
    return 0;
}

int
moe_hparams_layer(struct moe_model *m, size_t l, struct moe_err *e)
{
    int rc = read_window(m, l, &m->layers[l].window, e);

    return rc != 0 ? rc : read_sparse(m, l, &m->layers[l].sparse, e);
}
