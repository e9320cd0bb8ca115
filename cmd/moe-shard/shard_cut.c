/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the options of a cut, the way from them to a plan, and the table of
 * ranks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_cut.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/pool.h"

#define MAX_OWNER ((size_t)1 << 28)     /* bytes */

static int
count(const char *arg, const char *what, uint32_t *out, struct moe_err *e)
{
    int64_t v = 1;
    int rc = moe_num_int(arg, 1, MOE_GRID_MAX, what, &v, e);

    *out = (uint32_t)v;
    return rc;
}

int
shard_cut_option(struct shard_cut_options *o, int id, const char *arg, struct moe_err *e)
{
    int64_t v = 0;
    int rc = 0;

    switch (id) {
    case SHARD_CUT_TP: return count(arg, "--tp", &o->tp, e);
    case SHARD_CUT_EP: return count(arg, "--ep", &o->ep, e);
    case SHARD_CUT_PP: return count(arg, "--pp", &o->pp, e);
    case SHARD_CUT_EXPERTS:
        o->deal = strcmp(arg, "linear") == 0 ? MOE_GRID_LINEAR : MOE_GRID_ROUND_ROBIN;
        break;
    case SHARD_CUT_PLAN: o->plan = arg; break;
    case SHARD_CUT_UNEVEN:
        o->spread = strcmp(arg, "chunk") == 0 ? MOE_CUT_CHUNK : MOE_CUT_BALANCED;
        break;
    case SHARD_CUT_LAYOUT:
        o->layout = strcmp(arg, "dirs") == 0 ? SHARD_RANKS_DIRS : SHARD_RANKS_FILES;
        break;
    case SHARD_CUT_DRY: o->dry = true; break;
    case SHARD_CUT_JSON: o->json = true; break;
    case SHARD_CUT_FORCE: o->force = true; break;
    case SHARD_CUT_THREADS:
        rc = moe_num_int(arg, 1, MOE_POOL_MAX, "--threads", &v, e);
        o->threads = (int)v;
        break;
    default: o->quiet = true;
    }
    return rc;
}

/* Experts of a model without a configuration: as its tensors have them. */
static uint64_t
experts_of(const struct shard_set *s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct moe_tensor *t = s->t[i];
        struct moe_naming x;

        if (!moe_naming_parse(NULL, 0, t->name, &x) || x.role != MOE_ROLE_EXPERT)
            continue;
        if (x.stacked && t->rank > 0 && t->shape[0] > n)
            n = t->shape[0];
        else if (x.expert >= 0 && (uint64_t)x.expert + 1 > n)
            n = (uint64_t)x.expert + 1;
    }
    return n;
}

/* Who holds which expert, layer by layer, from a plan; layers without experts are not in it. */
static int
fill_owner(const struct shard_planfile *p, const char *name, struct shard_set *s,
    struct moe_err *e)
{
    struct moe_grid *g = &s->grid;
    uint64_t n;

