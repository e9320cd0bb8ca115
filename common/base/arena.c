/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns memory that is freed all at once. Knows nothing of what is in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

#define BLOCK ((size_t)64 << 10)

struct moe_arena_block {
    struct moe_arena_block *before;
    size_t used, cap;
    uint64_t bytes[];
};

void *
moe_arena_get(struct moe_arena *a, size_t n)
{
    struct moe_arena_block *b = a->last;
    void *p;

    if (n > SIZE_MAX / 2)
        return NULL;
    n = (n + 7) & ~(size_t)7;
    if (b == NULL || n > b->cap - b->used) {
        size_t cap = n > BLOCK ? n : BLOCK;

        if ((b = malloc(sizeof(*b) + cap)) == NULL)
            return NULL;
        b->before = a->last;
        b->used = 0;
        b->cap = cap;
        a->last = b;
    }
    p = (char *)b->bytes + b->used;
    b->used += n;
    return p;
}

char *
moe_arena_text(struct moe_arena *a, const char *p, size_t n)
{
    char *to = n < SIZE_MAX ? moe_arena_get(a, n + 1) : NULL;

    if (to == NULL)
        return NULL;
    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    return to;
}

void
moe_arena_fini(struct moe_arena *a)
{
    struct moe_arena_block *b = a->last, *before;

    for (; b != NULL; b = before) {
        before = b->before;
        free(b);
    }
    a->last = NULL;
}
