/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns dictionaries in order of insertion, with a hash table when they are
 * larger than a few keys.
 */
#include <string.h>

#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"

enum { SMALL = 8 };     /* up to here keys are compared one by one */

int
moe_template_dict_new(struct moe_trun *r, struct moe_tval *out)
{
    struct moe_tdict *d = moe_template_value_alloc(r, 1, sizeof(*d));

    if (d == NULL)
        return MOE_T_FAILED;
    *d = (struct moe_tdict){ 0 };
    *out = (struct moe_tval){ .kind = MOE_T_DICT, .u.d = d };
    return 0;
}

/* Equal values have equal hashes: 1, 1.0 and true are one key. */
static int
hash(struct moe_trun *r, struct moe_tval v, uint64_t *h)
{
    const char *p = NULL;
    size_t n = 0;
    double f;
    int rc = 0;

    switch (v.kind) {
    case MOE_T_STR:
        p = v.u.s->p;
        n = v.u.s->n;
        break;
    case MOE_T_BOOL:
    case MOE_T_INT:
    case MOE_T_FLOAT:
        f = v.kind == MOE_T_BOOL ? v.u.b : v.kind == MOE_T_INT ? (double)v.u.i : v.u.f;
        f += 0.0;       /* -0.0 is 0.0 */
        p = (const char *)&f;
        n = sizeof(f);
        break;
    case MOE_T_TUPLE:
        *h = 7 + v.u.l->n;
        for (size_t i = 0; rc == 0 && i < v.u.l->n; i++) {
            uint64_t one = 0;

            if ((rc = moe_template_value_deeper(r)) != 0)
                return rc;
            rc = hash(r, v.u.l->v[i], &one);
            r->depth--;
            *h = (*h ^ one) * 0x100000001b3u;
        }
        return rc;
    case MOE_T_LIST:
    case MOE_T_DICT:
        return moe_template_value_fail(r, "unhashable type: '%s'", moe_template_value_type(&v));
    default:
        *h = (uint64_t)v.kind;
        return 0;
    }
    *h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ (unsigned char)p[i]) * 0x100000001b3u;
    *h ^= *h >> 31;
    return 0;
}

/* The place of key k, or d->n. */
static int
find(struct moe_trun *r, const struct moe_tdict *d, struct moe_tval k, size_t *at)
{
    uint64_t h = 0;
    bool same = false;
    int rc = hash(r, k, &h);

    if (rc != 0)
        return rc;
    if (d->slot == NULL) {
        for (*at = 0; *at < d->n; ++*at)
            if ((rc = moe_template_compare_equal(r, d->k[*at], k, &same)) != 0 || same)
                return rc;
        return 0;
    }
    for (size_t i = h;; i++) {
        i &= d->n_slots - 1;
        if (d->slot[i] == UINT32_MAX)
            break;
        *at = d->slot[i];
        if ((rc = moe_template_value_step(r, 1)) != 0 ||
            (rc = moe_template_compare_equal(r, d->k[*at], k, &same)) != 0 || same)
            return rc;
    }
    *at = d->n;
    return 0;
}

/* Put all keys into a table of twice their room. */
static int
build_slots(struct moe_trun *r, struct moe_tdict *d)
{
    d->n_slots = 4 * d->cap;
    if ((d->slot = moe_template_value_alloc(r, d->n_slots, sizeof(*d->slot))) == NULL)
        return MOE_T_FAILED;
    memset(d->slot, 0xff, d->n_slots * sizeof(*d->slot));
    for (size_t i = 0; i < d->n; i++) {
        uint64_t h = 0;
        size_t at;
        int rc = hash(r, d->k[i], &h);

        if (rc != 0)
            return rc;
        for (at = h & (d->n_slots - 1); d->slot[at] != UINT32_MAX;)
            at = (at + 1) & (d->n_slots - 1);
        d->slot[at] = (uint32_t)i;
    }
    return 0;
}

static int
grow(struct moe_trun *r, struct moe_tdict *d)
{
    size_t cap = d->cap == 0 ? SMALL : 2 * d->cap;
    struct moe_tval *k = moe_template_value_alloc(r, cap, sizeof(*k));
    struct moe_tval *v = k == NULL ? NULL : moe_template_value_alloc(r, cap, sizeof(*v));

    if (v == NULL)
        return MOE_T_FAILED;
    if (d->n > 0) {
        memcpy(k, d->k, d->n * sizeof(*k));
        memcpy(v, d->v, d->n * sizeof(*v));
    }
    d->k = k;
    d->v = v;
    d->cap = cap;
    return cap > SMALL ? build_slots(r, d) : 0;
}

int
moe_template_dict_set(struct moe_trun *r, struct moe_tdict *d, struct moe_tval k,
    struct moe_tval v)
{
    uint64_t h = 0;
    size_t at = 0;
    int rc = find(r, d, k, &at);

    if (rc != 0)
        return rc;
    if (at < d->n) {
        d->v[at] = v;
        return 0;
    }
    if (d->n == d->cap && (rc = grow(r, d)) != 0)
        return rc;
    d->k[d->n] = k;
    d->v[d->n] = v;
    if (d->slot != NULL) {
        if ((rc = hash(r, k, &h)) != 0)
            return rc;
        for (at = h & (d->n_slots - 1); d->slot[at] != UINT32_MAX;)
            at = (at + 1) & (d->n_slots - 1);
        d->slot[at] = (uint32_t)d->n;
    }
    d->n++;
    return moe_template_value_step(r, 1);
}

int
moe_template_dict_get(struct moe_trun *r, const struct moe_tdict *d, struct moe_tval k,
    const struct moe_tval **out)
{
    size_t at = 0;
    int rc = find(r, d, k, &at);

    *out = rc == 0 && at < d->n ? &d->v[at] : NULL;
    return rc;
}

const struct moe_tval *
moe_template_dict_named(const struct moe_tdict *d, const char *name)
{
    struct moe_tstr s = { .p = name, .n = strlen(name) };
    struct moe_tval k = { .kind = MOE_T_STR, .u.s = &s };
    struct moe_trun quiet = { .name = "" };
    const struct moe_tval *v = NULL;

    /* Strings neither fail to hash nor to compare. */
    (void)moe_template_dict_get(&quiet, d, k, &v);
    return v;
}
