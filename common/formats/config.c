/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the typed view of config.json. What only one family has is read by its
 * own user from the tree.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/json.h"
#include "common/formats/config.h"

#define MAX_WIDTH ((int64_t)1 << 24)
#define MAX_VOCAB ((int64_t)1 << 28)
#define MAX_LAYERS 10000
#define MAX_EXPERTS 65536
#define MAX_POS ((int64_t)1 << 40)

/* A width that must be there. */
static int
width(struct moe_json_at at, const char *key, int64_t hi, int64_t *out, struct moe_err *e)
{
    return moe_json_int(at, key, true, 0, 1, hi, out, e);
}

/* A number for each layer (Hunyuan), of which all must be the same. */
static int
same_int(struct moe_json_at at, const char *key, const json_t *list, int64_t hi, int64_t *out,
    struct moe_err *e)
{
    const json_t *first = json_array_get(list, 0);
    json_int_t v = json_integer_value(first);

    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!json_equal(json_array_get(list, i), first))
            return moe_err_set(e, MOE_EUNSUP, "%s: %s: differs by layer", at.name, key);
    }
    if (!json_is_integer(first) || v < 0 || v > hi)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not whole numbers from 0 to %lld", at.name,
            key, (long long)hi);
    *out = v;
    return 0;
}

/* The first of several spellings that is there and not null; 0 if none is. */
static int
first_int(struct moe_json_at at, const char *const *keys, int64_t hi, int64_t *out,
    struct moe_err *e)
{
    *out = 0;
    for (; *keys != NULL; keys++) {
        const json_t *v = json_object_get(at.o, *keys);

        if (json_is_array(v))
            return same_int(at, *keys, v, hi, out, e);
        if (v != NULL && !json_is_null(v))
            return moe_json_int(at, *keys, true, 0, 0, hi, out, e);
    }
    return 0;
}

static int
positive(struct moe_json_at at, const char *key, double fallback, double *out, struct moe_err *e)
{
    int rc = moe_json_real(at, key, false, fallback, out, e);

    if (rc == 0 && !(*out > 0 && isfinite(*out)))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %s: must be positive", at.name, key);
    return rc;
}

