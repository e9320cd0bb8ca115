/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which tensors go to which part, and the parts' names and headers. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_gguf.h"
#include "cmd/moe-shard/shard_ggufsplit.h"

/* Whole tensors in their order; a new part where the limit would be passed. */
static int
deal(struct shard_gguf_job *j, const struct moe_gguf *g)
{
    uint64_t align = moe_gguf_alignment(g), bytes = 0;
    size_t n = moe_gguf_n(g);

    if (n == 0)
        return moe_err_set(j->e, MOE_EUNSUP, "%s: no tensors", j->path);
    j->n = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t size = (moe_gguf_at(g, i)->bytes + align - 1) / align * align;
        struct shard_gguf_part *p = &j->part[j->n > 0 ? j->n - 1 : 0];

        if (j->n == 0 || (j->o->max_tensors > 0 && p->n == j->o->max_tensors) ||
            (j->o->max_bytes > 0 && p->n > 0 && size > j->o->max_bytes - bytes)) {
            p = &j->part[j->n++];
            p->first = i;
            bytes = 0;
        }
        p->n++;
        bytes = size > UINT64_MAX - bytes ? UINT64_MAX : bytes + size;
        if (j->o->max_bytes > 0 && bytes > j->o->max_bytes)
            bytes = j->o->max_bytes;
    }
    return j->n <= SHARD_GGUF_MAX_PARTS ? 0 : moe_err_set(j->e, MOE_ELIMIT, "%s: over %d parts",
        j->path, SHARD_GGUF_MAX_PARTS);
}

/* The header of part k; sum: of the whole, in the first. */
static int
part_header(const struct shard_gguf_job *j, const struct moe_gguf *g, size_t k, const char *sum,
    struct moe_buf *b, uint64_t *data)
{
    struct moe_ggufw *w = moe_ggufw_new();
    int rc;

    if (w == NULL)
        return moe_err_set(j->e, MOE_ENOMEM, "%s: out of memory", j->path);
    for (size_t i = 0; k == 0 && i < moe_gguf_kvs(g); i++) {
        const struct moe_gguf_kv *kv = moe_gguf_kv(g, i);

        if (!shard_gguf_is_ours(kv->key))
            moe_ggufw_copy(w, kv);
    }
    moe_ggufw_int(w, SHARD_GGUF_NO, MOE_GGUF_U16, (int64_t)k);
    moe_ggufw_int(w, SHARD_GGUF_COUNT, MOE_GGUF_U16, (int64_t)j->n);
    moe_ggufw_int(w, SHARD_GGUF_TENSORS, MOE_GGUF_I32, (int64_t)moe_gguf_n(g));
    if (k == 0)
        moe_ggufw_str(w, SHARD_GGUF_SUM, sum, strlen(sum));
    shard_gguf_add(w, g, j->part[k].first, j->part[k].n);
    moe_buf_clear(b);
    if ((rc = moe_ggufw_emit(w, b, j->e)) == 0)
        *data = moe_ggufw_data(w);
    moe_ggufw_free(w);
    return rc;
}

/* Tensors of part k, each padded; the bytes between them in the whole are in its digest. */
static int
write_part(struct shard_gguf_job *j, const struct moe_gguf *g, int fd, size_t k, struct moe_out *to)
{
    const struct shard_gguf_part *p = &j->part[k];
    uint64_t align = k == 0 ? moe_gguf_alignment(g) : MOE_GGUF_ALIGN;
    int rc = 0;

    for (size_t i = p->first; rc == 0 && i < p->first + p->n; i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);
        uint64_t at = moe_gguf_data_at(g) + t->offset;
        uint64_t end = i + 1 < moe_gguf_n(g) ? moe_gguf_at(g, i + 1)->offset : moe_gguf_data_len(g);

        rc = shard_gguf_copy(j, fd, j->path, at, t->bytes, to, true);
        if (rc == 0)
            rc = shard_gguf_copy(j, fd, j->path, at + t->bytes, end - t->offset - t->bytes, NULL,
                true);
        if (rc == 0)
            rc = shard_gguf_pad(j, (align - t->bytes % align) % align, to, false);
    }
    return rc;
}

