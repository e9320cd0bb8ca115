/* SPDX-License-Identifier: Apache-2.0 */
/* All safetensors files of a saved directory as one stream. */
#ifndef CKPT_MERGE_H
#define CKPT_MERGE_H

#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/out.h"

/*
 * Write it to o: tensors in order of the files' names, within a file in that of
 * the data; __metadata__ of the first file, and config.json as moe.config.
 * Errors: MOE_EUNSUP (no such file), MOE_EFORMAT (a tensor is in two).
 */
int ckpt_merge(struct ckpt_spec_open *s, struct moe_out *o, struct moe_err *e);

#endif
