/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a model in a GGUF file: its metadata as the config.json
 * that the same model has elsewhere, for the architectures of the table in
 * ggufconfig.c.
 */
#ifndef MOE_FORMATS_GGUFCONFIG_H
#define MOE_FORMATS_GGUFCONFIG_H

#include "common/base/err.h"
#include "common/formats/config.h"
#include "common/formats/gguf.h"

/*
 * name: of the file, for messages; the caller frees *out. Errors: MOE_EUNSUP (an
 * architecture or a scaling of RoPE that is not in the table), MOE_EFORMAT (a key
 * is missing or is no number), MOE_ENOMEM.
 */
int moe_ggufconfig_read(const struct moe_gguf *g, const char *name, struct moe_config *out,
    struct moe_err *e);

#endif
