/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From tensors of a source to handles on a device, each checked against the
 * shape that the configuration asks for. What is put on the device belongs to
 * the model and goes with it.
 */
#ifndef MOE_ENGINE_WEIGHTS_H
#define MOE_ENGINE_WEIGHTS_H

#include "common/engine/model.h"

/* Where a weight belongs: its layer and expert, 0 when it has none. */
struct moe_weights_at {
    struct moe_model *m;
    enum moe_weight w;
    size_t layer, expert;
};

/* n numbers as F32. */
int moe_weights_vector(struct moe_weights_at at, const char *suffix, size_t n,
    struct moe_view *out, struct moe_err *e);

/* A matrix in whatever encoding it has; bias: it must have one. */
int moe_weights_matrix(struct moe_weights_at at, size_t rows, size_t cols, bool bias,
    struct moe_matrix *out, struct moe_err *e);

/* Every expert of a layer: names of single experts, or stacks of all. */
int moe_weights_experts(struct moe_model *m, size_t layer, size_t inter, struct moe_pool *pool,
    struct moe_expert *out, struct moe_err *e);

/* Give back everything. */
void moe_weights_fini(struct moe_model *m);

#endif
