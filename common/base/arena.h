/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many small things that live and die together: memory handed out of large
 * blocks that never move, freed all at once.
 */
#ifndef MOE_BASE_ARENA_H
#define MOE_BASE_ARENA_H

#include <stddef.h>

struct moe_arena { struct moe_arena_block *last; };

#define MOE_ARENA_INIT { NULL }

/* n bytes, aligned to 8, not cleared; NULL without memory. */
void *moe_arena_get(struct moe_arena *a, size_t n);

/* A copy of n bytes and a NUL; NULL without memory. */
char *moe_arena_text(struct moe_arena *a, const char *p, size_t n);

/* Free everything; the arena is empty and may be used again. */
void moe_arena_fini(struct moe_arena *a);

#endif
