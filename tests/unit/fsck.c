/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small store with each byte of each of its files changed in turn: every
 * change is found, and where it touches a tensor, that is named.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/fsck.h"
#include "common/store/saver.h"
#include "common/store/walk.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#define BIG (MOE_PACK_CHUNK + 5000)

static struct moe_pool *pool;

/* What fsck said. */
struct said { size_t lines; char text[4096]; };

static void
told(void *ctx, const char *text)
{
    struct said *s = ctx;
    size_t n = strlen(s->text);

    s->lines++;
    if (n + strlen(text) + 2 < sizeof(s->text))
        (void)snprintf(s->text + n, sizeof(s->text) - n, "%s\n", text);
}

/* Check store S; -1 if it could not even be opened. */
static long
check(bool fast, struct said *s, struct moe_fsck *f)
{
    struct moe_err e = { 0 };
    long rc;

    memset(s, 0, sizeof(*s));
    memset(f, 0, sizeof(*f));
    if (moe_store_open("S", false, 0, &f->store, &e) != 0)
        return -1;
    f->pool = pool;
    f->fast = fast;
    f->told = told;
    f->ctx = s;
    rc = moe_fsck_run(f, &e) == 0 ? (long)s->lines : -1;
    moe_store_close(f->store);
    return rc;
}

/* A safetensors file: header h, then n bytes of data. */
static void
save(const char *h, const unsigned char *data, size_t n, const char *tag)
{
    struct moe_snapshot snap = MOE_SNAPSHOT_INIT;
    struct moe_err e = { 0 };
    struct moe_store *store;
    struct moe_saver *s;
    unsigned char len[8] = { (unsigned char)strlen(h), (unsigned char)(strlen(h) >> 8) };
    struct moe_ref ref;
    int rc;

    rc = moe_store_open("S", true, 0, &store, &e) || moe_saver_new(store, pool, true, &s, &e) ||
        moe_saver_file(s, "a.safetensors", MOE_SNAPSHOT_SAFET, NULL, &e) ||
        moe_saver_part(s, MOE_U8, 8 + strlen(h), NULL, &e) || moe_saver_add(s, len, 8, &e) ||
        moe_saver_add(s, h, strlen(h), &e) || moe_saver_part(s, MOE_F32, n, NULL, &e) ||
        moe_saver_add(s, data, n, &e) || moe_saver_file_end(s, &e) ||
        moe_saver_file(s, "b.txt", MOE_SNAPSHOT_OPAQUE, NULL, &e) ||
        moe_saver_part(s, MOE_U8, MOE_SAVER_REST, NULL, &e) || moe_saver_add(s, "text", 4, &e) ||
        moe_saver_file_end(s, &e);
    snap.id = 7;
    snap.time = 1;
    snap.shape = MOE_SNAPSHOT_DIR;
    rc = rc || moe_saver_commit(s, &snap, &e);
    ref.id = snap.id;
    memcpy(ref.sum, snap.sum, sizeof(ref.sum));
    rc = rc || moe_ref_write(store->dirfd, "S", tag, &ref, &e);
    tap_ok(rc == 0, "saved %s", e.text);
    moe_saver_free(s);
    moe_snapshot_fini(&snap);
    moe_store_close(store);
}

/* Change byte `at` of a file by xor. */
static void
flip(const char *path, off_t at, unsigned char x)
{
    int fd = open(path, O_RDWR);
    unsigned char c;

    if (fd < 0 || pread(fd, &c, 1, at) != 1)
        abort();
    c ^= x;
    if (pwrite(fd, &c, 1, at) != 1)
        abort();
    (void)close(fd);
}

