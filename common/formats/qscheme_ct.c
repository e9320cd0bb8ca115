/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the configuration of compressed-tensors: groups of targets, their
 * schemes, the ignore list.
 */
#include <inttypes.h>
#include <string.h>

#include "common/formats/qscheme_parse.h"

static const char *const weight_keys[] = {
    "num_bits", "type", "symmetric", "strategy", "group_size", "block_structure", "dynamic",
    "actorder", "scale_dtype", "zp_dtype", "observer", "observer_kwargs", NULL
};

static const char *const group_keys[] = {
    "targets", "weights", "input_activations", "output_activations", "format", NULL
};

struct ct_weights {
    int64_t bits;
    const char *type, *strategy;
    bool symmetric;
};

/* Columns and rows that share a scale, from the strategy. */
static int
ct_strategy(struct moe_json_at at, const struct ct_weights *w, struct moe_qrule *r,
    struct moe_err *e)
{
    bool block;
    int rc;

    r->block_rows = 1;
    if (strcmp(w->strategy, "channel") == 0)
        return 0;
    if (strcmp(w->strategy, "tensor") == 0) {
        if (r->enc != MOE_ENC_CT_FP8)
            return moe_qscheme_unsup(at, "strategy", "tensor for whole numbers", e);
        r->block_rows = 0;
        return 0;
    }
    if (strcmp(w->strategy, "block") == 0) {
        if (r->enc != MOE_ENC_CT_FP8)
            return moe_qscheme_unsup(at, "strategy", "block for whole numbers", e);
        if ((rc = moe_qscheme_block(at, "block_structure", r, &block, e)) != 0)
            return rc;
        return block ? 0 :
            moe_err_set(e, MOE_EFORMAT, "%s: block_structure: is missing", at.name);
    }
    if (strcmp(w->strategy, "group") == 0 || strcmp(w->strategy, "tensor_group") == 0) {
        if ((rc = moe_qscheme_group(at, "group_size", true, &r->group, e)) != 0)
            return rc;
        return r->group > 0 ? 0 :
            moe_err_set(e, MOE_EFORMAT, "%s: group_size: no size for groups", at.name);
    }
    return moe_qscheme_unsup(at, "strategy", w->strategy, e);
}

static int
ct_encoding(struct moe_json_at at, const struct ct_weights *w, const char *format,
    struct moe_qrule *r, struct moe_err *e)
{
    static const struct { const char *format, *type; int bits; enum moe_enc enc; } known[] = {
        { "pack-quantized", "int", 0, MOE_ENC_CT_PACK },
        { "int-quantized", "int", 8, MOE_ENC_CT_INT8 },
        { "float-quantized", "float", 8, MOE_ENC_CT_FP8 },
        { "naive-quantized", "int", 8, MOE_ENC_CT_INT8 },
        { "naive-quantized", "float", 8, MOE_ENC_CT_FP8 },
        { "mxfp4-pack-quantized", "float", 4, MOE_ENC_CT_MXFP4 },
        { "mxfp8-quantized", "float", 8, MOE_ENC_CT_MXFP8 },
        { "nvfp4-pack-quantized", "float", 4, MOE_ENC_CT_NVFP4 },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].format, format) != 0 || strcmp(known[i].type, w->type) != 0)
            continue;
        if (known[i].bits != 0 && known[i].bits != w->bits)
            break;
        r->enc = known[i].enc;
        r->bits = (int)w->bits;
        r->symmetric = w->symmetric;
        if (strcmp(w->type, "float") == 0 && !w->symmetric)
            return moe_qscheme_unsup(at, "symmetric", "false for floating codes", e);
        return 0;
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: %s with %" PRId64 " bits of type %s is not read",
        at.name, format, w->bits, w->type);
}

/* What a scheme without "strategy" means: compressed-tensors decides by group_size. */
static int
ct_default_strategy(struct moe_json_at at, const char **strategy, struct moe_err *e)
{
    int64_t g;
    int rc = moe_json_int(at, "group_size", false, 0, -1, MOE_QSCHEME_MAX_GROUP, &g, e);

    *strategy = g > 0 ? "group" : g == 0 ? "tensor" : "channel";
    return rc;
}

