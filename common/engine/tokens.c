/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns growing lists of ids.
 */
#include <stdlib.h>

#include "common/engine/tokens.h"

int
moe_tokens_add(struct moe_tokens *t, uint32_t id, struct moe_err *e)
{
    if (t->n == t->cap) {
        size_t cap = t->cap < 64 ? 64 : 2 * t->cap;
        uint32_t *p = cap > SIZE_MAX / sizeof(*p) ? NULL : realloc(t->id, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        t->id = p;
        t->cap = cap;
    }
    t->id[t->n++] = id;
    return 0;
}

void
moe_tokens_fini(struct moe_tokens *t)
{
    free(t->id);
    *t = (struct moe_tokens)MOE_TOKENS_INIT;
}