static void
part_name(const char *path, size_t k, size_t n, char name[SHARD_GGUF_NAME])
{
    const char *base = strrchr(path, '/');
    size_t len;

    base = base == NULL ? path : base + 1;
    len = strlen(base);
    if (len > 5 && strcmp(base + len - 5, ".gguf") == 0)
        len -= 5;
    (void)snprintf(name, SHARD_GGUF_NAME, "%.*s-%05zu-of-%05zu.gguf",
        (int)(len < 256 ? len : 256), base, k + 1, n);
}

/* All parts; the first's header once more when the digest of the whole is known. */
static int
write_parts(struct shard_gguf_job *j, const struct moe_gguf *g, int fd, struct moe_outdir *d)
{
    unsigned char sum[MOE_DIGEST_LEN] = { 0 };
    char hex[MOE_DIGEST_HEX], name[SHARD_GGUF_NAME];
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *first = NULL, *o = NULL;
    uint64_t data;
    int rc = shard_gguf_copy(j, fd, j->path, 0, moe_gguf_data_at(g), NULL, true);

    (void)moe_digest_hex(sum, hex);
    for (size_t k = 0; rc == 0 && k < j->n; k++) {
        part_name(j->path, k, j->n, name);
        if ((rc = part_header(j, g, k, hex, &b, &data)) != 0 ||
            (rc = moe_outdir_file(d, name, b.len + data, &o, j->e)) != 0)
            break;
        first = k == 0 ? o : first;
        if ((rc = moe_out_write(o, b.p, b.len, j->e)) != 0 ||
            (rc = write_part(j, g, fd, k, o)) != 0 || k == 0)
            continue;
        rc = moe_out_commit(o, j->e);
        o = NULL;
    }
    if (o != first)
        moe_out_abort(o);
    if (rc == 0 && (rc = moe_digest_end(&j->sum, sum, j->e)) == 0 &&
        (rc = part_header(j, g, 0, moe_digest_hex(sum, hex), &b, &data)) == 0 &&
        (rc = moe_out_pwrite(first, b.p, b.len, 0, j->e)) == 0) {
        rc = moe_out_commit(first, j->e);
        first = NULL;
    }
    moe_out_abort(first);
    moe_buf_fini(&b);
    return rc;
}

static int
print_parts(const struct shard_gguf_job *j, const struct moe_gguf *g)
{
    char hex[MOE_DIGEST_HEX], name[SHARD_GGUF_NAME];
    unsigned char sum[MOE_DIGEST_LEN] = { 0 };
    struct moe_buf b = MOE_BUF_INIT;
    uint64_t data;
    int rc = 0;

    (void)moe_digest_hex(sum, hex);
    for (size_t k = 0; rc == 0 && k < j->n; k++) {
        part_name(j->path, k, j->n, name);
        if ((rc = part_header(j, g, k, hex, &b, &data)) == 0)
            shard_pack_print(j->o, j->n, name, b.len + data);
    }
    moe_buf_fini(&b);
    return rc;
}

int
shard_ggufsplit(const char *src, const struct shard_pack_options *o, const char *dst,
    struct moe_err *e)
{
    struct shard_gguf_job j = { .o = o, .path = src, .sum = MOE_DIGEST_INIT, .e = e };
    struct moe_gguf *g = NULL;
    struct moe_outdir *d = NULL;
    int64_t count;
    int fd = open(src, O_RDONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return moe_err_set(e, MOE_EIO, "%s: cannot be opened", src);
    if ((rc = moe_gguf_fd(fd, src, &g, e)) != 0)
        goto out;
    if (shard_gguf_number(g, SHARD_GGUF_COUNT, &count) && count > 1) {
        rc = moe_err_set(e, MOE_EUNSUP, "%s: it says it is a part of %" PRId64 ": merge them first",
            src, count);
        goto out;
    }
    if ((rc = shard_gguf_new(&j, moe_gguf_n(g))) != 0 || (rc = deal(&j, g)) != 0)
        goto out;
    if (o->dry) {
        rc = print_parts(&j, g);
        goto out;
    }
    moe_progress_start(&j.progress, "splitting", moe_gguf_data_at(g) + moe_gguf_data_len(g),
        o->quiet);
    if ((rc = moe_outdir_open(dst, o->force, &d, e)) == 0 &&
        (rc = write_parts(&j, g, fd, d)) == 0) {
        rc = moe_outdir_commit(d, e);
        d = NULL;
    }
    moe_progress_end(&j.progress);
    moe_outdir_abort(d);
out:
    shard_gguf_free(&j);
    moe_gguf_free(g);
    (void)close(fd);
    return rc;
}
