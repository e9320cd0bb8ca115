/* SPDX-License-Identifier: Apache-2.0 */
/* Top-k against sorting, with ties, both zeros, infinities and NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernel/checkkern.h"

#define MOST 5000

struct item {
    float x;
    uint32_t i;
};

static int
compare(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;

    if (isnan(a->x) != isnan(b->x))
        return isnan(a->x) ? 1 : -1;
    if (a->x > b->x || a->x < b->x)
        return a->x > b->x ? -1 : 1;
    return a->i < b->i ? -1 : 1;
}

static void
one(const struct moe_kernels *k, size_t n, size_t top, int kind)
{
    static struct item items[MOST];
    float *x = ck_buf(0, n * sizeof(*x));
    uint32_t *idx = ck_buf(1, top * sizeof(*idx));
    bool same = true;

    ck_f32(x, n, kind);
    for (size_t i = 0; i < n; i++) {
        if (kind == CK_SPECIAL && ck_rand() % 4 == 0)
            x[i] = (float)(ck_rand() % 3);
        items[i] = (struct item){ x[i], (uint32_t)i };
    }
    qsort(items, n, sizeof(items[0]), compare);
    k->topk_f32(idx, x, n, top);
    for (size_t i = 0; i < top; i++)
        same = same && idx[i] == items[i].i;
    ck_expect(same && ck_intact(1), "%zu of %zu, %s", top, n, ck_kind_name(kind));
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("topk_f32", k->tier);
    for (int kind = 0; kind < CK_KINDS; kind++) {
        for (size_t n = 0; n <= 300; n++)
            for (size_t i = 0; i < 4; i++)
                one(k, n, i == 0 ? n : n < 10 * i ? n : (10 * i * i + n) % 10, kind);
        one(k, MOST, 8, kind);
        one(k, MOST, 100, kind);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    tier(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++)
        tier(k);
}

const struct ck_check check_topk = { "topk", run, NULL };
