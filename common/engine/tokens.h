/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of token ids, owned by the caller. */
#ifndef MOE_ENGINE_TOKENS_H
#define MOE_ENGINE_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_tokens {
    uint32_t *id;
    size_t n, cap;
};

#define MOE_TOKENS_INIT { NULL, 0, 0 }

/* Errors: MOE_ENOMEM. */
int moe_tokens_add(struct moe_tokens *t, uint32_t id, struct moe_err *e);
void moe_tokens_fini(struct moe_tokens *t);

#endif
