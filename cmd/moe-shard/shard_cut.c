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
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/pool.h"

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

int
shard_cut_grid(const struct shard_cut_options *o, const struct moe_config *config,
    struct shard_set *s, struct moe_err *e)
{
    s->grid = (struct moe_grid){ .tp = o->tp, .ep = o->ep, .pp = o->pp, .deal = o->deal };
    s->spread = o->spread;
    s->layout = o->layout;
    if (config != NULL) {
        s->grid.layers = config->layers < 0 ? 0 : (uint64_t)config->layers;
        s->grid.experts = config->experts < 0 ? 0 : (uint64_t)config->experts;
    } else {
        s->grid.experts = experts_of(s);
    }
    if (moe_grid_ranks(&s->grid) == 1)
        return moe_err_set(e, MOE_EUSAGE, "nothing to cut: --tp, --ep or --pp is wanted");
    return moe_grid_check(&s->grid, e);
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