static int
parse_shape(struct moe_json_at at, struct moe_config *c, struct moe_err *e)
{
    int rc;

    if ((rc = width(at, "hidden_size", MAX_WIDTH, &c->hidden, e)) != 0 ||
        (rc = width(at, "num_hidden_layers", MAX_LAYERS, &c->layers, e)) != 0 ||
        (rc = width(at, "vocab_size", MAX_VOCAB, &c->vocab, e)) != 0 ||
        (rc = width(at, "num_attention_heads", MAX_WIDTH, &c->heads, e)) != 0 ||
        (rc = moe_json_int(at, "num_key_value_heads", false, c->heads, 1, c->heads,
            &c->kv_heads, e)) != 0 ||
        (rc = moe_json_int(at, "head_dim", false, 0, 1, MAX_WIDTH, &c->head_dim, e)) != 0 ||
        (rc = moe_json_int(at, "intermediate_size", false, 0, 1, MAX_WIDTH, &c->inter,
            e)) != 0)
        return rc;
    if (c->head_dim == 0)
        c->head_dim = c->hidden / c->heads;
    if (c->head_dim == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: num_attention_heads: over hidden_size", at.name);
    return moe_json_int(at, "max_position_embeddings", false, 0, 0, MAX_POS, &c->max_pos, e);
}

static int
parse_experts(struct moe_json_at at, struct moe_config *c, struct moe_err *e)
{
    static const char *const count[] = {
        "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", NULL
    };
    static const char *const inter[] = {
        "moe_intermediate_size", "expert_intermediate_size", "intermediate_size", NULL
    };
    static const char *const shared[] = {
        "shared_expert_intermediate_size", "shared_intermediate_size", NULL
    };
    static const char *const top[] = {
        "num_experts_per_tok", "top_k_experts", "moe_k", "moe_topk", NULL
    };
    static const char *const n_shared_keys[] = {
        "n_shared_experts", "moe_num_shared_experts", NULL
    };
    int64_t n_shared;
    int rc;

    if ((rc = first_int(at, count, MAX_EXPERTS, &c->experts, e)) != 0 || c->experts == 0)
        return rc;
    if ((rc = first_int(at, top, c->experts, &c->top_k, e)) != 0 ||
        (rc = first_int(at, inter, MAX_WIDTH, &c->expert_inter, e)) != 0 ||
        (rc = first_int(at, shared, MAX_WIDTH, &c->shared_inter, e)) != 0 ||
        (rc = first_int(at, n_shared_keys, MAX_EXPERTS, &n_shared, e)) != 0)
        return rc;
    if (c->top_k == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: num_experts_per_tok: missing, or 0", at.name);
    if (c->expert_inter == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: moe_intermediate_size: missing, or 0", at.name);
    if (n_shared > 0) {
        if (n_shared > MAX_WIDTH / c->expert_inter)
            return moe_err_set(e, MOE_EFORMAT, "%s: n_shared_experts: too many", at.name);
        c->shared_inter = n_shared * c->expert_inter;
    }
    return 0;
}

/* rope_scaling of version 4, rope_parameters of version 5. */
static int
parse_rope(struct moe_json_at at, struct moe_config *c, struct moe_err *e)
{
    const json_t *scaling, *parameters;
    const char *type;
    int rc;

    if ((rc = moe_json_obj(at, "rope_scaling", false, &scaling, e)) != 0 ||
        (rc = moe_json_obj(at, "rope_parameters", false, &parameters, e)) != 0 ||
        (rc = positive(at, "rope_theta", 10000.0, &c->rope_theta, e)) != 0)
        return rc;
    c->rope = scaling != NULL ? scaling : parameters;
    if (c->rope == NULL)
        return 0;
    at.o = c->rope;
    if ((rc = positive(at, "rope_theta", c->rope_theta, &c->rope_theta, e)) != 0 ||
        (rc = moe_json_str(at, "type", false, NULL, &type, e)) != 0 ||
        (rc = moe_json_str(at, "rope_type", false, type, &type, e)) != 0)
        return rc;
    if (type == NULL || strcmp(type, "default") == 0)
        c->rope = NULL;
    return 0;
}

/* Copy a short string of the file. */
static int
text(struct moe_json_at at, const char *key, const char *from, char *to, size_t n,
    struct moe_err *e)
{
    if (strlen(from) >= n)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: longer than %zu characters", at.name, key,
            n - 1);
    memcpy(to, from, strlen(from) + 1);
    return 0;
}

static int
parse_dtype(struct moe_json_at at, struct moe_config *c, struct moe_err *e)
{
    const char *s;
    int rc;

    if ((rc = moe_json_str(at, "torch_dtype", false, "", &s, e)) != 0 ||
        (rc = moe_json_str(at, "dtype", false, s, &s, e)) != 0)
        return rc;
    return text(at, "dtype", s, c->dtype, sizeof(c->dtype), e);
}

static int
parse(struct moe_config *c, struct moe_err *e)
{
    struct moe_json_at whole = { c->tree, c->name }, at = whole;
    const char *family;
    bool tied;
    int rc;

    if (!json_is_object(c->tree))
        return moe_err_set(e, MOE_EFORMAT, "%s: must be an object", c->name);
    if ((rc = moe_json_str(whole, "model_type", true, NULL, &family, e)) != 0 ||
        (rc = text(whole, "model_type", family, c->family, sizeof(c->family), e)) != 0 ||
        (rc = moe_json_bool(whole, "tie_word_embeddings", false, false, &c->tied, e)) != 0 ||
        (rc = moe_json_obj(whole, "quantization_config", false, &c->quant, e)) != 0 ||
        (rc = parse_dtype(whole, c, e)) != 0)
        return rc;
    if (json_object_get(c->tree, "hidden_size") == NULL) {
        if ((rc = moe_json_obj(whole, "text_config", false, &c->text, e)) != 0)
            return rc;
    }
    if (c->text == NULL) {
        c->text = c->tree;
    } else {
        at.o = c->text;
        if ((rc = moe_json_bool(at, "tie_word_embeddings", false, c->tied, &tied, e)) != 0)
            return rc;
        c->tied = tied;
        if (c->dtype[0] == '\0' && (rc = parse_dtype(at, c, e)) != 0)
            return rc;
    }
    if ((rc = parse_shape(at, c, e)) != 0 || (rc = parse_experts(at, c, e)) != 0 ||
        (rc = parse_rope(at, c, e)) != 0)
        return rc;
    return positive(at, "rms_norm_eps", 1e-6, &c->norm_eps, e);
}

int
moe_config_from(json_t *tree, const char *name, struct moe_config *out, struct moe_err *e)
{
    int rc;

    *out = (struct moe_config){ .tree = tree };
    (void)snprintf(out->name, sizeof(out->name), "%s", name);
    if ((rc = parse(out, e)) != 0)
        moe_config_free(out);
    return rc;
}

int
moe_config_parse(const char *p, size_t n, const char *name, struct moe_config *out,
    struct moe_err *e)
{
    json_t *tree;
    int rc;

    *out = (struct moe_config){ .tree = NULL };
    if (n > MOE_CONFIG_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: %zu bytes, over %zu", name, n,
            MOE_CONFIG_MAX_BYTES);
    if ((rc = moe_json_parse(p, n, name, &tree, e)) != 0)
        return rc;
    return moe_config_from(tree, name, out, e);
}

void
moe_config_free(struct moe_config *c)
{
    json_decref(c->tree);
    *c = (struct moe_config){ .tree = NULL };
}
