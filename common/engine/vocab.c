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

/* The slot of a text with hash h, or the free one where it belongs; NULL: too many probes. */
static struct moe_vocab_slot *
find_slot(const struct moe_vocab *v, const char *p, size_t n, uint32_t h)
{
    uint32_t mask = v->n_slots - 1;

    for (uint32_t i = 0; i < MOE_VOCAB_MAX_PROBES; i++) {
        struct moe_vocab_slot *s = &v->slot[(h + i) & mask];

        if (s->id == MOE_VOCAB_NONE || (s->hash == h && same(v, s->id, p, n)))
            return s;
    }
    return NULL;
}

static int
grow_slots(struct moe_vocab *v, struct moe_err *e)
{
    uint32_t n = v->n_slots == 0 ? (uint32_t)FIRST_SLOTS : 2 * v->n_slots;
    struct moe_vocab_slot *slot = malloc(n * sizeof(*slot));

    if (slot == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    memset(slot, 0xff, n * sizeof(*slot));
    for (uint32_t i = 0; i < v->n_slots; i++) {
        uint32_t at = v->slot[i].hash, tries = 0;

        if (v->slot[i].id == MOE_VOCAB_NONE)
            continue;
        while (slot[at & (n - 1)].id != MOE_VOCAB_NONE && tries++ < MOE_VOCAB_MAX_PROBES)
            at++;
        if (tries > MOE_VOCAB_MAX_PROBES) {
            free(slot);
            return moe_err_set(e, MOE_ELIMIT, "too many tokens share a hash");
        }
        slot[at & (n - 1)] = v->slot[i];
    }
    free(v->slot);
    v->slot = slot;
    v->n_slots = n;
    return 0;
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
    uint32_t h = hash(p, n);
    struct moe_vocab_slot *s;
    int rc;

    if (id >= max_ids || id >= MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_ELIMIT, "id %llu is too large", (unsigned long long)id);
    if (n >= MOE_VOCAB_NONE - v->text.len)
        return moe_err_set(e, MOE_ELIMIT, "more than 4 GiB of tokens");
    if (!grow_ids(v, (uint32_t)id))
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (v->tok[id].at != MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_EFORMAT, "id %llu has two tokens", (unsigned long long)id);
    if (v->used >= v->n_slots / 2 && (rc = grow_slots(v, e)) != 0)
        return rc;
    if ((s = find_slot(v, p, n, h)) == NULL)
        return moe_err_set(e, MOE_ELIMIT, "too many tokens share a hash");
    if (s->id != MOE_VOCAB_NONE)
        return moe_err_set(e, MOE_EFORMAT, "token \"%.*s\" is there twice",
            (int)(n < 80 ? n : 80), p);
    v->tok[id] = (struct moe_vocab_text){ (uint32_t)v->text.len, (uint32_t)n };
    moe_buf_add(&v->text, p, n);
    if (v->text.bad) {
        v->tok[id].at = MOE_VOCAB_NONE;
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    *s = (struct moe_vocab_slot){ (uint32_t)id, h };
    v->used++;
    if (v->n <= id)
        v->n = (uint32_t)id + 1;
    return 0;
}

uint32_t
moe_vocab_find(const struct moe_vocab *v, const char *p, size_t n)
{
    const struct moe_vocab_slot *s = v->n_slots == 0 ? NULL : find_slot(v, p, n, hash(p, n));

    return s == NULL ? MOE_VOCAB_NONE : s->id;
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
