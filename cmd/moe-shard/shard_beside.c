/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the copying of small files. Which there are, the set tells.
 */
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_beside.h"
#include "common/base/beneath.h"
#include "common/base/read.h"

/* config.json into the directory of every rank. */
static int
for_ranks(const struct shard_set *s, struct moe_outdir *d, const struct moe_buf *b,
    struct moe_err *e)
{
    int rc = 0;

    for (uint32_t k = 0; rc == 0 && k < moe_grid_ranks(&s->grid); k++) {
        char path[SHARD_RANKS_NAME], *slash;

        shard_ranks_name(s->layout, k, path);
        if ((slash = strrchr(path, '/')) == NULL)
            return 0;
        memcpy(slash + 1, "config.json", sizeof("config.json"));
        rc = moe_outdir_put(d, path, b->p, b->len, e);
    }
    return rc;
}

int
shard_beside_copy(const struct shard_set *s, struct moe_outdir *d, shard_beside_get *get,
    void *ctx, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    if (s->index && (rc = get(ctx, SHARD_SET_INDEX, &b, e)) == 0)
        rc = moe_outdir_put(d, "source/" SHARD_SET_INDEX, b.p, b.len, e);
    for (size_t i = 0; rc == 0 && i < s->n_aux; i++) {
        moe_buf_clear(&b);
        if ((rc = get(ctx, s->aux[i], &b, e)) == 0)
            rc = moe_outdir_put(d, s->aux[i], b.p, b.len, e);
        if (rc == 0 && strcmp(s->aux[i], "config.json") == 0)
            rc = for_ranks(s, d, &b, e);
    }
    moe_buf_fini(&b);
    return rc;
}

int
shard_beside_from(void *ctx, const char *name, struct moe_buf *b, struct moe_err *e)
{
    const struct shard_beside_dir *d = ctx;
    const char *path = strcmp(name, SHARD_SET_INDEX) == 0 ? "source/" SHARD_SET_INDEX : name;
    int fd = moe_beneath_open(d->fd, d->path, path, e), rc;

    if (fd < 0)
        return fd;
    rc = moe_read_fd(fd, path, SHARD_BESIDE_MAX, b, e);
    (void)close(fd);
    return rc != 0 ? moe_err_at(e, "%s", d->path) : 0;
}
