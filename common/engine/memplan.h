/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory steps of a model take beside its weights, from the
 * configuration alone: what moe_kv and moe_forward will ask a device for, and
 * the same for one rank of a grid.
 */
#ifndef MOE_ENGINE_MEMPLAN_H
#define MOE_ENGINE_MEMPLAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/config.h"

struct moe_memplan_in {
    size_t context;             /* positions of a sequence */
    size_t sequences;
    size_t rows;                /* of a step */
    size_t kv_bytes;            /* of a value kept; 4 in this engine */
    size_t layers;              /* on this rank; 0: all */
    size_t tp;                  /* tensor-parallel ranks, >= 1 */
};

struct moe_memplan {
    uint64_t kv;                /* whole pages of MOE_KV_PAGE positions */
    uint64_t work;              /* activations of a step */
    size_t hidden, top_k, layers;   /* of the model */
};

/* Errors: moe_hparams_read()'s (MOE_EFORMAT, MOE_EUNSUP), MOE_ELIMIT (over 2^63 bytes). */
int moe_memplan_get(const struct moe_config *c, const struct moe_memplan_in *in,
    struct moe_memplan *out, struct moe_err *e);

#endif
