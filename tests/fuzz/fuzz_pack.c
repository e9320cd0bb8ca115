/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack of any bytes in a store: head, foot and index are put right when asked,
 * so that what is behind them is reached. It is walked, looked up, and its
 * chunks are read through whatever chains it has.
 */
/* covers: common/store/pack.c common/store/walk.c common/store/packs.c common/store/chunk.c */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/le.h"
#include "common/store/chunk.h"
#include "common/store/packs.h"
#include "common/store/parts.h"
#include "common/store/walk.h"
#include "kernels/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#define MAX ((size_t)1 << 16)

struct seen { struct moe_pack_ref ref[64]; uint32_t plain[64]; size_t n; };

static int
visit(void *ctx, const struct moe_walk_place *at, struct moe_err *e)
{
    struct seen *s = ctx;

    if (at->rc != 0 && e->text[0] == '\0')
        abort();
    if (at->r != NULL && s->n < 64) {
        s->ref[s->n] = at->r->ref;
        s->plain[s->n++] = at->r->plain;
    }
    return 0;
}

/* Put the checksums right of what looks like records from the first on. */
static void
mend(unsigned char *p, size_t n)
{
    size_t at = MOE_PACK_HEAD, count = 0, end = n - MOE_PACK_FOOT;
    unsigned char sum[MOE_DIGEST_LEN];

    moe_pack_put_head(1, p);
    while (end - at >= MOE_PACK_RECORD && memcmp(p + at, "REC1", 4) == 0) {
        size_t body = moe_le_get32(p + at + 8);

        if (body > end - at - MOE_PACK_RECORD)
            break;
        moe_le_put32(p + at + 100, moe_kernels()->crc32c(0, p + at + MOE_PACK_RECORD, body));
        moe_le_put32(p + at + 108, moe_kernels()->crc32c(0, p + at, 108));
        at += MOE_PACK_RECORD + body;
    }
    count = (end - at) / MOE_PACK_ENTRY;
    if (moe_digest_of(p + end - count * MOE_PACK_ENTRY, count * MOE_PACK_ENTRY, sum, NULL) == 0)
        moe_pack_put_foot(end - count * MOE_PACK_ENTRY, count, sum, p + end);
}

static void
read_all(struct moe_packs *packs, const struct seen *s)
{
    struct moe_chunk_room room = MOE_CHUNK_ROOM_INIT;
    unsigned char *out = malloc(MOE_PACK_CHUNK);
    struct moe_pack_record r;
    struct moe_err e = { 0, "" };

    for (size_t i = 0; i < s->n && out != NULL; i++) {
        struct moe_parts_one one = { (uint64_t)s->plain[i] + 1, MOE_U8, s->ref[i] };
        struct moe_pack_ref *v;
        size_t n;

        (void)moe_packs_find(packs, s->ref[i].id, s->ref[i].type, &r, &e);
        if (s->ref[i].type == MOE_PACK_IS_CHUNK && s->plain[i] <= MOE_PACK_CHUNK)
            (void)moe_chunk_read(packs, &s->ref[i], s->plain[i], out, &r, &room, &e);
        one.len = s->plain[i] / MOE_PACK_REF * MOE_PACK_CHUNK + 1;
        if (s->ref[i].type == MOE_PACK_IS_TABLE &&
            moe_parts_table(packs, &one, &v, &n, &e) == 0)
            free(v);
    }
    free(out);
    moe_chunk_room_fini(&room);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char dir[] = "fuzz-pack-XXXXXX";
    struct seen s = { .n = 0 };
    struct moe_packs *packs = NULL;
    struct moe_err e = { 0, "" };
    unsigned char *copy;
    int fd, dirfd;

    if (n < 1 + MOE_PACK_HEAD + MOE_PACK_FOOT || n > MAX || mkdtemp(dir) == NULL)
        return 0;
    if ((copy = malloc(n - 1)) == NULL || (dirfd = open(dir, O_RDONLY | O_DIRECTORY)) < 0)
        abort();
    memcpy(copy, p + 1, n - 1);
    if (p[0] & 1)
        mend(copy, n - 1);
    if (mkdirat(dirfd, "packs", 0700) != 0 || mkdirat(dirfd, "trash", 0700) != 0 ||
        (fd = openat(dirfd, "packs/1.pack", O_RDWR | O_CREAT, 0600)) < 0 ||
        write(fd, copy, n - 1) != (ssize_t)(n - 1))
        abort();
    (void)close(fd);
    if (moe_walk_pack(dirfd, dir, 1, true, visit, &s, &e) != 0)
        abort();
    if (moe_packs_new(dirfd, dir, &packs, &e) == 0)
        read_all(packs, &s);
    moe_packs_free(packs);
    (void)unlinkat(dirfd, "packs/1.pack", 0);
    (void)unlinkat(dirfd, "packs", AT_REMOVEDIR);
    (void)unlinkat(dirfd, "trash", AT_REMOVEDIR);
    (void)close(dirfd);
    (void)rmdir(dir);
    free(copy);
    return 0;
}
