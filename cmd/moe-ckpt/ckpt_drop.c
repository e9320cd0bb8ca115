/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt drop`: saves that are given up, by number or because no rule
 * keeps them. Their room is given back by `moe-ckpt gc`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/moe-ckpt/ckpt_drop.h"
#include "common/base/num.h"
#include "common/store/keep.h"
#include "common/store/live.h"
#include "common/store/store.h"

enum { DRY = 1, LAST, EVERY, WITHIN, BEST, WAIT };

#define DEFAULT_WAIT 60
#define MAX_WAIT 86400

static const struct moe_opt rows[] = {
    { DRY, 'n', "dry-run", MOE_OPT_NONE, NULL, "print what would be done, and why", NULL, false,
        false },
    { LAST, 0, "keep-last", MOE_OPT_WORD, "N", "keep the newest N saves", NULL, false, false },
    { EVERY, 0, "keep-every", MOE_OPT_WORD, "N", "keep saves whose number N divides", NULL, false,
        false },
    { WITHIN, 0, "keep-within", MOE_OPT_WORD, "SECONDS", "keep saves no older than that", NULL,
        false, false },
    { BEST, 0, "keep-best", MOE_OPT_WORD, "KEY", "keep the save whose pair KEY is lowest", NULL,
        false, false },
    { WAIT, 0, "wait", MOE_OPT_WORD, "SECONDS", "how long to wait for another writer; default: 60",
        NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-n] STORE ID ...",
    "[-n] [--keep-last N] [--keep-every N] [--keep-...] STORE", NULL };

const struct moe_opt_cmd ckpt_drop_cmd = { "moe-ckpt drop", usage, "Give up saves.", rows, NULL };

struct args { bool dry, rules; struct moe_keep keep; int64_t wait; };

struct drop {
    struct moe_store *s;
    struct moe_snapshot *snap;      /* [n], for the values of pairs */
    struct moe_keep_save *v;        /* [n] ascending */
    size_t n;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n = 0;
    int rc;

    if (id == DRY) {
        a->dry = true;
        return 0;
    }
    if (id == WAIT)
        return moe_num_int(arg, 0, MAX_WAIT, "wait", &a->wait, e);
    a->rules = true;
    if (id == BEST) {
        a->keep.best = arg;
        return 0;
    }
    rc = moe_num_int(arg, 1, INT64_MAX, "a rule's number", &n, e);
    if (id == LAST)
        a->keep.last = (uint64_t)n;
    else if (id == EVERY)
        a->keep.every = (uint64_t)n;
    else
        a->keep.within = (uint64_t)n;
    return rc;
}

static void
mark_ref(struct drop *d, const char *name, uint64_t id)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->v[i].id == id) {
            if (strcmp(name, MOE_REF_LATEST) == 0)
                d->v[i].latest = true;
            else
                d->v[i].tagged = true;
        }
}

/* All saves, and what is known of them. One that cannot be read ends it: fsck comes first. */
static int
look(struct drop *d, const char *best, struct moe_err *e)
{
    struct moe_ref_list refs = { NULL, 0 };
    struct moe_names ids;
    struct moe_ref ref;
    int rc = moe_store_ids(d->s, &ids, e);

    if (rc == 0 && ((d->v = calloc(ids.n + 1, sizeof(*d->v))) == NULL ||
            (d->snap = calloc(ids.n + 1, sizeof(*d->snap))) == NULL))
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (; rc == 0 && d->n < ids.n; d->n++) {
        rc = moe_store_read(d->s, ids.v[d->n], &d->snap[d->n], e);
        d->v[d->n].id = ids.v[d->n];
        d->v[d->n].time = d->snap[d->n].time;
        if (best != NULL)
            d->v[d->n].value = moe_snapshot_value(&d->snap[d->n], best);
    }
    moe_names_fini(&ids);
    if (rc == 0)
        rc = moe_ref_list(d->s->dirfd, d->s->path, &refs, e);
    for (size_t i = 0; rc == 0 && i < refs.n; i++)
        if ((rc = moe_ref_read(d->s->dirfd, d->s->path, refs.name[i], &ref, e)) == 0)
            mark_ref(d, refs.name[i], ref.id);
    moe_ref_list_fini(&refs);
    return rc;
}

/* Mark the saves that the operands name as those that go; all others stay. */
static int
name_them(struct drop *d, int n, char **word, struct moe_err *e)
{
    for (size_t i = 0; i < d->n; i++)
        d->v[i].why = MOE_KEEP_LAST;
    for (int k = 0; k < n; k++) {
        struct moe_keep_save *s = NULL;
        uint64_t id;

        if (!moe_names_number(word[k], strlen(word[k]), &id))
            return moe_err_set(e, MOE_EUSAGE, "%s: not the number of a save", word[k]);
        for (size_t i = 0; i < d->n; i++)
            if (d->v[i].id == id)
                s = &d->v[i];
        if (s == NULL)
            return moe_err_set(e, MOE_ENOENT, "%s: there is no save %" PRIu64, d->s->path, id);
        if (s->latest || s->tagged || s == &d->v[d->n - 1])
            return moe_err_set(e, MOE_EUSAGE, "%s: save %" PRIu64 " is %s and stays", d->s->path,
                id, s->tagged ? "tagged" : "the latest");
        s->why = MOE_KEEP_NO;
    }
    return 0;
}

/* What remains must be whole: at least its newest save. */
static int
check_rest(const struct drop *d, struct moe_err *e)
{
    struct moe_marks m = MOE_MARKS_INIT;
    int rc = 0;

    for (size_t i = d->n; i-- > 0;)
        if (d->v[i].why != MOE_KEEP_NO) {
            if ((rc = moe_live_save(d->s, &d->snap[i], &m, e)) != 0)
                rc = moe_err_at(e, "%s: nothing was dropped, for what remains is damaged",
                    d->s->path);
            break;
        }
    moe_marks_fini(&m);
    return rc;
}

static int
drop(struct drop *d, const struct args *a, struct moe_err *e)
{
    size_t gone = 0;
    int rc = 0;

    for (size_t i = 0; i < d->n; i++)
        gone += d->v[i].why == MOE_KEEP_NO;
    if (gone > 0 && !a->dry && (rc = check_rest(d, e)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        const struct moe_keep_save *s = &d->v[i];

        if (s->why != MOE_KEEP_NO) {
            if (a->dry && a->rules)
                printf("keep %" PRIu64 " (%s)\n", s->id, moe_keep_word(s->why));
            continue;
        }
        if (!a->dry)
            rc = moe_store_drop(d->s, s->id, e);
        if (rc == 0)
            printf("drop %" PRIu64 "\n", s->id);
    }
    return rc;
}

int
ckpt_drop(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .wait = DEFAULT_WAIT };
    struct drop d = { 0 };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_drop_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first < 1 || (argc - first == 1) != a.rules)
        return moe_err_set(e, MOE_EUSAGE, "drop wants STORE, and numbers or rules");
    a.keep.now = (uint64_t)time(NULL);
    if ((rc = moe_store_open(argv[first], true, (int)a.wait * 1000, &d.s, e)) != 0 ||
        (rc = look(&d, a.keep.best, e)) != 0)
        goto out;
    if (a.rules)
        moe_keep_judge(&a.keep, d.v, d.n);
    else if ((rc = name_them(&d, argc - first - 1, argv + first + 1, e)) != 0)
        goto out;
    rc = drop(&d, &a, e);
out:
    for (size_t i = 0; i < d.n; i++)
        moe_snapshot_fini(&d.snap[i]);
    free(d.snap);
    free(d.v);
    moe_store_close(d.s);
    return rc;
}
