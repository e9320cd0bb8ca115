/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of a module to its weight as a struct moe_qmat that has been
 * checked and can be decoded, over bytes that belong to where they come from.
 */
#ifndef MOE_FORMATS_QLOAD_H
#define MOE_FORMATS_QLOAD_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"
#include "common/formats/qparts.h"
#include "common/formats/qscheme.h"
#include "common/formats/source.h"

/* module and expert as in moe_qparts_find(). m lives as long as the bytes. */
int moe_qload_qmat(const struct moe_qscheme *s, const struct moe_qparts_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_err *e);

/*
 * The same from a source, mapped (files only); in a GGUF file the module is a
 * tensor's name without ".weight". m lives as long as src.
 */
int moe_qload_source(const struct moe_qscheme *s, struct moe_source *src, const char *module,
    int64_t expert, struct moe_qmat *m, struct moe_err *e);

#endif
