/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The experts of a layer, from whatever a model stores them as: matrices under
 * names of their own, or stacks of all; halves of gate and up or rows that
 * alternate; [out][in] or [in][out].
 */
#ifndef MOE_ENGINE_BANK_H
#define MOE_ENGINE_BANK_H

#include "common/engine/model.h"

/* Experts of layer l into out [hp.experts]; pool packs INT4 weights, or NULL. */
int moe_bank_load(struct moe_model *m, size_t l, struct moe_pool *pool, struct moe_expert *out,
    struct moe_err *e);

#endif
