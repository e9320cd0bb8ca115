/* SPDX-License-Identifier: Apache-2.0 */
/* Owns finding parts, whether they belong together, and the proof. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_gguf.h"
#include "cmd/moe-shard/shard_ggufmerge.h"
#include "common/base/beneath.h"
#include "common/base/tool.h"

/* The name of part k, by that of the first, which ends in -00001-of-0000N.gguf. */
static int
sibling(const char *base, size_t k, size_t n, char name[SHARD_GGUF_NAME], struct moe_err *e)
{
    char end[32];
    size_t len = strlen(base), tail = (size_t)snprintf(end, sizeof(end), "-%05d-of-%05zu.gguf", 1,
        n);

    if (len <= tail || len >= SHARD_GGUF_NAME - 16 || strcmp(base + len - tail, end) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: the name of a first part ends in %s", base, end);
    (void)snprintf(name, SHARD_GGUF_NAME, "%.*s-%05zu-of-%05zu.gguf", (int)(len - tail), base,
        k + 1, n);
    return 0;
}

/* Open part k and look whether it belongs. */
static int
open_part(struct shard_gguf_job *j, int dir, const char *dirname, const char *base, size_t k)
{
    struct shard_gguf_part *p = &j->part[k];
    int64_t no, count;
    char name[SHARD_GGUF_NAME];
    int rc = sibling(base, k, j->n, name, j->e);

    if (rc != 0)
        return rc;
    if ((p->fd = moe_beneath_open(dir, dirname, name, j->e)) < 0)
        return p->fd;
    if ((rc = moe_gguf_fd(p->fd, name, &p->g, j->e)) != 0)
        return rc;
    if (!shard_gguf_number(p->g, SHARD_GGUF_NO, &no) || no != (int64_t)k ||
        !shard_gguf_number(p->g, SHARD_GGUF_COUNT, &count) || count != (int64_t)j->n)
        return moe_err_set(j->e, MOE_EFORMAT, "%s: not part %zu of %zu by its own keys", name,
            k + 1, j->n);
    return 0;
}

/* The header of the whole: keys of the first part but for those of the split. */
static int
whole_header(const struct shard_gguf_job *j, struct moe_buf *b, uint64_t *data)
{
    struct moe_ggufw *w = moe_ggufw_new();
    const struct moe_gguf *g = j->part[0].g;
    size_t n = 0;
    int64_t want;
    int rc;

    if (w == NULL)
        return moe_err_set(j->e, MOE_ENOMEM, "%s: out of memory", j->path);
    for (size_t i = 0; i < moe_gguf_kvs(g); i++) {
        if (!shard_gguf_is_ours(moe_gguf_kv(g, i)->key))
            moe_ggufw_copy(w, moe_gguf_kv(g, i));
    }
    for (size_t k = 0; k < j->n; k++) {
        shard_gguf_add(w, j->part[k].g, 0, moe_gguf_n(j->part[k].g));
        n += moe_gguf_n(j->part[k].g);
    }
    if (!shard_gguf_number(g, SHARD_GGUF_TENSORS, &want) || want != (int64_t)n)
        rc = moe_err_set(j->e, MOE_EFORMAT, "%s: %zu tensors in the parts, not as many as %s says",
            j->path, n, SHARD_GGUF_TENSORS);
    else if ((rc = moe_ggufw_emit(w, b, j->e)) == 0)
        *data = moe_ggufw_data(w);
    moe_ggufw_free(w);
    return rc;
}

static int
write_whole(struct shard_gguf_job *j, const struct moe_buf *head, struct moe_out *to)
{
    uint64_t align = moe_gguf_alignment(j->part[0].g);
    int rc = moe_out_write(to, head->p, head->len, j->e);

    moe_digest_add(&j->sum, head->p, head->len);
    for (size_t k = 0; rc == 0 && k < j->n; k++) {
        const struct shard_gguf_part *p = &j->part[k];

        for (size_t i = 0; rc == 0 && i < moe_gguf_n(p->g); i++) {
            const struct moe_gguf_tensor *t = moe_gguf_at(p->g, i);

            rc = shard_gguf_copy(j, p->fd, j->path, moe_gguf_data_at(p->g) + t->offset, t->bytes,
                to, true);
            if (rc == 0)
                rc = shard_gguf_pad(j, (align - t->bytes % align) % align, to, true);
        }
    }
    return rc;
}

/* Whether the digest is the one that the first part has; so when it has none. */
static int
prove(struct shard_gguf_job *j, bool *differs)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(j->part[0].g, SHARD_GGUF_SUM);
    unsigned char sum[MOE_DIGEST_LEN], want[MOE_DIGEST_LEN];
    const char *hex;
    size_t n;
    int rc = moe_digest_end(&j->sum, sum, j->e);

    *differs = false;
    if (rc != 0)
        return rc;
    if (kv == NULL) {
        if (!j->o->quiet)
            moe_tool_warn("%s: no digest of the whole in it: not proved", j->path);
        return 0;
    }
    if (!moe_ggufkv_str(kv, &hex, &n) || !moe_digest_unhex(hex, n, want))
        return moe_err_set(j->e, MOE_EFORMAT, "%s: %s is no digest", j->path, SHARD_GGUF_SUM);
    *differs = memcmp(sum, want, sizeof(sum)) != 0;
    return *differs ? moe_err_set(j->e, MOE_EFORMAT, "%s: joined, the parts are not the file that"
        " was split", j->path) : 0;
}

