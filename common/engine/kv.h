/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and values of sequences, in pages of MOE_KV_PAGE positions (all layers
 * of a model together), taken from and given back to one store with a limit.
 * Values are F32. A store and its sequences belong to one thread.
 */
#ifndef MOE_ENGINE_KV_H
#define MOE_ENGINE_KV_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/backend.h"

struct moe_kv;              /* a store of pages */

struct moe_kv_seq {         /* the pages of one sequence, in order of positions */
    struct moe_kv *kv;
    struct moe_mem **pages;
    size_t n, cap;
};

/* limit: pages that may be in use at once, 0 = no limit. b must outlive the store. */
int moe_kv_new(struct moe_backend *b, const struct moe_kv_shape *shape, size_t limit,
    struct moe_kv **out, struct moe_err *e);

/* Every sequence has been freed before. NULL is allowed. */
void moe_kv_free(struct moe_kv *kv);

const struct moe_kv_shape *moe_kv_shape(const struct moe_kv *kv);

/* Bytes of a page, and pages in use by sequences. */
size_t moe_kv_page_bytes(const struct moe_kv *kv);
size_t moe_kv_used(const struct moe_kv *kv);

void moe_kv_seq_init(struct moe_kv_seq *s, struct moe_kv *kv);
void moe_kv_seq_fini(struct moe_kv_seq *s);

/* Room for positions 0..len-1. Errors: MOE_ELIMIT (the store is full), MOE_ENOMEM. */
int moe_kv_seq_grow(struct moe_kv_seq *s, size_t len, struct moe_err *e);

/* Give back the pages that hold nothing below position len. */
void moe_kv_seq_cut(struct moe_kv_seq *s, size_t len);

#endif
