/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks as a grid: tensor parallel within expert parallel within pipeline
 * stages, so that rank = (stage * ep + expert group) * tp + tensor rank; which
 * expert group holds an expert and which stage a layer.
 */
#ifndef MOE_FORMATS_GRID_H
#define MOE_FORMATS_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_GRID_MAX 65536      /* ranks */

enum moe_grid_deal {
    MOE_GRID_LINEAR,            /* experts / ep in a row each, the first experts % ep one more */
    MOE_GRID_ROUND_ROBIN,       /* expert e in group e % ep */
    MOE_GRID_MAP                /* as owner says */
};

struct moe_grid {
    uint32_t tp, ep, pp;        /* >= 1 */
    uint64_t layers, experts;   /* of the model; layers >= pp, experts >= ep if ep > 1 */
    enum moe_grid_deal deal;
    /* MAP: [layers][experts][ep], 1 where the group holds the expert (several may). Owned. */
    uint8_t *owner;
};

/* Checks the limits of the struct. Errors: MOE_EUNSUP with the numbers. */
int moe_grid_check(const struct moe_grid *g, struct moe_err *e);
void moe_grid_fini(struct moe_grid *g);

uint32_t moe_grid_ranks(const struct moe_grid *g);
uint32_t moe_grid_rank(const struct moe_grid *g, uint32_t pp, uint32_t ep, uint32_t tp);

/* Whether group ep holds an expert of a layer. Layers past the last (MTP) are as the last. */
bool moe_grid_holds(const struct moe_grid *g, uint64_t layer, uint64_t expert, uint32_t ep);

/* Stage of a layer: layers / pp each, the first layers % pp one more. */
uint32_t moe_grid_stage(const struct moe_grid *g, uint64_t layer);

#endif
