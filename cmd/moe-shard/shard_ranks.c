/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the ranks' files: names, headers, where each part lies. What a part is
 * comes from the plan.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_ranks.h"
#include "common/base/arena.h"
#include "common/base/beneath.h"
#include "common/base/num.h"
#include "common/base/read.h"

#define ALIGN 8     /* of the data */

struct file {
    struct moe_out *out;        /* while it is written */
    int fd;                     /* while it is read; else -1 */
    uint64_t data_at;
    uint64_t next;              /* offset in the data of the tensor behind the batch */
};

struct shard_ranks {
    const struct moe_cutplan *p;
    enum shard_ranks_layout layout;
    uint32_t n;
    struct file *files;         /* [n] */
    size_t first, count;        /* the batch */
    uint64_t *at;               /* [SHARD_RANKS_BATCH][n], UINT64_MAX: has no part */
};

void
shard_ranks_name(enum shard_ranks_layout l, uint32_t rank, char name[SHARD_RANKS_NAME])
{
    if (l == SHARD_RANKS_DIRS)
        (void)snprintf(name, SHARD_RANKS_NAME, "rank-%05" PRIu32 "/model.safetensors", rank);
    else
        (void)snprintf(name, SHARD_RANKS_NAME, "model-rank-%" PRIu32 "-part-0.safetensors", rank);
}

/* The place of a rank in the grid. */
static void
place(const struct moe_grid *g, uint32_t rank, uint32_t *pp, uint32_t *ep, uint32_t *tp)
{
    *tp = rank % g->tp;
    *ep = rank / g->tp % g->ep;
    *pp = rank / g->tp / g->ep;
}

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

int
shard_ranks_header(const struct moe_cutplan *p, uint32_t rank, struct moe_buf *b,
    uint64_t *bytes, size_t *parts, struct moe_err *e)
{
    struct moe_tensor *t = calloc(p->n + 1, sizeof(*t));
    struct moe_arena shapes = MOE_ARENA_INIT;
    uint64_t shape[MOE_SAFET_MAX_RANK], n;
    uint32_t pp, ep, tp;
    char text[16];
    const char *meta[] = { "format", "pt", "moe.rank", text, NULL };
    int rc = 0;

    *bytes = 0;
    *parts = 0;
    place(p->grid, rank, &pp, &ep, &tp);
    (void)snprintf(text, sizeof(text), "%" PRIu32, rank);
    if (t == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n && rc == 0; i++) {
        const struct moe_tensor *whole = p->items[i].t;
        uint64_t *copy;

        if (!moe_cutplan_part(p, i, pp, ep, tp, shape, &n))
            continue;
        if ((copy = moe_arena_get(&shapes, (size_t)whole->rank * sizeof(*copy) + 8)) == NULL)
            rc = no_memory(e);
        else
            memcpy(copy, shape, (size_t)whole->rank * sizeof(*copy));
        t[*parts] = *whole;
        t[(*parts)++].shape = copy;
        if (!moe_num_add(*bytes, n, bytes))
            rc = moe_err_set(e, MOE_ELIMIT, "rank %" PRIu32 ": over 2^64 bytes", rank);
    }
    if (rc == 0)
        rc = moe_safet_write(b, t, *parts, meta, ALIGN, e);
    moe_arena_fini(&shapes);
    free(t);
    return rc;
}

static int
new_ranks(const struct moe_cutplan *p, enum shard_ranks_layout l, struct shard_ranks **out,
    struct moe_err *e)
{
    struct shard_ranks *r = calloc(1, sizeof(*r));

    *out = r;
    if (r == NULL)
        return no_memory(e);
    r->p = p;
    r->layout = l;
    r->n = moe_grid_ranks(p->grid);
    r->files = calloc(r->n, sizeof(*r->files));
    r->at = calloc((size_t)r->n * SHARD_RANKS_BATCH, sizeof(*r->at));
    if (r->files == NULL || r->at == NULL)
        return no_memory(e);
    for (uint32_t k = 0; k < r->n; k++)
        r->files[k].fd = -1;
    return 0;
}

int
shard_ranks_create(const struct moe_cutplan *p, enum shard_ranks_layout l,
    struct moe_outdir *d, struct shard_ranks **out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = new_ranks(p, l, out, e);

    for (uint32_t k = 0; rc == 0 && k < (*out)->n; k++) {
        struct file *f = &(*out)->files[k];
        char name[SHARD_RANKS_NAME];
        uint64_t bytes;
        size_t parts;

        moe_buf_clear(&b);
        shard_ranks_name(l, k, name);
        if ((rc = shard_ranks_header(p, k, &b, &bytes, &parts, e)) != 0 ||
            (rc = moe_outdir_file(d, name, b.len + bytes, &f->out, e)) != 0)
            break;
        f->data_at = b.len;
        rc = moe_out_pwrite(f->out, b.p, b.len, 0, e);
    }
    moe_buf_fini(&b);
    return rc;
}

/* The file's header is what the plan says, and so is its size. */
static int
check_file(const struct shard_ranks *r, uint32_t k, const char *name, struct moe_buf *want,
    struct moe_buf *have, struct moe_err *e)
{
    struct file *f = &r->files[k];
    struct stat st;
    uint64_t bytes;
    size_t parts;
    int rc;

