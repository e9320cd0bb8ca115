/* SPDX-License-Identifier: Apache-2.0 */
/* Owns safetensors in files of a size. GGUF is shard_gguf.c's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_beside.h"
#include "cmd/moe-shard/shard_ggufsplit.h"
#include "cmd/moe-shard/shard_pack.h"
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

static int
dry(const struct moe_sink_plan *p, const struct shard_pack_options *o, struct moe_err *e)
{
    struct moe_sink_size size;
    int rc = moe_sink_size(p, &size, e);

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
    return 0;
}

static int
copy_tensors(struct moe_source *src, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    unsigned char *p = malloc(PIECE);
    int rc = p == NULL ? moe_err_set(e, MOE_ENOMEM, "out of memory") : 0;

    for (size_t i = 0; rc == 0 && i < moe_source_n(src); i++) {
        const struct moe_tensor *t = moe_source_at(src, i);
        uint64_t left = t->end - t->begin;

        for (uint64_t at = 0; rc == 0 && left > 0;) {
            size_t n = left < PIECE ? (size_t)left : PIECE;

            if ((rc = moe_source_read(src, i, at, p, n, e)) == 0)
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
write_all(struct moe_source *src, const struct moe_sink_plan *p,
    const struct shard_pack_options *o, const char *dst, struct moe_err *e)
{
    struct moe_progress progress;
    struct moe_sink *to;
    int rc = moe_sink_open(dst, o->force, p, &to, e);

    if (rc != 0)
        return rc;
    moe_progress_start(&progress, "packing", moe_source_bytes(src), o->quiet);
    if ((rc = copy_tensors(src, to, &progress, e)) == 0)
        rc = copy_beside(src, to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        return moe_sink_commit(to, e);
    moe_sink_abort(to);
    return rc;
}

int
shard_pack_split(const char *src, const struct shard_pack_options *o, const char *dst,
    struct moe_err *e)
{
    struct moe_sink_plan plan = { .shard_bytes = o->max_bytes, .align = ALIGN };
    struct moe_tensor *t = NULL;
    struct moe_source *s;
    int rc = moe_source_open(src, &s, e);

    if (rc != 0)
        return rc;
    if (moe_source_gguf(s) != NULL) {
        moe_source_close(s);
        return shard_ggufsplit(src, o, dst, e);
    }
    plan.n = moe_source_n(s);
    if ((t = calloc(plan.n + 1, sizeof(*t))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", src);
    for (size_t i = 0; rc == 0 && i < plan.n; i++)
        t[i] = *moe_source_at(s, i);
    plan.tensors = t;
    if (rc == 0 && o->max_tensors > 0)
        rc = moe_err_set(e, MOE_EUNSUP, "%s: --max-tensors is for GGUF files", src);
    if (rc == 0)
        rc = o->dry ? dry(&plan, o, e) : write_all(s, &plan, o, dst, e);
    free(t);
    moe_source_close(s);
    return rc;
}
