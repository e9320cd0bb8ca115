/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model ready to run: configuration, the plan of its family, and a handle for
 * every weight, checked against each other. Immutable once opened, shared by
 * any number of sequences; it owns its source and what it put on the device.
 */
#ifndef MOE_ENGINE_MODEL_H
#define MOE_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/engine/backend.h"
#include "common/engine/family.h"
#include "common/formats/qscheme.h"
#include "common/formats/source.h"

#define MOE_MODEL_MAX_LAYERS 1024
#define MOE_MODEL_MAX_EXPERTS 4096
#define MOE_MODEL_MAX_TOP_K 64

struct moe_expert {
    struct moe_matrix gate, up, down;   /* gate.paired: up is in gate */
};

struct moe_layer {
    struct moe_view attn_norm, mlp_norm, q_norm, k_norm;    /* F32 */
    struct moe_matrix q, k, v, o;
    size_t window;                      /* positions attention sees, 0 = all */
    bool sparse;
    struct moe_matrix gate, up, down;   /* dense layers */
    struct moe_matrix router;
    struct moe_expert *experts;         /* [model's experts], NULL in dense layers */
};

struct moe_model {
    const struct moe_family *family;
    struct moe_config config;           /* the source's, missing keys as the family has them */
    struct moe_source *source;          /* owned */
    struct moe_qscheme *scheme;         /* how its weights are encoded */
    struct moe_backend *backend;        /* borrowed */
    size_t hidden, vocab, heads, kv_heads, head_dim, max_pos;
    size_t experts, top_k;              /* 0 when every layer is dense */
    size_t widest;                      /* of an MLP's inner rows, dense or expert */
    bool renorm;
    float eps, attn_scale;
    struct moe_kv_shape kv;
    size_t n_layers;
    struct moe_layer *layers;
    struct moe_matrix embed, head;
    struct moe_view norm;
    struct moe_mem **mems;              /* everything on the device */
    size_t n_mems, cap_mems;
    struct moe_qmat **coded;            /* of CODED matrices */
    size_t n_coded, cap_coded;
};

/*
 * Open the model at path (a directory, or a file that carries its
 * configuration). pool packs INT4 weights; NULL = the calling thread alone.
 * b must outlive the model. Errors: MOE_ENOENT (file or tensor missing),
 * MOE_EFORMAT (shapes), MOE_EUNSUP (family, encoding), MOE_EIO, MOE_ENOMEM.
 */
int moe_model_open(const char *path, struct moe_backend *b, struct moe_pool *pool,
    struct moe_model **out, struct moe_err *e);
void moe_model_close(struct moe_model *m);

#endif
