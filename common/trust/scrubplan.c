/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the order of a scrub. Reads nothing and has no clock.
 */
#include <stdlib.h>

#include "common/trust/scrubplan.h"

/* What the comparison looks at. */
struct order {
    const struct moe_scrubplan_unit *u;
    int64_t period, now;
};

/* Seconds since it was well; a time in the future counts as never. */
static int64_t
age(const struct order *o, const struct moe_scrubplan_unit *u)
{
    return u->last <= 0 || u->last > o->now ? INT64_MAX : o->now - u->last;
}

/* 0 comes first. */
static int
rank(const struct order *o, const struct moe_scrubplan_unit *u)
{
    int64_t a = age(o, u);

    if (u->suspect)
        return 0;
    if (a >= o->period)
        return u->hot ? 1 : 2;
    return u->hot && a >= o->period / MOE_SCRUBPLAN_HOT ? 3 : 4;
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct order *o = ctx;
    size_t i = *(const size_t *)x, j = *(const size_t *)y;
    int ri = rank(o, &o->u[i]), rj = rank(o, &o->u[j]);
    int64_t ai = age(o, &o->u[i]), aj = age(o, &o->u[j]);

    if (ri != rj)
        return ri < rj ? -1 : 1;
    if (ai != aj)
        return ai > aj ? -1 : 1;
    return i < j ? -1 : i > j;
}

int
moe_scrubplan_init(struct moe_scrubplan *p, struct moe_scrubplan_unit *u, size_t n,
    int64_t period, int64_t now, struct moe_err *e)
{
    struct order o = { u, period, now };

    *p = (struct moe_scrubplan)MOE_SCRUBPLAN_INIT;
    p->order = calloc(n + 1, sizeof(*p->order));
    p->soon = calloc(n + 1, sizeof(*p->soon));
    if (p->order == NULL || p->soon == NULL) {
        moe_scrubplan_fini(p);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    p->u = u;
    p->n = n;
    for (size_t i = 0; i < n; i++) {
        p->order[i] = i;
        u[i].taken = false;
    }
    qsort_r(p->order, n, sizeof(*p->order), compare, &o);
    return 0;
}

size_t
moe_scrubplan_next(struct moe_scrubplan *p)
{
    if (p->at_soon < p->n_soon)
        return p->soon[p->at_soon++];
    while (p->at < p->n && p->u[p->order[p->at]].taken)
        p->at++;
    if (p->at == p->n)
        return MOE_SCRUBPLAN_NONE;
    p->u[p->order[p->at]].taken = true;
    return p->order[p->at++];
}

static void
bring(struct moe_scrubplan *p, size_t i, size_t group)
{
    if (p->u[i].taken || p->u[i].group != group)
        return;
    p->u[i].taken = true;
    p->soon[p->n_soon++] = i;
}

void
moe_scrubplan_tell(struct moe_scrubplan *p, size_t i, bool well, int64_t now)
{
    p->u[i].suspect = !well;
    if (well) {
        p->u[i].last = now;
        return;
    }
    for (size_t d = 1; d <= MOE_SCRUBPLAN_WIDEN; d++) {
        if (i >= d)
            bring(p, i - d, p->u[i].group);
        if (p->n - i > d)
            bring(p, i + d, p->u[i].group);
    }
}

void
moe_scrubplan_fini(struct moe_scrubplan *p)
{
    free(p->order);
    free(p->soon);
    *p = (struct moe_scrubplan)MOE_SCRUBPLAN_INIT;
}
