/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-pair encoding of one word: symbols are characters, the pair of lowest
 * rank (leftmost of equals) is merged until none is left. Immutable after
 * loading; a run belongs to one thread.
 */
#ifndef MOE_ENGINE_BPE_H
#define MOE_ENGINE_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/tokens.h"
#include "common/engine/vocab.h"

#define MOE_BPE_MAX_MERGES ((size_t)16 << 20)
/* Bytes of one word; it takes 44 bytes of memory a byte. */
#define MOE_BPE_MAX_WORD ((size_t)256 << 20)

struct moe_bpe_pair { uint64_t key; uint32_t rank, id; };   /* key: left id, right id */

/* Characters below this have their ids in a table. */
enum { MOE_BPE_DIRECT = 0x180 };

struct moe_bpe {
    const struct moe_vocab *vocab;      /* borrowed */
    bool byte_fallback, fuse_unk, ignore_merges;
    uint32_t unk;                       /* MOE_VOCAB_NONE: unknown characters vanish */
    uint32_t direct[MOE_BPE_DIRECT], byte[256];
    struct moe_bpe_pair *pair;          /* open addressing, a power of two */
    size_t n_slots, n_merges;
    uint32_t next;                      /* the id after the one that the last merge makes */
};

/* vocab must be complete. The flags are the caller's to set. Errors: MOE_ENOMEM. */
void moe_bpe_init(struct moe_bpe *b, const struct moe_vocab *vocab);
void moe_bpe_fini(struct moe_bpe *b);

/*
 * Add the next merge by its two texts; a pair that comes again takes the later
 * rank. Errors: MOE_EFORMAT (a part or the whole is no token), MOE_ELIMIT,
 * MOE_ENOMEM.
 */
int moe_bpe_add(struct moe_bpe *b, const char *left, size_t n_left, const char *right,
    size_t n_right, struct moe_err *e);

struct moe_bpe_run;

/* All words of a run are appended to list, which nobody else shortens meanwhile. */
int moe_bpe_run_new(const struct moe_bpe *b, struct moe_tokens *list, struct moe_bpe_run **out,
    struct moe_err *e);
void moe_bpe_run_free(struct moe_bpe_run *run);

/* Append the ids of one word of UTF-8. Errors: MOE_ELIMIT, MOE_ENOMEM. */
int moe_bpe_word(struct moe_bpe_run *run, const char *p, size_t n, struct moe_err *e);

#endif
