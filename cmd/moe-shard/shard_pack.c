/* SPDX-License-Identifier: Apache-2.0 */
/* Owns safetensors in files of a size. GGUF is shard_gguf.c's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_beside.h"
#include "cmd/moe-shard/shard_ggufsplit.h"
#include "cmd/moe-shard/shard_pack.h"
#include "cmd/moe-shard/shard_share.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

#define PIECE ((size_t)8 << 20)
#define ALIGN 8

void
shard_pack_print(const struct shard_pack_options *o, size_t n, const char *name, uint64_t bytes)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    if (!o->json) {
        printf("%s  %15" PRIu64 " bytes\n", name, bytes);
        return;
    }
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "file");
    moe_jsonw_str(&w, name, strlen(name));
    moe_jsonw_key(&w, "of");
    moe_jsonw_uint(&w, n);
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, bytes);
    moe_jsonw_close(&w, '}');
    if (!b.bad)
        printf("%s\n", b.p);
    moe_buf_fini(&b);
}

/* A model on its way to files: its tensors in the order they will have. */
struct pack {
    const struct shard_pack_options *o;
    struct moe_source *src;
    struct moe_sink_plan plan;
    struct moe_tensor *t;       /* [plan.n] */
    size_t *from;               /* [plan.n] which of the source's it is */
    size_t *first;              /* [links] */
    double *bandwidth;          /* [links], or NULL */
    size_t links;
};