static int
merge(struct shard_gguf_job *j, const char *dst, bool *differs)
{
    struct moe_buf head = MOE_BUF_INIT;
    struct moe_out *to = NULL;
    uint64_t data = 0;
    int rc;

    if ((rc = whole_header(j, &head, &data)) != 0 ||
        (rc = moe_out_open(dst, j->o->force, head.len + data, &to, j->e)) != 0)
        goto out;
    moe_progress_start(&j->progress, "merging", data, j->o->quiet);
    rc = write_whole(j, &head, to);
    moe_progress_end(&j->progress);
    if (rc == 0 && (rc = prove(j, differs)) == 0) {
        rc = moe_out_commit(to, j->e);
        to = NULL;
    }
out:
    moe_out_abort(to);
    moe_buf_fini(&head);
    return rc;
}

int
shard_ggufmerge(const char *src, const struct shard_pack_options *o, const char *dst,
    bool *differs, struct moe_err *e)
{
    struct shard_gguf_job j = { .o = o, .path = src, .sum = MOE_DIGEST_INIT, .e = e };
    const char *base = strrchr(src, '/');
    struct moe_gguf *g = NULL;
    char *dirname = base == NULL ? strdup(".") : strndup(src, (size_t)(base - src) + 1);
    int64_t count = 0;
    int fd = open(src, O_RDONLY | O_CLOEXEC), dir = -1, rc;

    *differs = false;
    base = base == NULL ? src : base + 1;
    if (fd < 0) {
        free(dirname);
        return moe_err_set(e, MOE_EIO, "%s: cannot be opened", src);
    }
    if (dirname == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", src);
    else if ((rc = moe_gguf_fd(fd, src, &g, e)) == 0 &&
        (!shard_gguf_number(g, SHARD_GGUF_COUNT, &count) || count < 1 ||
        count > SHARD_GGUF_MAX_PARTS))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: it does not say how many parts there are", src);
    moe_gguf_free(g);
    (void)close(fd);
    if (rc == 0 && (dir = moe_beneath_dir(dirname, e)) < 0)
        rc = dir;
    if (rc == 0 && (rc = shard_gguf_new(&j, (size_t)count)) == 0) {
        j.n = (size_t)count;
        for (size_t k = 0; rc == 0 && k < j.n; k++)
            rc = open_part(&j, dir, dirname, base, k);
        if (rc == 0)
            rc = merge(&j, dst, differs);
    }
    shard_gguf_free(&j);
    if (dir >= 0)
        (void)close(dir);
    free(dirname);
    return rc;
}
