/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is printed of a plan: balance, bounds, pairs kept, traffic. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_near.h"
#include "cmd/moe-shard/shard_place.h"
#include "cmd/moe-shard/shard_tell.h"
#include "cmd/moe-shard/shard_worth.h"
#include "common/base/jsonw.h"

struct value { double ratio, bound; };

/* Largest device over mean of one file's counts in layer i, and the least possible. */
static struct value
value_of(const struct shard_worth *p, size_t i)
{
    double *load = calloc(p->plan->experts, sizeof(*load));
    struct shard_place_in in = { p->plan->experts, p->plan->devices, 1, load, p->plan->room,
        p->speed };
    struct value w = { 1, 1 };

    if (load == NULL)
        return w;
    shard_load_add(p->load, i, (double)p->plan->devices, load);
    w.ratio = shard_place_cost(&in, p->plan->slot + i * p->plan->slots);
    w.bound = shard_place_bound(&in);
    if (w.bound == 0)
        w = (struct value){ 1, 1 };
    free(load);
    return w;
}

static size_t
copies_twice(const struct shard_worth *p, size_t i)
{
    const uint32_t *slot = p->plan->slot + i * p->plan->slots;
    size_t n = 0;

    for (size_t g = 0, at = 0; g < p->plan->devices; at += p->plan->room[g], g++) {
        for (size_t a = at; a < at + p->plan->room[g]; a++) {
            for (size_t b = a + 1; b < at + p->plan->room[g]; b++)
                n += slot[a] == slot[b];
        }
    }
    return n;
}

static double
locality(const struct shard_worth *p, size_t i)
{
    const struct shard_affine_link *l = p->links == NULL ? NULL :
        shard_affine_into(p->links, p->plan->id[i]);
    size_t before = l == NULL ? p->plan->layers : shard_planfile_layer(p->plan, l->from);
    double *load = calloc(p->plan->experts, sizeof(*load)), v = -1;
    struct shard_place_in in = { p->plan->experts, p->plan->devices, 1, load, p->plan->room,
        p->speed };

    if (before < p->plan->layers && load != NULL)
        v = shard_affine_share(&in, l, p->plan->slot + before * p->plan->slots,
            p->plan->slot + i * p->plan->slots);
    free(load);
    return v;
}

static void
real(struct moe_jsonw *w, const char *key, double v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_real(w, v);
}

/* A line a layer of one file, and one for all of its layers. */
static int
tell_loads(const struct shard_worth *p, struct moe_err *e)
{
    double ratio = 0, balance = 0, gap = 0, worst = 0;
    size_t twice = 0, n = p->plan->layers;
    struct moe_buf b = MOE_BUF_INIT;

    for (size_t i = 0; i <= n; i++) {
        struct value v = i < n ? value_of(p, i) : (struct value){ ratio / (double)n, 1 };
        double near = i < n ? locality(p, i) : -1;
        struct moe_jsonw w = { &b, false };

        if (i < n) {
            ratio += v.ratio;
            balance += 1 / v.ratio;
            gap += v.ratio / v.bound - 1;
            worst = v.ratio > worst ? v.ratio : worst;
            twice += copies_twice(p, i);
        }
        moe_buf_clear(&b);
        if (p->json) {
            moe_jsonw_open(&w, '{');
            moe_jsonw_key(&w, "load");
            moe_jsonw_str(&w, p->name, strlen(p->name));
            moe_jsonw_key(&w, "layer");
            if (i < n)
                moe_jsonw_uint(&w, p->plan->id[i]);
            else
                moe_jsonw_null(&w);
            real(&w, "max_over_mean", v.ratio);
            real(&w, "balancedness", i < n ? 1 / v.ratio : balance / (double)n);
            real(&w, "gap_to_bound", i < n ? v.ratio / v.bound - 1 : gap / (double)n);
            if (i < n)
                real(&w, "bound_over_mean", v.bound);
            else
                real(&w, "worst_layer", worst);
            if (near >= 0)
                real(&w, "same_device_share", near);
            moe_jsonw_key(&w, "duplicates");
            moe_jsonw_uint(&w, i < n ? copies_twice(p, i) : twice);
            moe_jsonw_close(&w, '}');
            moe_buf_byte(&b, '\n');
        } else if (i < n) {
            moe_buf_fmt(&b, "layer %4" PRIu32 "  max/mean %8.5f  bound %8.5f  gap %7.3f %%",
                p->plan->id[i], v.ratio, v.bound, 100 * (v.ratio / v.bound - 1));
            if (near >= 0)
                moe_buf_fmt(&b, "  pairs kept %5.1f %%", 100 * near);
            moe_buf_byte(&b, '\n');
        } else {
            moe_buf_show(&b, p->name, strlen(p->name));
            moe_buf_fmt(&b, ": balancedness %.5f, max/mean %.5f, worst layer %.5f, gap %.3f %%, %zu"
                " twice on a device\n", balance / (double)n, v.ratio, worst,
                100 * gap / (double)n, twice);
        }
        if (b.bad) {
            moe_buf_fini(&b);
            return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        }
        (void)fwrite(b.p, 1, b.len, stdout);
    }
    moe_buf_fini(&b);
    return 0;
}

/* What goes over each link when a million experts are chosen in each layer. */
static int
tell_links(const struct shard_worth *p, struct moe_err *e)
{
    size_t n = p->plan->devices;
    double *load = calloc(p->plan->experts, sizeof(*load));
    double *one = calloc(n * n, sizeof(*one)), *all = calloc(n * n, sizeof(*all));
    struct shard_place_in in = { p->plan->experts, n, 1, load, p->plan->room, p->speed };
    int rc = load == NULL || one == NULL || all == NULL ?
        moe_err_set(e, MOE_ENOMEM, "plan: out of memory") : 0;

    for (size_t i = 0; rc == 0 && i < p->plan->layers; i++) {
        memset(load, 0, p->plan->experts * sizeof(*load));
        shard_load_add(p->load, i, 1e6, load);
        rc = shard_near_bytes(&in, p->plan->slot + i * p->plan->slots, p->wire, one, e);
        for (size_t k = 0; k < n * n; k++)
            all[k] += one[k];
    }
    if (rc == 0)
        rc = shard_tell_links(p->wire, all, p->json, e);
    free(load);
    free(one);
    free(all);
    return rc;
}

int
shard_worth_tell(const struct shard_worth *p, struct moe_err *e)
{
    int rc = tell_loads(p, e);

    return rc == 0 && p->wire != NULL ? tell_links(p, e) : rc;
}
