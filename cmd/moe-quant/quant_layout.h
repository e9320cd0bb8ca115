/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What matrices have in common: groups that divide all of a layer, one scheme
 * where loaders fuse, one range where a scale is shared; and the list of
 * tensors that is written.
 */
#ifndef CMD_QUANT_LAYOUT_H
#define CMD_QUANT_LAYOUT_H

#include "cmd/moe-quant/quant_plan.h"

/* Choose groups, check what is fused, number the ranges, check memory. */
int quant_layout_agree(struct moe_source *s, struct quant_plan *p, struct moe_err *e);

/* Fill p->out. */
int quant_layout_outputs(struct moe_source *s, struct quant_plan *p, struct moe_err *e);

#endif
