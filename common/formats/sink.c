/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the files of a model being written: which tensor goes to which shard,
 * headers, index, and the count of what has come. How a file appears is out.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/formats/sink.h"

struct shard {
    size_t first, n;            /* tensors of the plan */
    uint64_t data;              /* bytes of data */
    uint64_t head;              /* bytes of header */
    _Atomic uint64_t come;      /* bytes of data that have come */
    struct moe_out *out;        /* while it is open */
    bool done;
};

struct layout {                 /* of a plan */
    struct shard *shards;
    size_t n;
    uint64_t *at;               /* [tensors]: begin within the shard's data */
    uint64_t *len;              /* [tensors] */
    size_t *shard;              /* [tensors] */
};

struct moe_sink {
    const struct moe_sink_plan *plan;
    struct layout l;
    struct moe_outdir *dir;     /* NULL for one file or stdout */
    char *path;
    bool force, stream;
    size_t next;                /* shard that moe_sink_write() fills */
    pthread_mutex_t lock;       /* opening and finishing shards */
};

/* ---- Layout ----------------------------------------------------------------- */

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "output: out of memory");
}

static void
layout_fini(struct layout *l)
{
    free(l->shards);
    free(l->at);
    free(l->len);
    free(l->shard);
    *l = (struct layout){ .n = 0 };
}

/* Deal the tensors out; the shards' headers are still to be measured. */
static int
deal(struct layout *l, const struct moe_sink_plan *p, struct moe_err *e)
{
    struct shard *s = l->shards;

    l->n = 1;
    for (size_t i = 0; i < p->n; i++) {
        const struct moe_tensor *t = &p->tensors[i];
        uint64_t end;

        if (!moe_safet_bytes(t->dtype, t->shape, t->rank, &l->len[i]))
            return moe_err_set(e, MOE_EFORMAT, "tensor %s: its shape overflows or ends within a"
                " byte", t->name);
        if (!moe_num_add(s->data, l->len[i], &end))
            return moe_err_set(e, MOE_ELIMIT, "output: over 2^64 bytes");
        if (p->first != NULL ? l->n < p->files && p->first[l->n] == i :
            p->shard_bytes > 0 && end > p->shard_bytes && s->n > 0) {
            *++s = (struct shard){ .first = i };
            l->n++;
            end = l->len[i];
        }
        l->at[i] = s->data;
        l->shard[i] = l->n - 1;
        s->data = end;
        s->n++;
    }
    return 0;
}

static int
shard_header(const struct moe_sink_plan *p, const struct shard *s, struct moe_buf *b,
    struct moe_err *e)
{
    moe_buf_clear(b);
    return moe_safet_write(b, p->tensors + s->first, s->n, p->meta, p->align, e);
}

static int
layout_init(struct layout *l, const struct moe_sink_plan *p, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    *l = (struct layout){ .n = 0 };
    l->shards = calloc(p->n + 1, sizeof(*l->shards));
    l->at = calloc(p->n + 1, sizeof(*l->at));
    l->len = calloc(p->n + 1, sizeof(*l->len));
    l->shard = calloc(p->n + 1, sizeof(*l->shard));
    if (l->shards == NULL || l->at == NULL || l->len == NULL || l->shard == NULL)
        rc = no_memory(e);
    else
        rc = deal(l, p, e);
    for (size_t k = 0; rc == 0 && k < l->n; k++) {
        if ((rc = shard_header(p, &l->shards[k], &b, e)) == 0)
            l->shards[k].head = b.len;
    }
    moe_buf_fini(&b);
    if (rc != 0)
        layout_fini(l);
    return rc;
}

static int
index_text(const struct moe_sink_plan *p, const struct layout *l, struct moe_buf *b,
    struct moe_err *e)
{
    struct moe_jsonw w = { b, false };
    uint64_t total = 0;
    char name[MOE_SINK_NAME];

    for (size_t k = 0; k < l->n; k++)
        total += l->shards[k].data;
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "metadata");
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "total_size");
    moe_jsonw_uint(&w, total);
    moe_jsonw_close(&w, '}');
    moe_jsonw_key(&w, "weight_map");
    moe_jsonw_open(&w, '{');
    for (size_t i = 0; i < p->n; i++) {
        moe_sink_name(l->shard[i], l->n, name);
        moe_jsonw_key(&w, p->tensors[i].name);
        moe_jsonw_str(&w, name, strlen(name));
    }
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
    return b->bad ? no_memory(e) : 0;
}

