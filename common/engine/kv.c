/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns pages of keys and values: who has which, how many there are, and a list
 * of free ones. What is in a page is the device's.
 */
#include <stdlib.h>

#include "common/engine/kv.h"

struct moe_kv {
    struct moe_backend *b;
    struct moe_kv_shape shape;
    size_t limit, used;
    struct moe_mem **spare;     /* pages given back */
    size_t n_spare, cap_spare;
};

int
moe_kv_new(struct moe_backend *b, const struct moe_kv_shape *shape, size_t limit,
    struct moe_kv **out, struct moe_err *e)
{
    struct moe_kv *kv = calloc(1, sizeof(*kv));

    *out = NULL;
    if (kv == NULL)
        return moe_err_set(e, MOE_ENOMEM, "keys and values: out of memory");
    kv->b = b;
    kv->shape = *shape;
    kv->limit = limit;
    *out = kv;
    return 0;
}

void
moe_kv_free(struct moe_kv *kv)
{
    if (kv == NULL)
        return;
    for (size_t i = 0; i < kv->n_spare; i++)
        kv->b->ops->release(kv->b, kv->spare[i]);
    free(kv->spare);
    free(kv);
}

const struct moe_kv_shape *
moe_kv_shape(const struct moe_kv *kv)
{
    return &kv->shape;
}

size_t
moe_kv_page_bytes(const struct moe_kv *kv)
{
    return moe_backend_page(&kv->shape);
}

size_t
moe_kv_used(const struct moe_kv *kv)
{
    return kv->used;
}

void
moe_kv_seq_init(struct moe_kv_seq *s, struct moe_kv *kv)
{
    *s = (struct moe_kv_seq){ .kv = kv };
}

void
moe_kv_seq_fini(struct moe_kv_seq *s)
{
    if (s->kv == NULL)
        return;
    moe_kv_seq_cut(s, 0);
    free(s->pages);
    *s = (struct moe_kv_seq){ NULL, NULL, 0, 0 };
}

static int
page_take(struct moe_kv *kv, struct moe_mem **out, struct moe_err *e)
{
    int rc;

    if (kv->limit != 0 && kv->used >= kv->limit)
        return moe_err_set(e, MOE_ELIMIT, "keys and values: all %zu pages are in use",
            kv->limit);
    if (kv->n_spare == 0) {
        /* Room in the list first, so that giving back cannot fail. */
        if (kv->used >= kv->cap_spare) {
            size_t cap = kv->cap_spare == 0 ? 16 : 2 * kv->cap_spare;
            struct moe_mem **p = realloc(kv->spare, cap * sizeof(*p));

            if (p == NULL)
                return moe_err_set(e, MOE_ENOMEM, "keys and values: out of memory");
            kv->spare = p;
            kv->cap_spare = cap;
        }
        if ((rc = kv->b->ops->alloc(kv->b, moe_backend_page(&kv->shape), out, e)) != 0)
            return rc;
    } else {
        *out = kv->spare[--kv->n_spare];
    }
    kv->used++;
    return 0;
}

int
moe_kv_seq_grow(struct moe_kv_seq *s, size_t len, struct moe_err *e)
{
    size_t want = len / MOE_KV_PAGE + (len % MOE_KV_PAGE != 0);
    int rc;

    if (want > s->cap) {
        size_t cap = s->cap == 0 ? 8 : 2 * s->cap;
        struct moe_mem **p;

        cap = want > cap ? want : cap;
        if ((p = realloc(s->pages, cap * sizeof(*p))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "keys and values: out of memory");
        s->pages = p;
        s->cap = cap;
    }
    while (s->n < want) {
        if ((rc = page_take(s->kv, &s->pages[s->n], e)) != 0)
            return rc;
        s->n++;
    }
    return 0;
}

void
moe_kv_seq_cut(struct moe_kv_seq *s, size_t len)
{
    size_t keep = len / MOE_KV_PAGE + (len % MOE_KV_PAGE != 0);

    while (s->n > keep) {
        s->kv->spare[s->kv->n_spare++] = s->pages[--s->n];
        s->kv->used--;
    }
}
