/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a model: its configuration, checked, with what its family's
 * plan makes of it. Whatever the configuration asks for and nothing here computes
 * is refused by its key.
 */
#ifndef MOE_ENGINE_HPARAMS_H
#define MOE_ENGINE_HPARAMS_H

#include "common/base/err.h"
#include "common/engine/model.h"

/*
 * Fill m->hp and m->kv from m->config (missing keys become the family's) and
 * m->family. Errors: MOE_EFORMAT (a value out of range), MOE_EUNSUP.
 */
int moe_hparams_read(struct moe_model *m, struct moe_err *e);

/* Window of layer l, and whether it has experts, into m->layers[l]. */
int moe_hparams_layer(struct moe_model *m, size_t l, struct moe_err *e);

#endif
