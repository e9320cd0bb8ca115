/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of Unicode code points as ascending ranges that neither touch nor
 * overlap; surrogates are never in one. A set is owned by the caller.
 */
#ifndef MOE_ENGINE_CODESET_H
#define MOE_ENGINE_CODESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_CODESET_LAST 0x10FFFFU

struct moe_codeset_range { uint32_t lo, hi; };

struct moe_codeset {
    struct moe_codeset_range *r;
    size_t n, cap;
};

#define MOE_CODESET_INIT { NULL, 0, 0 }

void moe_codeset_fini(struct moe_codeset *s);

/* Add lo..hi, lo <= hi <= MOE_CODESET_LAST, in any order. Errors: MOE_ENOMEM. */
int moe_codeset_add(struct moe_codeset *s, uint32_t lo, uint32_t hi, struct moe_err *e);

/* Add all of b. */
int moe_codeset_join(struct moe_codeset *s, const struct moe_codeset *b, struct moe_err *e);

/* All code points that are not in it. */
int moe_codeset_invert(struct moe_codeset *s, struct moe_err *e);

bool moe_codeset_has(const struct moe_codeset *s, uint32_t c);

#endif
