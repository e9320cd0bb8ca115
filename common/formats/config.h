/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.json of a Hugging Face model: the keys that more than one program
 * needs, typed and range-checked, with the older and newer spellings folded
 * together (num_local_experts / num_experts / n_routed_experts, rope_parameters
 * / rope_theta + rope_scaling). Models of several towers keep these keys in
 * text_config; they are found there too. The tree stays available for the rest.
 */
#ifndef MOE_FORMATS_CONFIG_H
#define MOE_FORMATS_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_CONFIG_MAX_BYTES ((size_t)16 << 20)     /* of the text; real ones are below 1 MiB */

struct moe_config {
    json_t *tree;               /* owned */
    char name[256];             /* file name for messages, cut if longer */
    char family[64];            /* model_type: "mixtral", "qwen3_moe" ... */
    int64_t hidden;             /* hidden_size */
    int64_t layers;             /* num_hidden_layers */
    int64_t vocab;              /* vocab_size */
    int64_t heads;              /* num_attention_heads */
    int64_t kv_heads;           /* num_key_value_heads, default heads */
    int64_t head_dim;           /* head_dim, default hidden / heads */
    int64_t inter;              /* intermediate_size (dense layers; experts of some families) */
    int64_t experts;            /* 0 = a dense model, and the three below 0 as well */
    int64_t top_k;              /* num_experts_per_tok, 1 .. experts */
    int64_t expert_inter;       /* width of a routed expert */
    int64_t shared_inter;       /* width of the shared expert(s) together, 0 = none */
    int64_t max_pos;            /* max_position_embeddings, 0 = not told */
    double norm_eps;            /* rms_norm_eps, default 1e-6 */
    double rope_theta;          /* default 10000 */
    const json_t *rope;         /* borrowed: rope_scaling or rope_parameters when it holds a
                                 * type that is not "default", else NULL */
    bool tied;                  /* tie_word_embeddings, default false */
    char dtype[16];             /* torch_dtype / dtype: "bfloat16", "" = not told */
    const json_t *text;         /* borrowed: where the keys are: tree or its text_config */
    const json_t *quant;        /* borrowed: quantization_config or NULL */
};

/* Take over tree (also on failure). Errors: MOE_EFORMAT with the key, MOE_ENOMEM. */
int moe_config_from(json_t *tree, const char *name, struct moe_config *out, struct moe_err *e);

/* Parse n bytes of JSON. */
int moe_config_parse(const char *p, size_t n, const char *name, struct moe_config *out,
    struct moe_err *e);
void moe_config_free(struct moe_config *c);

#endif
