/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the two-way map between tokens and ids: one block of text, an array by
 * id, a hash table of ids by text. Knows nothing of what tokens mean.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/vocab.h"

enum { FIRST_SLOTS = 1024 };

void
moe_vocab_fini(struct moe_vocab *v)
{
    moe_buf_fini(&v->text);
    free(v->tok);
    free(v->slot);
    *v = (struct moe_vocab)MOE_VOCAB_INIT;
}

static uint32_t
hash(const char *p, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ n;

    while (n >= 8) {
        uint64_t w;

        memcpy(&w, p, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
        p += 8;
        n -= 8;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3u;
    h ^= h >> 29;
    h *= 0xff51afd7ed558ccdu;
    return (uint32_t)(h >> 32);
}

static bool
same(const struct moe_vocab *v, uint32_t id, const char *p, size_t n)
{
    return v->tok[id].len == n && (n == 0 || memcmp(v->text.p + v->tok[id].at, p, n) == 0);
}

/* The slot of a text, or the free one where it belongs; NULL: too many probes. */
static uint32_t *
find_slot(const struct moe_vocab *v, const char *p, size_t n)
{
    uint32_t mask = v->n_slots - 1, at = hash(p, n) & mask;

    for (int i = 0; i < MOE_VOCAB_MAX_PROBES; i++) {
        uint32_t *s = &v->slot[at];

        if (*s == MOE_VOCAB_NONE || same(v, *s, p, n))
            return s;
        at = (at + 1) & mask;
    }
    return NULL;
}

static bool
grow_slots(struct moe_vocab *v, struct moe_err *e)
{
    struct moe_vocab big = *v;

    big.n_slots = v->n_slots == 0 ? (uint32_t)FIRST_SLOTS : 2 * v->n_slots;
    big.slot = malloc(big.n_slots * sizeof(*big.slot));
    if (big.slot == NULL) {
        moe_err_set(e, MOE_ENOMEM, "out of memory");
        return false;
    }
    memset(big.slot, 0xff, big.n_slots * sizeof(*big.slot));
    for (uint32_t i = 0; i < v->n_slots; i++) {
        uint32_t id = v->slot[i], *s;

        if (id == MOE_VOCAB_NONE)
            continue;
        s = find_slot(&big, v->text.p + v->tok[id].at, v->tok[id].len);
        if (s == NULL) {
            free(big.slot);
            moe_err_set(e, MOE_ELIMIT, "too many tokens share a hash");
            return false;
        }
        *s = id;
    }
    free(v->slot);
    v->slot = big.slot;
    v->n_slots = big.n_slots;
    return true;
}

static bool
grow_ids(struct moe_vocab *v, uint32_t id)
{
    uint32_t cap = v->cap < 256 ? 256 : v->cap;
    struct moe_vocab_text *p;

    if (id < v->cap)
        return true;
    while (cap <= id)
        cap = cap > UINT32_MAX / 2 ? UINT32_MAX : 2 * cap;
    if ((p = realloc(v->tok, cap * sizeof(*p))) == NULL)
        return false;
    for (uint32_t i = v->cap; i < cap; i++)
        p[i] = (struct moe_vocab_text){ MOE_VOCAB_NONE, 0 };
    v->tok = p;
    v->cap = cap;
    return true;
}

int
moe_vocab_add(struct moe_vocab *v, const char *p, size_t n, uint64_t id, uint64_t max_ids,
    struct moe_err *e)
{
    uint32_t *s;

    if (id >= max_ids || id >= MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_ELIMIT, "id %llu is too large", (unsigned long long)id);
    if (n >= MOE_VOCAB_NONE - v->text.len)
        return moe_err_set(e, MOE_ELIMIT, "more than 4 GiB of tokens");
    if (!grow_ids(v, (uint32_t)id))
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (v->tok[id].at != MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_EFORMAT, "id %llu has two tokens", (unsigned long long)id);
    if (v->used >= v->n_slots / 2 && !grow_slots(v, e))
        return e == NULL ? MOE_ENOMEM : e->code;
    if ((s = find_slot(v, p, n)) == NULL)
        return moe_err_set(e, MOE_ELIMIT, "too many tokens share a hash");
    if (*s != MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_EFORMAT, "token \"%.*s\" is there twice",
            (int)(n < 80 ? n : 80), p);
    v->tok[id] = (struct moe_vocab_text){ (uint32_t)v->text.len, (uint32_t)n };
    moe_buf_add(&v->text, p, n);
    if (v->text.bad) {
        v->tok[id].at = MOE_VOCAB_NONE;
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    *s = (uint32_t)id;
    v->used++;
    if (v->n <= id)
        v->n = (uint32_t)id + 1;
    return 0;
}

uint32_t
moe_vocab_find(const struct moe_vocab *v, const char *p, size_t n)
{
    const uint32_t *s = v->n_slots == 0 ? NULL : find_slot(v, p, n);

    return s == NULL ? MOE_VOCAB_NONE : *s;
}

bool
moe_vocab_text(const struct moe_vocab *v, uint32_t id, const char **p, size_t *n)
{
    if (id >= v->n || v->tok[id].at == MOE_VOCAB_NONE)
        return false;
    *p = v->text.p + v->tok[id].at;
    *n = v->tok[id].len;
    return true;
}