int
moe_sink_size(const struct moe_sink_plan *p, struct moe_sink_size *out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct layout l;
    int rc;

    *out = (struct moe_sink_size){ .files = 0 };
    if ((rc = layout_init(&l, p, e)) != 0)
        return rc;
    if (l.n > 1 && (rc = index_text(p, &l, &b, e)) != 0)
        goto out;
    if ((out->bytes = calloc(l.n, sizeof(*out->bytes))) == NULL) {
        rc = no_memory(e);
        goto out;
    }
    out->files = l.n;
    out->index_bytes = b.len;
    out->total = b.len;
    for (size_t k = 0; k < l.n; k++) {
        out->bytes[k] = l.shards[k].head + l.shards[k].data;
        out->total += out->bytes[k];
    }
out:
    moe_buf_fini(&b);
    layout_fini(&l);
    return rc;
}

void
moe_sink_size_fini(struct moe_sink_size *s)
{
    free(s->bytes);
    *s = (struct moe_sink_size){ .files = 0 };
}

void
moe_sink_name(size_t k, size_t n, char name[MOE_SINK_NAME])
{
    if (n == 1)
        (void)snprintf(name, MOE_SINK_NAME, "model.safetensors");
    else
        (void)snprintf(name, MOE_SINK_NAME, "model-%05zu-of-%05zu.safetensors", k + 1, n);
}

/* ---- Shards ----------------------------------------------------------------- */

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Open shard k with its header in place; the lock is held. */
static int
open_shard(struct moe_sink *s, size_t k, struct moe_err *e)
{
    struct shard *d = &s->l.shards[k];
    struct moe_buf b = MOE_BUF_INIT;
    uint64_t size = d->head + d->data;
    char name[MOE_SINK_NAME];
    int rc;

    if (d->done)
        return moe_err_set(e, MOE_EFORMAT, "output: more data than the plan has");
    if ((rc = shard_header(s->plan, d, &b, e)) != 0)
        goto out;
    if (s->dir != NULL) {
        uint64_t come = atomic_load(&d->come);

        moe_sink_name(k, s->l.n, name);
        if (come > 0) {         /* from before; the header with it */
            rc = moe_outdir_again(s->dir, name, d->head + come, size, &d->out, e);
            goto out;
        }
        rc = moe_outdir_file(s->dir, name, size, &d->out, e);
    } else {
        rc = moe_out_open(s->path, s->force, size, &d->out, e);
    }
    if (rc == 0)
        rc = moe_out_write(d->out, b.p, b.len, e);
out:
    moe_buf_fini(&b);
    return rc;
}

