/* SPDX-License-Identifier: Apache-2.0 */
/* A model in the packed layout (moe-packed(5)), ready for moe-serve. */
#ifndef CMD_QUANT_PACKED_H
#define CMD_QUANT_PACKED_H

#include "cmd/moe-quant/quant_to.h"

/*
 * Write directory dst: a record for each expert and each single matrix whose
 * encoding the layout has, every other tensor byte for byte behind them, and the
 * files beside the weights. Errors: MOE_EUNSUP (a stream, no directory, nothing
 * to pack), MOE_EFORMAT, MOE_EIO, MOE_ENOMEM.
 */
int quant_packed_write(struct moe_source *s, const char *dst, const struct quant_to_options *o,
    struct moe_err *e);

#endif