static int
ct_weights(struct moe_json_at at, const char *format, struct moe_qrule *r, struct moe_err *e)
{
    struct ct_weights w;
    const json_t *order = json_object_get(at.o, "actorder");
    const char *guess;
    int rc;

    if ((rc = moe_json_only(at, weight_keys, e)) != 0 ||
        (rc = moe_json_int(at, "num_bits", false, 8, 1, 16, &w.bits, e)) != 0 ||
        (rc = moe_json_str(at, "type", false, "int", &w.type, e)) != 0 ||
        (rc = moe_json_bool(at, "symmetric", false, true, &w.symmetric, e)) != 0 ||
        (rc = ct_default_strategy(at, &guess, e)) != 0 ||
        (rc = moe_json_str(at, "strategy", false, guess, &w.strategy, e)) != 0)
        return rc;
    if (json_is_string(order) && strcmp(json_string_value(order), "group") == 0)
        return moe_qscheme_unsup(at, "actorder", "group", e);
    if (json_is_true(json_object_get(at.o, "dynamic")))
        return moe_qscheme_unsup(at, "dynamic", "true", e);
    if ((rc = ct_encoding(at, &w, format, r, e)) != 0)
        return rc;
    return ct_strategy(at, &w, r, e);
}

static int
ct_group(struct moe_qscheme *s, struct moe_json_at at, const char *format, struct moe_err *e)
{
    struct moe_qrule r = { .enc = MOE_ENC_PLAIN };
    const json_t *weights;
    char where[MOE_QSCHEME_WHERE];
    struct moe_json_at sub;
    size_t i = MOE_QSCHEME_PLAIN;
    int rc;

    if ((rc = moe_json_only(at, group_keys, e)) != 0 ||
        (rc = moe_json_str(at, "format", false, format, &format, e)) != 0 ||
        (rc = moe_json_obj(at, "weights", false, &weights, e)) != 0)
        return rc;
    if (weights != NULL) {
        if (strcmp(format, "mixed-precision") == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: format: is missing", at.name);
        sub = moe_qscheme_below(at, weights, "weights", where);
        if ((rc = ct_weights(sub, format, &r, e)) != 0 || (rc = moe_qscheme_add(s, &r, &i, e)) != 0)
            return rc;
    }
    return moe_qscheme_names(at, "targets", true, MOE_QSCHEME_CT, i, s->targets, e);
}

/* Settings that change what weights mean, beside the groups. */
static int
ct_extras(struct moe_json_at at, struct moe_err *e)
{
    const json_t *o;
    const char *f;
    char where[MOE_QSCHEME_WHERE];
    struct moe_json_at sub;
    int rc;

    if ((rc = moe_json_obj(at, "sparsity_config", false, &o, e)) != 0)
        return rc;
    if (o != NULL) {
        sub = moe_qscheme_below(at, o, "sparsity_config", where);
        if ((rc = moe_json_str(sub, "format", false, "dense", &f, e)) != 0)
            return rc;
        if (strcmp(f, "dense") != 0)
            return moe_qscheme_unsup(sub, "format", f, e);
    }
    if ((rc = moe_json_obj(at, "transform_config", false, &o, e)) != 0)
        return rc;
    if (o != NULL && json_object_size(json_object_get(o, "config_groups")) > 0)
        return moe_qscheme_unsup(at, "transform_config", "a transform of the weights", e);
    return 0;
}

int
moe_qscheme_ct(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e)
{
    const json_t *groups, *v;
    const char *format, *key;
    int rc;

    if ((rc = moe_json_str(at, "format", false, "mixed-precision", &format, e)) != 0 ||
        (rc = ct_extras(at, e)) != 0 ||
        (rc = moe_json_obj(at, "config_groups", true, &groups, e)) != 0)
        return rc;
    json_object_foreach((json_t *)groups, key, v) {
        char where[MOE_QSCHEME_WHERE], outer[MOE_QSCHEME_WHERE];
        struct moe_json_at sub = moe_qscheme_below(at, v, "config_groups", outer);

        sub = moe_qscheme_below(sub, v, key, where);
        if (!json_is_object(v))
            return moe_err_set(e, MOE_EFORMAT, "%s: not an object", sub.name);
        if ((rc = ct_group(s, sub, format, e)) != 0)
            return rc;
    }
    return moe_qscheme_names(at, "ignore", false, MOE_QSCHEME_CT, MOE_QSCHEME_PLAIN, s->ignored, e);
}
