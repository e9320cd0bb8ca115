/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns lists of stretches of text.
 */
#include <stdlib.h>

#include "common/engine/span.h"

int
moe_span_add(struct moe_spans *s, size_t from, size_t to, struct moe_err *e)
{
    if (from >= to)
        return 0;
    if (s->n > 0 && s->p[s->n - 1].to >= from) {
        s->p[s->n - 1].to = to;
        return 0;
    }
    if (s->n == s->cap) {
        size_t cap = s->cap < 16 ? 16 : 2 * s->cap;
        struct moe_span *p = realloc(s->p, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        s->p = p;
        s->cap = cap;
    }
    s->p[s->n++] = (struct moe_span){ from, to };
    return 0;
}

void
moe_span_fini(struct moe_spans *s)
{
    free(s->p);
    *s = (struct moe_spans)MOE_SPANS_INIT;
}

bool
moe_span_overlaps(const struct moe_spans *s, size_t from, size_t to)
{
    size_t lo = 0, hi = s->n;

    /* The first stretch that ends after `from`. */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->p[mid].to <= from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n && s->p[lo].from < to;
}