    moe_buf_clear(want);
    moe_buf_clear(have);
    if ((rc = shard_ranks_header(r->p, k, want, &bytes, &parts, e)) != 0)
        return rc;
    f->data_at = want->len;
    if (fstat(f->fd, &st) != 0 || (uint64_t)st.st_size != want->len + bytes)
        return moe_err_set(e, MOE_EFORMAT, "%s: not of %" PRIu64 " bytes", name,
            want->len + bytes);
    if (moe_buf_room(have, want->len) == NULL)
        return no_memory(e);
    if ((rc = moe_read_at(f->fd, name, have->p, want->len, 0, e)) != 0)
        return rc;
    return memcmp(have->p, want->p, want->len) == 0 ? 0 :
        moe_err_set(e, MOE_EFORMAT, "%s: its header is not that of rank %" PRIu32, name, k);
}

int
shard_ranks_open(const struct moe_cutplan *p, enum shard_ranks_layout l, int dirfd,
    const char *path, struct shard_ranks **out, struct moe_err *e)
{
    struct moe_buf want = MOE_BUF_INIT, have = MOE_BUF_INIT;
    int rc = new_ranks(p, l, out, e);

    for (uint32_t k = 0; rc == 0 && k < (*out)->n; k++) {
        char name[SHARD_RANKS_NAME];
        int fd;

        shard_ranks_name(l, k, name);
        if ((fd = moe_beneath_open(dirfd, path, name, e)) < 0) {
            rc = fd;
            break;
        }
        (*out)->files[k].fd = fd;
        if ((rc = check_file(*out, k, name, &want, &have, e)) != 0)
            moe_err_at(e, "%s", path);
    }
    moe_buf_fini(&want);
    moe_buf_fini(&have);
    return rc;
}

void
shard_ranks_batch(struct shard_ranks *r, size_t i, size_t n)
{
    uint64_t shape[MOE_SAFET_MAX_RANK], bytes;

    r->first = i;
    r->count = n;
    for (size_t x = 0; x < n; x++) {
        for (uint32_t k = 0; k < r->n; k++) {
            uint32_t pp, ep, tp;
            uint64_t *at = &r->at[x * r->n + k];

            place(r->p->grid, k, &pp, &ep, &tp);
            *at = UINT64_MAX;
            if (moe_cutplan_part(r->p, i + x, pp, ep, tp, shape, &bytes)) {
                *at = r->files[k].next;
                r->files[k].next += bytes;
            }
        }
    }
}

/* The next stage from *pp on that has the part; NULL: none. */
static struct file *
holder(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint32_t *pp, uint64_t *at)
{
    for (; *pp < r->p->grid->pp; ++*pp) {
        uint32_t k = moe_grid_rank(r->p->grid, *pp, ep, tp);

        if ((*at = r->at[(i - r->first) * r->n + k]) != UINT64_MAX)
            return &r->files[k];
    }
    return NULL;
}

int
shard_ranks_write(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    const void *p, size_t n, struct moe_err *e)
{
    struct file *f;
    uint64_t base;

    for (uint32_t pp = 0; (f = holder(r, i, ep, tp, &pp, &base)) != NULL; pp++) {
        int rc = moe_out_pwrite(f->out, p, n, f->data_at + base + at, e);

        if (rc != 0)
            return rc;
    }
    return 0;
}

int
shard_ranks_read(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    void *p, size_t n, struct moe_err *e)
{
    uint32_t pp = 0;
    uint64_t base;
    struct file *f = holder(r, i, ep, tp, &pp, &base);
    char name[SHARD_RANKS_NAME];

    if (f == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: no rank has it", r->p->items[i].t->name);
    shard_ranks_name(r->layout, (uint32_t)(f - r->files), name);
    return moe_read_at(f->fd, name, p, n, f->data_at + base + at, e);
}

int
shard_ranks_compare(struct shard_ranks *r, size_t i, uint32_t ep, uint32_t tp, uint64_t at,
    const void *p, size_t n, struct moe_err *e)
{
    uint32_t pp = 0;
    uint64_t base;
    struct file *f;
    char piece[16384];

    (void)holder(r, i, ep, tp, &pp, &base);
    for (pp++; (f = holder(r, i, ep, tp, &pp, &base)) != NULL; pp++) {
        char name[SHARD_RANKS_NAME];

        shard_ranks_name(r->layout, (uint32_t)(f - r->files), name);
        for (size_t done = 0; done < n; done += sizeof(piece)) {
            size_t k = n - done < sizeof(piece) ? n - done : sizeof(piece);
            int rc = moe_read_at(f->fd, name, piece, k, f->data_at + base + at + done, e);

            if (rc != 0)
                return rc;
            if (memcmp(piece, (const char *)p + done, k) != 0)
                return moe_err_set(e, MOE_EFORMAT, "%s: its copies on the ranks differ",
                    r->p->items[i].t->name);
        }
    }
    return 0;
}

int
shard_ranks_commit(struct shard_ranks *r, struct moe_err *e)
{
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < r->n; k++) {
        struct moe_out *o = r->files[k].out;

        r->files[k].out = NULL;
        rc = moe_out_commit(o, e);
    }
    return rc;
}

void
shard_ranks_free(struct shard_ranks *r)
{
    if (r == NULL)
        return;
    for (uint32_t k = 0; r->files != NULL && k < r->n; k++) {
        moe_out_abort(r->files[k].out);
        if (r->files[k].fd >= 0)
            (void)close(r->files[k].fd);
    }
    free(r->files);
    free(r->at);
    free(r);
}
