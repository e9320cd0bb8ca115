/* SPDX-License-Identifier: Apache-2.0 */
/* Owns sets of code points; what they look like as bytes is spell.c's. */
#include <stdlib.h>
#include <string.h>

#include "common/engine/codeset.h"

#define FIRST_SURROGATE 0xD800U
#define LAST_SURROGATE 0xDFFFU

void
moe_codeset_fini(struct moe_codeset *s)
{
    free(s->r);
    *s = (struct moe_codeset)MOE_CODESET_INIT;
}

static int
room(struct moe_codeset *s, size_t n, struct moe_err *e)
{
    size_t cap = s->cap == 0 ? 4 : s->cap;
    struct moe_codeset_range *p;

    while (cap < n)
        cap *= 2;
    if (cap == s->cap)
        return 0;
    if ((p = realloc(s->r, cap * sizeof(*p))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "characters: out of memory");
    s->r = p;
    s->cap = cap;
    return 0;
}

static int
add(struct moe_codeset *s, uint32_t lo, uint32_t hi, struct moe_err *e)
{
    size_t from = 0, to;
    int rc;

    while (from < s->n && s->r[from].hi + 1 < lo)
        from++;
    for (to = from; to < s->n && s->r[to].lo <= hi + 1; to++) {
        lo = s->r[to].lo < lo ? s->r[to].lo : lo;
        hi = s->r[to].hi > hi ? s->r[to].hi : hi;
    }
    if ((rc = room(s, s->n + 1, e)) != 0)
        return rc;
    memmove(s->r + from + 1, s->r + to, (s->n - to) * sizeof(*s->r));
    s->r[from] = (struct moe_codeset_range){ lo, hi };
    s->n = s->n - (to - from) + 1;
    return 0;
}

int
moe_codeset_add(struct moe_codeset *s, uint32_t lo, uint32_t hi, struct moe_err *e)
{
    int rc = 0;

    if (lo < FIRST_SURROGATE)
        rc = add(s, lo, hi < FIRST_SURROGATE ? hi : FIRST_SURROGATE - 1, e);
    if (rc == 0 && hi > LAST_SURROGATE)
        rc = add(s, lo > LAST_SURROGATE ? lo : LAST_SURROGATE + 1, hi, e);
    return rc;
}

int
moe_codeset_join(struct moe_codeset *s, const struct moe_codeset *b, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < b->n; i++)
        rc = add(s, b->r[i].lo, b->r[i].hi, e);
    return rc;
}

int
moe_codeset_invert(struct moe_codeset *s, struct moe_err *e)
{
    struct moe_codeset out = MOE_CODESET_INIT;
    uint32_t next = 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < s->n; i++) {
        if (s->r[i].lo > next)
            rc = moe_codeset_add(&out, next, s->r[i].lo - 1, e);
        next = s->r[i].hi + 1;
    }
    if (rc == 0 && next <= MOE_CODESET_LAST)
        rc = moe_codeset_add(&out, next, MOE_CODESET_LAST, e);
    moe_codeset_fini(rc == 0 ? s : &out);
    if (rc == 0)
        *s = out;
    return rc;
}

bool
moe_codeset_has(const struct moe_codeset *s, uint32_t c)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->r[mid].hi < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n && s->r[lo].lo <= c;
}