/* Each byte of one file; how many changes were not found. */
static size_t
flip_all(const char *path, bool fast, size_t *tried)
{
    struct stat st;
    struct said said;
    struct moe_fsck f;
    size_t missed = 0;

    if (stat(path, &st) != 0)
        abort();
    for (off_t at = 0; at < st.st_size; at++) {
        unsigned char x = (unsigned char)(1u << (at % 8));

        flip(path, at, x);
        if (check(fast, &said, &f) == 0) {
            missed++;
            tap_diag("%s: byte %lld ^ %02x is not found", path, (long long)at, x);
        }
        flip(path, at, x);
        ++*tried;
    }
    return missed;
}

static void
every_byte(bool fast)
{
    static const char *const files[] = { "S/moe-store", "S/packs/1.pack", "S/saves/7",
        "S/refs/latest", "S/refs/tag" };
    size_t tried = 0, missed = 0;
    struct said said;
    struct moe_fsck f;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        missed += flip_all(files[i], fast, &tried);
    tap_ok(tried > 1500 && missed == 0, "%zu bytes changed one by one%s: %zu not found", tried,
        fast ? ", fast" : "", missed);
    tap_is_int(check(fast, &said, &f), 0, "put right again, the store is whole: %s", said.text);
    tap_ok(f.saves == 1 && f.files == 2 && f.packs == 1, "all was looked at");
}

/* Where the second chunk of the tensor lies. */
static int
find(void *ctx, const struct moe_walk_place *at, struct moe_err *e)
{
    (void)e;
    if (at->r != NULL && at->r->plain == 5000)
        *(uint64_t *)ctx = at->r->ref.at;
    return 0;
}

static void
names(void)
{
    struct said said;
    struct moe_fsck f;
    uint64_t at = 0;
    struct moe_err e;
    int fd = open("S", O_RDONLY | O_DIRECTORY);

    (void)moe_walk_pack(fd, "S", 1, false, find, &at, &e);
    (void)close(fd);
    flip("S/packs/1.pack", (off_t)at + MOE_PACK_RECORD + 17, 4);
    for (int fast = 0; fast < 2; fast++) {
        tap_ok(check(fast, &said, &f) > 0 &&
            strstr(said.text, "save 7: a.safetensors: big: byte 1048576: ") != NULL,
            "tensor and byte are named%s: %s", fast ? ", fast" : "", said.text);
    }
    flip("S/packs/1.pack", (off_t)at + MOE_PACK_RECORD + 17, 4);
    flip("S/packs/1.pack", (off_t)at + 3, 4);
    tap_ok(check(false, &said, &f) > 0 &&
        strstr(said.text, "save 7: a.safetensors: big: byte 1048576: ") != NULL,
        "also if the head of its record is damaged");
    flip("S/packs/1.pack", (off_t)at + 3, 4);
    tap_is_int(truncate("S/packs/1.pack", 1000000), 0, "a pack cut off");
    tap_ok(check(false, &said, &f) > 0 && strstr(said.text, "packs/1.pack: ") != NULL, "is found");
    (void)unlink("S/packs/1.pack");
    tap_ok(check(true, &said, &f) > 0 && strstr(said.text, "pack 1 is missing") != NULL,
        "a pack that is missing is found: %s", said.text);
}

int
main(void)
{
    static const char small[] =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[25],\"data_offsets\":[0,100]}}  ";
    char big[200];
    unsigned char *data = malloc(BIG);
    uint32_t x = 1;
    struct moe_err e;

    if (data == NULL || moe_pool_new(2, &pool, &e) != 0)
        return 2;
    for (size_t i = 0; i < BIG; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (unsigned char)(x >> 24);
    }
    scratch_enter();
    tap_is_int(moe_store_init("S", &e), 0, "init");
    save(small, data, 100, "tag");
    every_byte(false);
    every_byte(true);
    (void)system("rm -rf S");
    (void)snprintf(big, sizeof(big),
        "{\"big\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", BIG, BIG);
    tap_is_int(moe_store_init("S", &e), 0, "init");
    save(big, data, BIG, "tag");
    names();
    scratch_leave();
    moe_pool_free(pool);
    free(data);
    return tap_done();
}
