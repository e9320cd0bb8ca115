/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt gc`: the room that no save needs is given back. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/moe-ckpt/ckpt_gc.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/store/sweep.h"

enum { DRY = 1, WASTE, WAIT, JSON };

#define DEFAULT_WAIT 60
#define MAX_WAIT 86400
#define DEFAULT_WASTE 50

static const struct moe_opt rows[] = {
    { DRY, 'n', "dry-run", MOE_OPT_NONE, NULL, "change nothing, only count", NULL, false, false },
    { WASTE, 0, "waste", MOE_OPT_WORD, "PERCENT",
        "copy what is needed out of packs so wasted; default: 50", NULL, false, false },
    { WAIT, 0, "wait", MOE_OPT_WORD, "SECONDS", "how long to wait for another writer; default: 60",
        NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print what was done as JSON", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-n] [--waste PERCENT] [--wait SECONDS] [--json] STORE",
    NULL };

const struct moe_opt_cmd ckpt_gc_cmd = { "moe-ckpt gc", usage,
    "Give back the room that no save needs.", rows, NULL };

struct args { bool dry, json; int64_t wait, waste; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case DRY: a->dry = true; return 0;
    case JSON: a->json = true; return 0;
    case WASTE: return moe_num_int(arg, 1, 100, "waste", &a->waste, e);
    default: return moe_num_int(arg, 0, MAX_WAIT, "wait", &a->wait, e);
    }
}

static void
field(struct moe_jsonw *w, const char *key, uint64_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

static int
report(const struct moe_sweep *g, bool json, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    char freed[32], held[32];
    int rc = 0;

    if (!json) {
        printf("%s freed in %" PRIu64 " of %" PRIu64 " packs, %" PRIu64 " copied",
            moe_num_human(freed, sizeof(freed), g->moved > g->added ? g->moved - g->added : 0),
            g->dead + g->copied, g->packs, g->copied);
        if (g->waiting > 0)
            printf("; %s wait for readers", moe_num_human(held, sizeof(held), g->waiting));
        printf("\n");
        return 0;
    }
    moe_jsonw_open(&w, '{');
    field(&w, "packs", g->packs);
    field(&w, "bytes", g->bytes);
    field(&w, "removed", g->dead);
    field(&w, "copied", g->copied);
    field(&w, "moved_bytes", g->moved);
    field(&w, "copied_bytes", g->added);
    field(&w, "waiting_bytes", g->waiting);
    moe_jsonw_close(&w, '}');
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        printf("%s\n", b.p);
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_gc(int argc, char **argv, struct moe_err *e)
{
    struct args a = { false, false, DEFAULT_WAIT, DEFAULT_WASTE };
    struct moe_sweep g = { 0 };
    struct moe_store *s;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_gc_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "gc wants one STORE");
    if ((rc = moe_store_open(argv[first], true, (int)a.wait * 1000, &s, e)) != 0)
        return rc;
    g.dry = a.dry;
    g.waste = (int)a.waste;
    if ((rc = moe_sweep_run(s, &g, e)) == 0)
        rc = report(&g, a.json, e);
    moe_store_close(s);
    return rc;
}
