/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json of the quantised model, as compressed-tensors reads it. */
#ifndef CMD_QUANT_CONFIG_H
#define CMD_QUANT_CONFIG_H

#include "cmd/moe-quant/quant_plan.h"

/*
 * The source's text with quantization_config added; b stays empty when the
 * source has no configuration. Errors: MOE_EIO, MOE_EFORMAT, MOE_ENOMEM.
 */
int quant_config_make(struct moe_source *s, const struct quant_plan *p, struct moe_buf *b,
    struct moe_err *e);

#endif
