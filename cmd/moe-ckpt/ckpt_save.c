/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt save`: the order of lock, estimate, files and commit, and what
 * is told afterwards.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "cmd/moe-ckpt/ckpt_input.h"
#include "cmd/moe-ckpt/ckpt_save.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/clock.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"

enum { ID = 1, TAG, META, BASE, NO_DELTA, NAME, TIME, WAIT, FORCE, JSON, THREADS, QUIET };

#define MAX_META 256
#define DEFAULT_WAIT 60
#define MAX_WAIT 86400

/* Of 256 bytes of weights so many are expected to be stored: what BF16 comes to. */
#define EXPECTED UINT64_C(170)

static const struct moe_opt rows[] = {
    { ID, 0, "id", MOE_OPT_WORD, "N", "number of the save; default: the next", NULL, false,
        false },
    { TAG, 't', "tag", MOE_OPT_WORD, "NAME", "call the save NAME, which must be free", NULL, false,
        false },
    { META, 'm', "meta", MOE_OPT_WORD, "KEY=VALUE", "keep a pair with the save", NULL, false,
        true },
    { BASE, 'b', "base", MOE_OPT_WORD, "ID", "what the save is compared with; default: latest",
        NULL, false, false },
    { NO_DELTA, 0, "no-delta", MOE_OPT_NONE, NULL, "encode what is new without its base", NULL,
        false, false },
    { NAME, 0, "name", MOE_OPT_WORD, "NAME", "name in the save of a file or of standard input",
        NULL, false, false },
    { TIME, 0, "time", MOE_OPT_WORD, "SECONDS", "time of the save since 1970; default: now", NULL,
        false, false },
    { WAIT, 0, "wait", MOE_OPT_WORD, "SECONDS", "how long to wait for another writer; default: 60",
        NULL, false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "try even if the disk seems too full", NULL, false,
        false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print what was done as JSON", NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[-q] [-t NAME] [-m KEY=VALUE] [-b ID] STORE FILE | DIR | -", NULL };

const struct moe_opt_cmd ckpt_save_cmd = { "moe-ckpt save", usage, "Put a model into a store.",
    rows, NULL };

struct args {
    const char *tag, *base, *name;
    const char *meta[MAX_META];
    size_t n_meta;
    int64_t id, time, wait;         /* id, time: -1 is not given */
    bool no_delta, force, json, quiet;
    int threads;
};

struct save {
    const struct args *a;
    struct ckpt_input in;
    struct moe_store *store;
    struct moe_pool *pool;
    struct moe_loader *loader;      /* of the parent */
    struct moe_snapshot parent, snap;
    bool has_parent;
    struct moe_saver *saver;
    uint64_t start_ns;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n;
    int rc = 0;

    switch (id) {
    case ID: return moe_num_int(arg, 0, INT64_MAX, "id", &a->id, e);
    case TIME: return moe_num_int(arg, 0, INT64_MAX, "time", &a->time, e);
    case WAIT: return moe_num_int(arg, 0, MAX_WAIT, "wait", &a->wait, e);
    case THREADS:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e)) == 0)
            a->threads = (int)n;
        return rc;
    case TAG:
        a->tag = arg;
        return moe_ref_name_ok(arg) && strcmp(arg, MOE_REF_LATEST) != 0
            ? 0 : moe_err_set(e, MOE_EUSAGE, "%s: cannot be a tag", arg);
    case META:
        if (strchr(arg, '=') == NULL || arg[0] == '=')
            return moe_err_set(e, MOE_EUSAGE, "%s: not of the form KEY=VALUE", arg);
        if (a->n_meta == MAX_META)
            return moe_err_set(e, MOE_EUSAGE, "more than %d pairs", MAX_META);
        a->meta[a->n_meta++] = arg;
        return 0;
    case BASE: a->base = arg; return 0;
    case NAME: a->name = arg; return 0;
    case NO_DELTA: a->no_delta = true; return 0;
    case FORCE: a->force = true; return 0;
    case JSON: a->json = true; return 0;
    default: a->quiet = true; return 0;
    }
}

static int
add_pairs(struct save *s, struct moe_err *e)
{
    for (size_t i = 0; i < s->a->n_meta; i++) {
        const char *arg = s->a->meta[i], *eq = strchr(arg, '=');
        char *key = strndup(arg, (size_t)(eq - arg));
        int rc;

        if (key == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        if (moe_snapshot_value(&s->snap, key) != NULL)
            rc = moe_err_set(e, MOE_EUSAGE, "%s: given twice", key);
        else
            rc = moe_snapshot_pair(&s->snap, key, eq + 1, e);
        free(key);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Number, time, shape and parent of the new save. */
static int
begin(struct save *s, struct moe_err *e)
{
    struct moe_names ids;
    int rc = moe_store_ids(s->store, &ids, e);

    if (rc != 0)
        goto out;
    s->snap.shape = s->in.shape;
    s->snap.time = s->a->time >= 0 ? (uint64_t)s->a->time : (uint64_t)time(NULL);
    s->snap.id = s->a->id >= 0 ? (uint64_t)s->a->id : ids.n > 0 ? ids.v[ids.n - 1] + 1 : 1;
    if (moe_store_has(s->store, s->snap.id)) {
        rc = moe_err_set(e, MOE_EEXIST, "%s: save %" PRIu64 " is there already", s->store->path,
            s->snap.id);
        goto out;
    }
    if (s->a->base != NULL || ids.n > 0) {
        rc = moe_store_find(s->store, s->a->base != NULL ? s->a->base : MOE_REF_LATEST,
            &s->parent, e);
        s->has_parent = rc == 0;
        s->snap.parent = rc == 0 ? s->parent.id : MOE_SNAPSHOT_NONE;
    }
    if (rc == 0)
        rc = add_pairs(s, e);
out:
    moe_names_fini(&ids);
    return rc;
}

/* Whether what is new will fit, by what weights are known to come to. */
static int
estimate(const struct save *s, struct moe_err *e)
{
    char need_text[32], free_text[32];
    uint64_t need = 0, room;
    struct statvfs fs;

    if (s->a->force || s->in.stream || fstatvfs(s->store->dirfd, &fs) != 0)
        return 0;
    for (size_t i = 0; i < s->in.n; i++) {
        const struct moe_snapshot_file *old =
            s->has_parent ? moe_snapshot_find(&s->parent, s->in.name[i]) : NULL;

        /* A file of the same name is expected to be near its former self. */
        if (old == NULL || old->size != s->in.size[i])
            need += s->in.size[i] / 256 * EXPECTED;
    }
    if (!moe_num_mul(fs.f_bavail, fs.f_frsize, &room) || need <= room)
        return 0;
    return moe_err_set(e, MOE_EIO,
        "%s: no space: about %s are needed, %s are free (--force tries all the same)",
        s->store->path, moe_num_human(need_text, sizeof(need_text), need),
        moe_num_human(free_text, sizeof(free_text), room));
}

static int
check_tag(const struct save *s, struct moe_err *e)
{
    struct moe_ref old;
    int rc;

    if (s->a->tag == NULL)
        return 0;
    rc = moe_ref_read(s->store->dirfd, s->store->path, s->a->tag, &old, e);
    return rc == MOE_ENOENT ? 0 : rc != 0 ? rc
        : moe_err_set(e, MOE_EEXIST, "%s: save %" PRIu64 " is called %s already", s->store->path,
            old.id, s->a->tag);
}

static int
save_files(struct save *s, struct moe_err *e)
{
    struct ckpt_input_base base = { s->loader, s->store->packs,
        s->has_parent ? &s->parent : NULL };
    struct moe_progress progress;
    int rc = 0;

    moe_progress_start(&progress, "save", s->in.bytes, s->a->quiet);
    for (size_t i = 0; rc == 0 && i < s->in.n; i++)
        rc = ckpt_input_save(&s->in, i, &base, s->saver, &progress, e);
    moe_progress_end(&progress);
    return rc;
}

static int
commit(struct save *s, struct moe_err *e)
{
    struct moe_ref ref;
    int rc;

    if ((rc = moe_saver_commit(s->saver, &s->snap, e)) != 0 || s->a->tag == NULL)
        return rc;
    ref.id = s->snap.id;
    memcpy(ref.sum, s->snap.sum, MOE_DIGEST_LEN);
    rc = moe_ref_write(s->store->dirfd, s->store->path, s->a->tag, &ref, e);
    return rc == 0 ? 0 : moe_err_at(e, "save %" PRIu64 " is there, but not its tag", s->snap.id);
}

static int
report(const struct save *s, struct moe_err *e)
{
    struct moe_saver_sums sums = moe_saver_sums(s->saver);
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    char hex[MOE_DIGEST_HEX];
    int rc = 0;

    if (!s->a->json) {
        printf("%" PRIu64 "\n", s->snap.id);
        return 0;
    }
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "id");
    moe_jsonw_uint(&w, s->snap.id);
    moe_jsonw_key(&w, "digest");
    moe_jsonw_str(&w, moe_digest_hex(s->snap.sum, hex), 64);
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, sums.plain);
    moe_jsonw_key(&w, "written");
    moe_jsonw_uint(&w, sums.written);
    moe_jsonw_key(&w, "chunks");
    moe_jsonw_uint(&w, sums.chunks);
    moe_jsonw_key(&w, "known");
    moe_jsonw_uint(&w, sums.known);
    moe_jsonw_key(&w, "deltas");
    moe_jsonw_uint(&w, sums.deltas);
    moe_jsonw_key(&w, "seconds");
    moe_jsonw_real(&w, (double)(moe_clock_ns() - s->start_ns) / 1e9);
    moe_jsonw_close(&w, '}');
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        printf("%s\n", b.p);
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_save(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .id = -1, .time = -1, .wait = DEFAULT_WAIT };
    struct save s = { .a = &a, .in = CKPT_INPUT_INIT, .parent = MOE_SNAPSHOT_INIT,
        .snap = MOE_SNAPSHOT_INIT };
    int rc, first;
    bool done;

    s.start_ns = moe_clock_ns();
    if ((rc = moe_opt_parse(&ckpt_save_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "save wants STORE and what to save");
    if ((rc = ckpt_input_open(argv[first + 1], a.name, &s.in, e)) == 0 &&
        (rc = moe_store_open(argv[first], true, (int)a.wait * 1000, &s.store, e)) == 0 &&
        (rc = begin(&s, e)) == 0 && (rc = check_tag(&s, e)) == 0 &&
        (rc = estimate(&s, e)) == 0 && (rc = ckpt_spec_pool(a.threads, &s.pool, e)) == 0 &&
        (rc = moe_loader_new(s.store->packs, s.pool, &s.loader, e)) == 0 &&
        (rc = moe_saver_new(s.store, s.pool, !a.no_delta, &s.saver, e)) == 0 &&
        (rc = save_files(&s, e)) == 0 && (rc = commit(&s, e)) == 0)
        rc = report(&s, e);
    moe_saver_free(s.saver);
    moe_loader_free(s.loader);
    moe_pool_free(s.pool);
    moe_snapshot_fini(&s.parent);
    moe_snapshot_fini(&s.snap);
    moe_store_close(s.store);
    ckpt_input_close(&s.in);
    return rc;
}
