/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of tokens by id and ids by text. A vocabulary is built once and then
 * only read. It owns its copies of the texts.
 */
#ifndef MOE_ENGINE_VOCAB_H
#define MOE_ENGINE_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_VOCAB_NONE UINT32_MAX
/* A lookup that has to try more places than this is an attack on the table. */
#define MOE_VOCAB_MAX_PROBES 4096

struct moe_vocab_text { uint32_t at, len; };    /* at == MOE_VOCAB_NONE: no such id */
struct moe_vocab_slot { uint32_t id, hash; };   /* id == MOE_VOCAB_NONE: free */

struct moe_vocab {
    struct moe_buf text;
    struct moe_vocab_text *tok;     /* by id */
    uint32_t n, cap;                /* one more than the highest id; room in tok */
    struct moe_vocab_slot *slot;    /* open addressing */
    uint32_t n_slots, used;         /* a power of two; how many hold an id */
};

#define MOE_VOCAB_INIT { MOE_BUF_INIT, NULL, 0, 0, NULL, 0, 0 }

void moe_vocab_fini(struct moe_vocab *v);

/*
 * Add a token. Errors: MOE_EFORMAT (text or id is there already), MOE_ELIMIT
 * (id >= max_ids, collisions), MOE_ENOMEM.
 */
int moe_vocab_add(struct moe_vocab *v, const char *p, size_t n, uint64_t id, uint64_t max_ids,
    struct moe_err *e);

/* The id of a text, or MOE_VOCAB_NONE. */
uint32_t moe_vocab_find(const struct moe_vocab *v, const char *p, size_t n);

/* The text of an id; false if there is none. */
bool moe_vocab_text(const struct moe_vocab *v, uint32_t id, const char **p, size_t *n);

#endif