/* Of each link its share of the tensors' bytes and what it gets; then how far they lie apart. */
static int
tell_links(const struct pack *x, struct moe_err *e)
{
    double max = 0, min = 0, mean = 0;
    uint64_t *share = calloc(x->links, sizeof(*share));

    if (share == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    shard_share_bytes(moe_source_bytes(x->src), x->bandwidth, x->links, share);
    for (size_t k = 0; k < x->links; k++) {
        size_t end = k + 1 < x->links ? x->first[k + 1] : x->plan.n;
        uint64_t bytes = 0;
        double v;

        for (size_t i = x->first[k]; i < end; i++)
            bytes += x->t[i].end - x->t[i].begin;
        v = (double)bytes / x->bandwidth[k];
        max = k == 0 || v > max ? v : max;
        min = k == 0 || v < min ? v : min;
        mean += v / (double)x->links;
        printf(x->o->json ? "{\"link\":%zu,\"share\":%" PRIu64 ",\"data\":%" PRIu64
            ",\"seconds\":%.9g}\n" : "link %zu  share %15" PRIu64 "  data %15" PRIu64 "  %.6g s\n",
            k + 1, share[k], bytes, v);
    }
    free(share);
    printf(x->o->json ? "{\"links\":%zu,\"max_s\":%.9g,\"min_s\":%.9g,\"imbalance\":%.9g}\n" :
        "%zu links: at most %.6g s, at least %.6g s, imbalance %.6g\n", x->links, max, min,
        mean > 0 ? (max - min) / mean : 0);
    return 0;
}

static int
dry(const struct pack *x, struct moe_err *e)
{
    const struct shard_pack_options *o = x->o;
    struct moe_sink_size size;
    int rc = moe_sink_size(&x->plan, &size, e);

    if (rc != 0)
        return rc;
    for (size_t k = 0; k < size.files; k++) {
        char name[MOE_SINK_NAME];

        moe_sink_name(k, size.files, name);
        shard_pack_print(o, size.files, name, size.bytes[k]);
    }
    if (size.index_bytes > 0)
        shard_pack_print(o, size.files, MOE_SINK_INDEX, size.index_bytes);
    moe_sink_size_fini(&size);
    return x->links > 0 ? tell_links(x, e) : 0;
}

static int
copy_tensors(const struct pack *x, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    unsigned char *p = malloc(PIECE);
    int rc = p == NULL ? moe_err_set(e, MOE_ENOMEM, "out of memory") : 0;

    for (size_t i = 0; rc == 0 && i < x->plan.n; i++) {
        const struct moe_tensor *t = &x->t[i];
        uint64_t left = t->end - t->begin;

        for (uint64_t at = 0; rc == 0 && left > 0;) {
            size_t n = left < PIECE ? (size_t)left : PIECE;

            if ((rc = moe_source_read(x->src, x->from[i], at, p, n, e)) == 0)
                rc = moe_sink_write(to, p, n, e);
            at += n;
            left -= n;
            moe_progress_add(progress, n);
        }
    }
    free(p);
    return rc;
}

static int
copy_beside(struct moe_source *src, struct moe_sink *to, struct moe_err *e)
{
    const char *name;
    int rc = 0;

    for (size_t i = 0; rc == 0 && (name = moe_source_aux_name(src, i)) != NULL; i++) {
        struct moe_buf b = MOE_BUF_INIT;

        if ((rc = moe_source_aux(src, name, SHARD_BESIDE_MAX, &b, e)) == 0)
            rc = moe_sink_aux(to, name, b.p, b.len, e);
        moe_buf_fini(&b);
    }
    return rc;
}

static int
write_all(const struct pack *x, const char *dst, struct moe_err *e)
{
    struct moe_progress progress;
    struct moe_sink *to;
    int rc = moe_sink_open(dst, x->o->force, &x->plan, &to, e);

    if (rc != 0)
        return rc;
    moe_progress_start(&progress, "packing", moe_source_bytes(x->src), x->o->quiet);
    if ((rc = copy_tensors(x, to, &progress, e)) == 0)
        rc = copy_beside(x->src, to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        return moe_sink_commit(to, e);
    moe_sink_abort(to);
    return rc;
}

/* Files in proportion to their links: the tensors in order of link, and in a link as they were. */
static int
deal(struct pack *x, struct moe_err *e)
{
    size_t n = x->plan.n, at = 0;
    uint64_t *size = calloc(n + 1, sizeof(*size));
    uint32_t *link = calloc(n + 1, sizeof(*link));
    int rc = shard_share_links(x->o->links, &x->bandwidth, &x->links, e);

    if (rc == 0 && (size == NULL || link == NULL ||
        (x->first = calloc(x->links, sizeof(*x->first))) == NULL))
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct moe_tensor *t = moe_source_at(x->src, i);

        size[i] = t->end - t->begin;
    }
    if (rc == 0)
        rc = shard_share_deal(size, n, x->bandwidth, x->links, link, e);
    for (size_t k = 0; rc == 0 && k < x->links; k++) {
        x->first[k] = at;
        for (size_t i = 0; i < n; i++) {
            if (link[i] == k)
                x->from[at++] = i;
        }
    }
    x->plan.first = x->first;
    x->plan.files = x->links;
    free(size);
    free(link);
    return rc;
}

static int
run(struct pack *x, const char *src, const char *dst, struct moe_err *e)
{
    int rc = 0;

    x->plan.n = moe_source_n(x->src);
    x->t = calloc(x->plan.n + 1, sizeof(*x->t));
    x->from = calloc(x->plan.n + 1, sizeof(*x->from));
    if (x->t == NULL || x->from == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", src);
    if (x->o->max_tensors > 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: --max-tensors is for GGUF files", src);
    if (x->o->links != NULL && moe_source_is_stream(x->src))
        return moe_err_set(e, MOE_EUNSUP, "%s: a stream cannot be dealt out: its order is fixed",
            src);
    for (size_t i = 0; i < x->plan.n; i++)
        x->from[i] = i;
    if (x->o->links != NULL && (rc = deal(x, e)) != 0)
        return rc;
    for (size_t i = 0; i < x->plan.n; i++)
        x->t[i] = *moe_source_at(x->src, x->from[i]);
    x->plan.tensors = x->t;
    return x->o->dry ? dry(x, e) : write_all(x, dst, e);
}

int
shard_pack_split(const char *src, const struct shard_pack_options *o, const char *dst,
    struct moe_err *e)
{
    struct pack x = { .o = o, .plan = { .shard_bytes = o->max_bytes, .align = ALIGN } };
    int rc = moe_source_open(src, &x.src, e);

    if (rc != 0)
        return rc;
    if (moe_source_gguf(x.src) == NULL)
        rc = run(&x, src, dst, e);
    else if (o->links != NULL)
        rc = moe_err_set(e, MOE_EUNSUP, "%s: a GGUF file is split by --max-size", src);
    else
        rc = shard_ggufsplit(src, o, dst, e);
    free(x.t);
    free(x.from);
    free(x.first);
    free(x.bandwidth);
    moe_source_close(x.src);
    return rc;
}
