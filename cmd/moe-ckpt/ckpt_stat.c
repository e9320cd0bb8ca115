/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt stat`: sizes of a store, and how old its newest save is. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "cmd/moe-ckpt/ckpt_stat.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/store/store.h"

enum { JSON = 1, PROMETHEUS, MAX_AGE };

static const struct moe_opt rows[] = {
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON", NULL, false, false },
    { PROMETHEUS, 0, "prometheus", MOE_OPT_FILE, "FILE", "write a textfile for a node exporter",
        NULL, false, false },
    { MAX_AGE, 0, "max-age", MOE_OPT_WORD, "SECONDS", "exit 1 if the newest save is older", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[--json] [--prometheus FILE] [--max-age SECONDS] STORE",
    NULL };

const struct moe_opt_cmd ckpt_stat_cmd = { "moe-ckpt stat", usage,
    "Print sizes of a store and the age of its newest save.", rows, NULL };

struct args { bool json; const char *prometheus; int64_t max_age; };

struct sums {
    uint64_t saves, newest, age;        /* newest and age hold when saves > 0 */
    uint64_t plain;                     /* bytes of all saves as files */
    uint64_t packs, stored;             /* bytes of packs */
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case JSON: a->json = true; return 0;
    case PROMETHEUS: a->prometheus = arg; return 0;
    default: return moe_num_int(arg, 0, INT64_MAX, "max-age", &a->max_age, e);
    }
}

static int
add_up(const struct moe_store *s, struct sums *x, struct moe_err *e)
{
    uint64_t now = (uint64_t)time(NULL), newest = 0;
    struct moe_names names;
    struct stat st;
    char name[64];
    int rc = moe_store_ids(s, &names, e);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        struct moe_snapshot snap;

        if ((rc = moe_store_read(s, names.v[i], &snap, e)) == 0) {
            x->saves++;
            x->plain += moe_snapshot_bytes(&snap);
            if (snap.time >= newest) {
                newest = snap.time;
                x->newest = snap.id;
            }
        }
        moe_snapshot_fini(&snap);
    }
    x->age = now > newest ? now - newest : 0;
    moe_names_fini(&names);
    if (rc != 0)
        return rc;
    rc = moe_names_list(s->dirfd, s->path, "packs", ".pack", &names, e);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        (void)snprintf(name, sizeof(name), "packs/%" PRIu64 ".pack", names.v[i]);
        if (fstatat(s->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            x->packs++;
            x->stored += (uint64_t)st.st_size;
        }
    }
    moe_names_fini(&names);
    return rc;
}

static void
gauge(struct moe_buf *b, const char *name, const char *help, uint64_t v)
{
    moe_buf_fmt(b, "# HELP moe_ckpt_%s %s\n# TYPE moe_ckpt_%s gauge\nmoe_ckpt_%s %" PRIu64 "\n",
        name, help, name, name, v);
}

static int
textfile(const struct sums *x, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *o = NULL;
    int rc;

    gauge(&b, "saves", "Saves in the store.", x->saves);
    gauge(&b, "plain_bytes", "Bytes of all saves as files.", x->plain);
    gauge(&b, "stored_bytes", "Bytes of the packs.", x->stored);
    gauge(&b, "packs", "Packs in the store.", x->packs);
    if (x->saves > 0) {
        gauge(&b, "newest_id", "Number of the newest save.", x->newest);
        gauge(&b, "recovery_point_age_seconds", "Age of the newest save.", x->age);
    }
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = moe_out_open(path, true, 0, &o, e)) == 0 &&
        (rc = moe_out_write(o, b.p, b.len, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    moe_buf_fini(&b);
    return rc;
}

static void
field(struct moe_jsonw *w, const char *key, uint64_t v, bool there)
{
    moe_jsonw_key(w, key);
    if (there)
        moe_jsonw_uint(w, v);
    else
        moe_jsonw_null(w);
}

static int
print(const struct sums *x, bool json, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    char plain[32], stored[32];
    int rc = 0;

    if (!json) {
        printf("saves   %" PRIu64 "\nfiles   %s\npacks   %" PRIu64 ", %s\n", x->saves,
            moe_num_human(plain, sizeof(plain), x->plain), x->packs,
            moe_num_human(stored, sizeof(stored), x->stored));
        if (x->saves > 0)
            printf("newest  %" PRIu64 ", %" PRIu64 " s old\n", x->newest, x->age);
        return 0;
    }
    moe_jsonw_open(&w, '{');
    field(&w, "saves", x->saves, true);
    field(&w, "plain_bytes", x->plain, true);
    field(&w, "packs", x->packs, true);
    field(&w, "stored_bytes", x->stored, true);
    field(&w, "newest", x->newest, x->saves > 0);
    field(&w, "age", x->age, x->saves > 0);
    moe_jsonw_close(&w, '}');
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        printf("%s\n", b.p);
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_stat(int argc, char **argv, struct moe_err *e)
{
    struct args a = { false, NULL, -1 };
    struct sums x = { 0 };
    struct moe_store *s;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_stat_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "stat wants one STORE");
    if ((rc = moe_store_open(argv[first], false, 0, &s, e)) != 0)
        return rc;
    if ((rc = add_up(s, &x, e)) == 0 && (rc = print(&x, a.json, e)) == 0 && a.prometheus != NULL)
        rc = textfile(&x, a.prometheus, e);
    moe_store_close(s);
    if (rc == 0 && a.max_age >= 0 && (x.saves == 0 || x.age > (uint64_t)a.max_age))
        return 1;
    return rc;
}