    if (!moe_num_mul(g->layers, g->experts, &n) || !moe_num_mul(n, g->ep, &n) || n > MAX_OWNER)
        return moe_err_set(e, MOE_ELIMIT, "%s: over %zu layers x experts x devices", name,
            MAX_OWNER);
    if ((g->owner = calloc((size_t)n + 1, 1)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    for (uint64_t l = 0; l < g->layers; l++) {
        size_t i = shard_planfile_layer(p, (uint32_t)l);
        uint8_t *owner = g->owner + l * g->experts * g->ep;

        for (uint64_t x = 0; i == p->layers && x < g->experts; x++)
            owner[x * g->ep] = 1;
        for (size_t k = 0, at = 0; i < p->layers && k < p->devices; at += p->room[k], k++) {
            for (size_t j = at; j < at + p->room[k]; j++)
                owner[p->slot[i * p->slots + j] * g->ep + k] = 1;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        struct moe_naming x;

        if (moe_naming_parse(NULL, 0, s->t[i]->name, &x) && x.role == MOE_ROLE_EXPERT &&
            x.layer >= 0 && (uint64_t)x.layer < g->layers &&
            shard_planfile_layer(p, (uint32_t)x.layer) == p->layers)
            return moe_err_set(e, MOE_EUNSUP, "%s: layer %lld is not in it, and has %s", name,
                (long long)x.layer, s->t[i]->name);
    }
    return 0;
}

/* Experts as a plan deals them out: as many expert-parallel ranks as it has devices. */
static int
take_plan(const struct shard_cut_options *o, struct shard_set *s, struct moe_err *e)
{
    struct shard_planfile p;
    int rc;

    if (s->grid.layers == 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: without a config.json layers are not known",
            o->plan);
    if ((rc = shard_planfile_read(o->plan, &p, e)) != 0)
        return rc;
    if (p.experts != s->grid.experts || (o->ep != 1 && o->ep != p.devices))
        rc = moe_err_set(e, MOE_EUNSUP, "%s: %zu experts on %zu devices, and not %" PRIu64 " on %"
            PRIu32, o->plan, p.experts, p.devices, s->grid.experts, o->ep);
    else {
        s->grid.deal = MOE_GRID_MAP;
        s->grid.ep = (uint32_t)p.devices;
        rc = fill_owner(&p, o->plan, s, e);
    }
    shard_planfile_fini(&p);
    return rc;
}

int
shard_cut_grid(const struct shard_cut_options *o, const struct moe_config *config,
    struct shard_set *s, struct moe_err *e)
{
    int rc;

    s->grid = (struct moe_grid){ .tp = o->tp, .ep = o->ep, .pp = o->pp, .deal = o->deal };
    s->spread = o->spread;
    s->layout = o->layout;
    if (config != NULL) {
        s->grid.layers = config->layers < 0 ? 0 : (uint64_t)config->layers;
        s->grid.experts = config->experts < 0 ? 0 : (uint64_t)config->experts;
    } else {
        s->grid.experts = experts_of(s);
    }
    if (o->plan != NULL && (rc = take_plan(o, s, e)) != 0)
        return rc;
    if (moe_grid_ranks(&s->grid) == 1)
        return moe_err_set(e, MOE_EUSAGE, "nothing to cut: --tp, --ep or --pp is wanted");
    return moe_grid_check(&s->grid, e);
}

int
shard_cut_order(struct moe_source *src, struct shard_set *s, struct moe_err *e)
{
    int32_t *idx = NULL;
    int rc = 0;

    for (size_t i = 0; i < s->n && rc == 0 && !moe_source_is_stream(src); i++) {
        size_t n = (size_t)(s->t[i]->end - s->t[i]->begin) / 4;
        struct moe_naming name;
        int32_t *p;

        (void)moe_naming_parse(NULL, 0, s->t[i]->name, &name);
        if (name.part != MOE_PART_G_IDX || s->t[i]->dtype != MOE_I32 || n == 0)
            continue;
        if ((p = realloc(idx, n * sizeof(*idx))) == NULL) {
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
            break;
        }
        idx = p;
        rc = moe_source_read(src, i, 0, idx, n * sizeof(*idx), e);
        for (size_t k = 1; rc == 0 && k < n; k++)
            s->unordered[i] = s->unordered[i] || idx[k] < idx[k - 1];
    }
    free(idx);
    return rc;
}

static int
unordered(void *ctx, size_t i, uint64_t group, bool *yes, struct moe_err *e)
{
    const struct shard_set *s = ctx;

    (void)group;
    (void)e;
    *yes = s->unordered[i];
    return 0;
}

int
shard_cut_plan(const struct shard_set *s, const struct moe_config *config, const char *name,
    struct moe_cutplan *out, struct moe_err *e)
{
    struct moe_cutplan_in in = { .name = name, .t = s->t, .n = s->n, .config = config,
        .grid = &s->grid, .spread = s->spread, .act_order = unordered,
        .ctx = (void *)(uintptr_t)s };

    return moe_cutplan_make(&in, out, e);
}

int
shard_cut_print(const struct moe_cutplan *p, bool json, const uint64_t *moved, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT, line = MOE_BUF_INIT;
    uint64_t total = 0, all = 0, bytes;
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < moe_grid_ranks(p->grid); k++) {
        struct moe_jsonw w = { &line, false };
        size_t parts;

        moe_buf_clear(&b);
        if ((rc = shard_ranks_header(p, k, &b, &bytes, &parts, e)) != 0)
            break;
        total += b.len + bytes;
        all += moved != NULL ? moved[k] : 0;
        if (!json) {
            printf("rank %5" PRIu32 "  %8zu tensors  %15" PRIu64 " bytes", k, parts,
                b.len + bytes);
            if (moved != NULL)
                printf("  %15" PRIu64 " moved", moved[k]);
            printf("\n");
            continue;
        }
        moe_buf_clear(&line);
        moe_jsonw_open(&w, '{');
        moe_jsonw_key(&w, "rank");
        moe_jsonw_uint(&w, k);
        moe_jsonw_key(&w, "tensors");
        moe_jsonw_uint(&w, parts);
        moe_jsonw_key(&w, "bytes");
        moe_jsonw_uint(&w, b.len + bytes);
        if (moved != NULL) {
            moe_jsonw_key(&w, "moved");
            moe_jsonw_uint(&w, moved[k]);
        }
        moe_jsonw_close(&w, '}');
        if (line.bad)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        else
            printf("%s\n", line.p);
    }
    if (rc == 0 && !json) {
        printf("all         %8zu tensors  %15" PRIu64 " bytes", p->n, total);
        if (moved != NULL)
            printf("  %15" PRIu64 " moved", all);
        printf("\n");
    }
    moe_buf_fini(&b);
    moe_buf_fini(&line);
    return rc;
}
