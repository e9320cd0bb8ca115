/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt log`: the saves of a store, the newest first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/moe-ckpt/ckpt_log.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/tool.h"
#include "common/store/store.h"

enum { JSON = 1, COUNT };

static const struct moe_opt rows[] = {
    { COUNT, 'n', "count", MOE_OPT_WORD, "N", "at most N saves", NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-n N] [--json] STORE", NULL };

const struct moe_opt_cmd ckpt_log_cmd = { "moe-ckpt log", usage, "List the saves of a store.", rows,
    NULL };

struct args { bool json; int64_t count; };

/* The refs of a store with what they say; a bad one has been told of. */
struct names { struct moe_ref_list list; struct moe_ref *ref; bool *good; size_t bad; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    if (id == COUNT)
        return moe_num_int(arg, 1, INT64_MAX, "count", &a->count, e);
    a->json = true;
    return 0;
}

static int
read_names(const struct moe_store *s, struct names *n, struct moe_err *e)
{
    struct moe_err why = { 0 };
    int rc = moe_ref_list(s->dirfd, s->path, &n->list, e);

    if (rc != 0)
        return rc;
    n->ref = calloc(n->list.n + 1, sizeof(*n->ref));
    n->good = calloc(n->list.n + 1, sizeof(*n->good));
    if (n->ref == NULL || n->good == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < n->list.n; i++) {
        n->good[i] = moe_ref_read(s->dirfd, s->path, n->list.name[i], &n->ref[i], &why) == 0;
        if (!n->good[i]) {
            moe_tool_warn("%s", why.text);
            n->bad++;
        }
    }
    return 0;
}

static void
names_fini(struct names *n)
{
    moe_ref_list_fini(&n->list);
    free(n->ref);
    free(n->good);
}

static void
json_line(const struct moe_snapshot *s, const struct names *n, struct moe_buf *b)
{
    struct moe_jsonw w = { b, false };
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "id");
    moe_jsonw_uint(&w, s->id);
    moe_jsonw_key(&w, "time");
    moe_jsonw_uint(&w, s->time);
    moe_jsonw_key(&w, "parent");
    if (s->parent == MOE_SNAPSHOT_NONE)
        moe_jsonw_null(&w);
    else
        moe_jsonw_uint(&w, s->parent);
    moe_jsonw_key(&w, "digest");
    moe_jsonw_str(&w, moe_digest_hex(s->sum, hex), 64);
    moe_jsonw_key(&w, "files");
    moe_jsonw_uint(&w, s->n);
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, moe_snapshot_bytes(s));
    moe_jsonw_key(&w, "refs");
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; i < n->list.n; i++)
        if (n->good[i] && n->ref[i].id == s->id)
            moe_jsonw_str(&w, n->list.name[i], strlen(n->list.name[i]));
    moe_jsonw_close(&w, ']');
    moe_jsonw_key(&w, "meta");
    moe_jsonw_open(&w, '{');
    for (size_t i = 0; i < s->n_pairs; i++) {
        moe_jsonw_key(&w, s->pairs[i].key);
        moe_jsonw_str(&w, s->pairs[i].value, strlen(s->pairs[i].value));
    }
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, '}');
}

/* ID, time, bytes, refs, pairs; separated by blanks. */
static void
text_line(const struct moe_snapshot *s, const struct names *n, struct moe_buf *b)
{
    time_t at = s->time <= INT32_MAX * INT64_C(100) ? (time_t)s->time : 0;
    char when[32] = "?", size[32];
    struct tm tm;

    if (gmtime_r(&at, &tm) != NULL)
        (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    moe_buf_fmt(b, "%" PRIu64 "  %s  %s", s->id, when,
        moe_num_human(size, sizeof(size), moe_snapshot_bytes(s)));
    for (size_t i = 0; i < n->list.n; i++)
        if (n->good[i] && n->ref[i].id == s->id)
            moe_buf_fmt(b, "  (%s)", n->list.name[i]);
    for (size_t i = 0; i < s->n_pairs; i++) {
        moe_buf_str(b, "  ");
        moe_buf_show(b, s->pairs[i].key, strlen(s->pairs[i].key));
        moe_buf_byte(b, '=');
        moe_buf_show(b, s->pairs[i].value, strlen(s->pairs[i].value));
    }
}

/* One line a save. A manifest that cannot be read is told of, and the others are listed. */
static int
list(const struct moe_store *s, const struct args *a, struct moe_err *e)
{
    struct names names = { 0 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_names ids = { 0 };
    size_t bad = 0;
    int rc;

    if ((rc = read_names(s, &names, e)) == 0)
        rc = moe_store_ids(s, &ids, e);
    for (size_t i = ids.n, k = 0; rc == 0 && i-- > 0 && (int64_t)k < a->count; k++) {
        struct moe_snapshot snap;
        struct moe_err why = { 0 };

        if (moe_store_read(s, ids.v[i], &snap, &why) != 0) {
            moe_tool_warn("%s", why.text);
            bad++;
        } else {
            moe_buf_clear(&b);
            (a->json ? json_line : text_line)(&snap, &names, &b);
            if (b.bad)
                rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
            else
                printf("%s\n", b.p);
        }
        moe_snapshot_fini(&snap);
    }
    if (rc == 0 && bad + names.bad > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %zu of its files are damaged", s->path,
            bad + names.bad);
    moe_names_fini(&ids);
    names_fini(&names);
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_log(int argc, char **argv, struct moe_err *e)
{
    struct args a = { false, INT64_MAX };
    struct moe_store *s;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_log_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "log wants one STORE");
    if ((rc = moe_store_open(argv[first], false, 0, &s, e)) != 0)
        return rc;
    rc = list(s, &a, e);
    moe_store_close(s);
    return rc;
}