static int
need_shard(struct moe_sink *s, size_t k, struct moe_err *e)
{
    int rc = 0;

    pthread_mutex_lock(&s->lock);
    if (s->l.shards[k].out == NULL)
        rc = open_shard(s, k, e);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/*
 * n more bytes of shard k have come. A file of a directory is finished at once,
 * so that few are open; one file appears only with moe_sink_commit().
 */
static int
count(struct moe_sink *s, size_t k, uint64_t n, struct moe_err *e)
{
    struct shard *d = &s->l.shards[k];
    struct moe_out *o;
    int rc = 0;

    if (atomic_fetch_add(&d->come, n) + n < d->data || s->dir == NULL)
        return 0;
    pthread_mutex_lock(&s->lock);
    if (!d->done) {
        o = d->out;
        d->out = NULL;
        d->done = true;
        rc = moe_out_commit(o, e);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Shards that `done` bytes fill are there; the next one is gone on with. */
static int
take_up(struct moe_sink *s, uint64_t done, struct moe_err *e)
{
    for (size_t k = 0; k < s->l.n && done > 0; k++) {
        struct shard *d = &s->l.shards[k];
        uint64_t n = done < d->data ? done : d->data;
        int rc;

        atomic_store(&d->come, n);
        done -= n;
        if (n < d->data)
            break;
        if ((rc = need_shard(s, k, e)) != 0 || (rc = count(s, k, 0, e)) != 0)
            return rc;
    }
    return done == 0 ? 0 : moe_err_set(e, MOE_EFORMAT, "output: more data than the plan has");
}

static int
begin(const char *path, bool force, bool keep, uint64_t done, const struct moe_sink_plan *plan,
    struct moe_sink **out, struct moe_err *e)
{
    struct moe_sink_plan one = *plan;
    struct moe_sink *s;
    bool single;
    int rc;

    *out = NULL;
    if ((s = calloc(1, sizeof(*s))) == NULL)
        return no_memory(e);
    pthread_mutex_init(&s->lock, NULL);
    s->plan = plan;
    s->force = force;
    s->stream = strcmp(path, "-") == 0;
    single = s->stream || ends_with(path, ".safetensors");
    if (single) {
        one.shard_bytes = 0;
        one.first = NULL;
    }
    if ((s->path = strdup(path)) == NULL)
        rc = no_memory(e);
    else if (keep && single)
        rc = moe_err_set(e, MOE_EUNSUP, "%s: only a directory can be resumed", path);
    else if ((rc = layout_init(&s->l, &one, e)) == 0 && !single)
        rc = keep ? moe_outdir_keep(path, force, &s->dir, e) :
            moe_outdir_open(path, force, &s->dir, e);
    if (rc == 0)
        rc = take_up(s, done, e);
    /* Open what comes first now: an output that is there already is told before any work. */
    while (rc == 0 && s->next + 1 < s->l.n && s->l.shards[s->next].done)
        s->next++;
    if (rc == 0 && !s->l.shards[s->next].done)
        rc = need_shard(s, s->next, e);
    if (rc != 0) {
        moe_sink_abort(s);
        return rc;
    }
    *out = s;
    return 0;
}

int
moe_sink_open(const char *path, bool force, const struct moe_sink_plan *plan,
    struct moe_sink **out, struct moe_err *e)
{
    return begin(path, force, false, 0, plan, out, e);
}

int
moe_sink_keep(const char *path, bool force, const struct moe_sink_plan *plan, uint64_t done,
    struct moe_sink **out, struct moe_err *e)
{
    return begin(path, force, true, done, plan, out, e);
}

int
moe_sink_sync(struct moe_sink *s, struct moe_err *e)
{
    struct moe_out *o = s->l.shards[s->next].out;

    return o != NULL ? moe_out_sync(o, e) : 0;  /* a finished file has been */
}

int
moe_sink_write(struct moe_sink *s, const void *from, size_t n, struct moe_err *e)
{
    const char *p = from;

    while (n > 0) {
        struct shard *d = &s->l.shards[s->next];
        uint64_t left = d->data - atomic_load(&d->come);
        size_t k = n < left ? n : (size_t)left;
        int rc;

        if (left == 0) {
            if (s->next + 1 == s->l.n)
                return moe_err_set(e, MOE_EFORMAT, "output: more data than the plan has");
            s->next++;
            continue;
        }
        if ((rc = need_shard(s, s->next, e)) != 0 ||
            (rc = moe_out_write(d->out, p, k, e)) != 0 ||
            (rc = count(s, s->next, k, e)) != 0)
            return rc;
        p += k;
        n -= k;
    }
    return 0;
}

int
moe_sink_pwrite(struct moe_sink *s, size_t i, uint64_t at, const void *p, size_t n,
    struct moe_err *e)
{
    size_t k = s->l.shard[i];
    struct shard *d = &s->l.shards[k];
    int rc;

    if (s->stream)
        return moe_err_set(e, MOE_EUNSUP, "output: stdout is written in order only");
    if (at > s->l.len[i] || n > s->l.len[i] - at)
        return moe_err_set(e, MOE_EFORMAT, "output: tensor %s: past its end",
            s->plan->tensors[i].name);
    if (n == 0)
        return 0;
    if ((rc = need_shard(s, k, e)) != 0 ||
        (rc = moe_out_pwrite(d->out, p, n, d->head + s->l.at[i] + at, e)) != 0)
        return rc;
    return count(s, k, n, e);
}

bool
moe_sink_is_stream(const struct moe_sink *s)
{
    return s->stream;
}

int
moe_sink_aux(struct moe_sink *s, const char *name, const void *p, size_t n, struct moe_err *e)
{
    return s->dir != NULL ? moe_outdir_put(s->dir, name, p, n, e) : 0;
}

/* All data has come; what is open still is finished. */
static int
finish(struct moe_sink *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    for (size_t k = 0; k < s->l.n; k++) {
        struct shard *d = &s->l.shards[k];
        struct moe_out *o;

        if (atomic_load(&d->come) != d->data)
            return moe_err_set(e, MOE_EFORMAT, "output: less data than the plan has");
        if (d->done)
            continue;
        if (d->out == NULL && (rc = open_shard(s, k, e)) != 0)
            return rc;
        o = d->out;
        d->out = NULL;
        d->done = true;
        if ((rc = moe_out_commit(o, e)) != 0)
            return rc;
    }
    if (s->dir != NULL && s->l.n > 1 && (rc = index_text(s->plan, &s->l, &b, e)) == 0)
        rc = moe_outdir_put(s->dir, MOE_SINK_INDEX, b.p, b.len, e);
    moe_buf_fini(&b);
    return rc;
}

int
moe_sink_commit(struct moe_sink *s, struct moe_err *e)
{
    int rc = finish(s, e);

    if (rc == 0 && s->dir != NULL) {
        struct moe_outdir *dir = s->dir;

        s->dir = NULL;
        rc = moe_outdir_commit(dir, e);
    }
    moe_sink_abort(s);
    return rc;
}

void
moe_sink_abort(struct moe_sink *s)
{
    if (s == NULL)
        return;
    for (size_t k = 0; k < s->l.n; k++)
        moe_out_abort(s->l.shards[k].out);
    if (s->dir != NULL)
        moe_outdir_abort(s->dir);
    layout_fini(&s->l);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}
