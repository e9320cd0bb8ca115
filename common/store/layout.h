/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts a safetensors file is cut into: what stands before the data, then
 * each tensor that has bytes, in order of the data.
 */
#ifndef MOE_STORE_LAYOUT_H
#define MOE_STORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/safet.h"

struct moe_layout_part {
    uint64_t at, len;               /* in the file */
    enum moe_dtype dtype;           /* U8 for the header */
    const struct moe_tensor *t;     /* NULL for the header; lives as long as the header */
};

struct moe_layout { struct moe_layout_part *v; size_t n; };

/* Of a parsed header. Errors: MOE_ENOMEM. */
int moe_layout_of(const struct moe_safet *h, struct moe_layout *out, struct moe_err *e);

/* The part that holds a tensor by name; NULL if there is none or it has no bytes. */
const struct moe_layout_part *moe_layout_find(const struct moe_layout *l,
    const struct moe_safet *h, const char *name);

void moe_layout_fini(struct moe_layout *l);

#endif
