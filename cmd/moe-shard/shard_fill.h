/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors that ranks do not get cut but made: weight_shape, which tells the
 * shape of the rank's own matrix, and g_idx, whose groups begin at 0 on each.
 */
#ifndef MOE_SHARD_FILL_H
#define MOE_SHARD_FILL_H

#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/scatter.h"

/* The whole tensor is as parts can be made of it. Errors: MOE_EFORMAT. */
int shard_fill_check(const struct moe_scatter *s, const void *whole, size_t n, struct moe_err *e);

/* Rank tp's part, into b, from the whole. */
int shard_fill_part(const struct moe_scatter *s, uint32_t tp, const void *whole, size_t n,
    struct moe_buf *b, struct moe_err *e);

/* The whole, n bytes at p; rank 0's part stands there already when it is a shape. */
void shard_fill_whole(const struct moe_scatter *s, void *p, size_t n);

#endif
