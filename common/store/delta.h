/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements as steps from those of a base: the difference of their bits as
 * whole numbers, small ones in a byte, others beside. For floats that is how many
 * values lie between. Two forms: with gaps between those that changed, or of all.
 */
#ifndef MOE_STORE_DELTA_H
#define MOE_STORE_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/store/plane.h"

/* Bytes of scratch for n plain bytes. */
#define MOE_DELTA_SCRATCH(n) (3 * (n) + 4096)

/*
 * Encode elements of w bytes (1, 2, 4, 8; n a multiple) into out. False if they do
 * not fit into cap bytes. *dense says which form it is.
 */
bool moe_delta_put(struct moe_plane *c, const unsigned char *p, const unsigned char *base, size_t n,
    size_t w, unsigned char *scratch, unsigned char *out, size_t cap, size_t *len, bool *dense);

/* Decode to exactly n bytes. Errors: MOE_EFORMAT. */
int moe_delta_get(struct moe_plane *c, bool dense, const unsigned char *p, size_t len,
    const unsigned char *base, size_t n, size_t w, unsigned char *scratch, unsigned char *out,
    struct moe_err *e);

#endif
