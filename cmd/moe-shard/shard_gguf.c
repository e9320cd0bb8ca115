/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the keys of parts, and bytes on their way between parts and the whole. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_gguf.h"
#include "common/base/read.h"

#define PIECE ((size_t)8 << 20)

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

int
shard_gguf_new(struct shard_gguf_job *j, size_t parts)
{
    j->part = calloc(parts + 1, sizeof(*j->part));
    j->piece = malloc(PIECE);
    for (size_t k = 0; j->part != NULL && k < parts; k++)
        j->part[k].fd = -1;
    return j->part == NULL || j->piece == NULL ? no_memory(j->e) : moe_digest_begin(&j->sum, j->e);
}

void
shard_gguf_free(struct shard_gguf_job *j)
{
    for (size_t k = 0; j->part != NULL && k < j->n; k++) {
        moe_gguf_free(j->part[k].g);
        if (j->part[k].fd >= 0)
            (void)close(j->part[k].fd);
    }
    free(j->part);
    free(j->piece);
    moe_digest_fini(&j->sum);
}

bool
shard_gguf_number(const struct moe_gguf *g, const char *key, int64_t *v)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, key);

    return kv != NULL && !kv->array && moe_ggufkv_int(kv, v);
}

bool
shard_gguf_is_ours(const char *key)
{
    return strcmp(key, SHARD_GGUF_NO) == 0 || strcmp(key, SHARD_GGUF_COUNT) == 0 ||
        strcmp(key, SHARD_GGUF_TENSORS) == 0 || strcmp(key, SHARD_GGUF_SUM) == 0;
}

int
shard_gguf_copy(struct shard_gguf_job *j, int fd, const char *name, uint64_t at, uint64_t n,
    struct moe_out *to, bool summed)
{
    while (n > 0) {
        size_t k = n < PIECE ? (size_t)n : PIECE;
        int rc = moe_read_at(fd, name, j->piece, k, at, j->e);

        if (rc != 0)
            return rc;
        if (summed)
            moe_digest_add(&j->sum, j->piece, k);
        if (to != NULL && (rc = moe_out_write(to, j->piece, k, j->e)) != 0)
            return rc;
        moe_progress_add(&j->progress, k);
        at += k;
        n -= k;
    }
    return 0;
}

int
shard_gguf_pad(struct shard_gguf_job *j, uint64_t n, struct moe_out *to, bool summed)
{
    static const unsigned char zeros[4096];

    for (size_t k; n > 0; n -= k) {
        int rc;

        k = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);
        if (summed)
            moe_digest_add(&j->sum, zeros, k);
        if ((rc = moe_out_write(to, zeros, k, j->e)) != 0)
            return rc;
    }
    return 0;
}

void
shard_gguf_add(struct moe_ggufw *w, const struct moe_gguf *g, size_t first, size_t n)
{
    for (size_t i = first; i < first + n; i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);

        moe_ggufw_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
}
