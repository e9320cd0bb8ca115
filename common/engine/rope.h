/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotary position embedding: the frequencies of one request. Types default,
 * linear, dynamic, llama3, yarn and longrope, as transformers 4.57 computes
 * them. Two types depend on the length of a request; it is fixed when the
 * request begins (prompt and all it may generate), since a later change would
 * not fit the keys already stored.
 */
#ifndef MOE_ENGINE_ROPE_H
#define MOE_ENGINE_ROPE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/config.h"

#define MOE_ROPE_MAX_DIM 512

struct moe_rope {
    size_t dim;                         /* elements of a head that rotate, even */
    float scale;                        /* on cos and sin */
    float inv[MOE_ROPE_MAX_DIM / 2];    /* radians a position, [dim / 2] */
};

/*
 * Frequencies for heads of dim rotating elements and a request of at most len
 * tokens. Errors: MOE_EFORMAT (a parameter missing or out of range), MOE_EUNSUP
 * (a type not known here).
 */
int moe_rope_init(struct moe_rope *r, const struct moe_config *c, uint64_t dim, uint64_t len,
    struct moe_err *e);

/* cos and sin at a position, [dim / 2] each. */
void moe_rope_at(const struct moe_rope *r, uint32_t pos, float *cosine, float *sine);

#endif
