/* SPDX-License-Identifier: Apache-2.0 */
/* Writing models: exact sizes, shards and index, both ways of filling, nothing half-written. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/formats/sink.h"
#include "common/formats/source.h"
#include "tests/scratch.h"
#include "tests/tap.h"

static struct moe_err err;
static char dir[100];

static const uint64_t shape[] = { 3, 4 };
static const struct moe_tensor tensors[] = {
    { .name = "a", .dtype = MOE_BF16, .rank = 2, .shape = shape },
    { .name = "b", .dtype = MOE_U8, .rank = 1, .shape = shape },
    { .name = "c", .dtype = MOE_F32, .rank = 0 },
    { .name = "d", .dtype = MOE_I64, .rank = 2, .shape = shape },
};
#define N 4
static const size_t lens[N] = { 24, 3, 4, 96 };

static const char *
in(const char *name)
{
    static char path[4][256];
    static int k;

    k = (k + 1) % 4;
    snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
    return path[k];
}

static long long
size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (long long)st.st_size : -1;
}

/* All data: byte i of everything is i. */
static void
data(unsigned char p[static 127])
{
    for (int i = 0; i < 127; i++)
        p[i] = (unsigned char)i;
}

static int
fill(struct moe_sink *s, bool in_order)
{
    unsigned char p[127];
    size_t at = 0;
    int rc = 0;

    data(p);
    for (size_t i = 0; in_order && rc == 0 && i < 127; i += 10)
        rc = moe_sink_write(s, p + i, i + 10 < 127 ? 10 : 127 - i, &err);
    if (in_order)
        return rc;
    for (size_t i = 0; i < N; i++)
        at += lens[i];
    for (size_t i = N; rc == 0 && i-- > 0;) {
        at -= lens[i];
        if ((rc = moe_sink_pwrite(s, i, 1, p + at + 1, lens[i] - 1, &err)) == 0)
            rc = moe_sink_pwrite(s, i, 0, p + at, 1, &err);
    }
    return rc;
}

static void
check_data(const char *path, const char *what)
{
    struct moe_source *s;
    unsigned char p[127], q[127];
    size_t at = 0, bad = 0;

    data(p);
    if (!tap_is_int(moe_source_open(path, &s, &err), 0, "%s: reads back: %s", what, err.text))
        return;
    for (size_t i = 0; i < N; i++) {
        size_t k = moe_source_find(s, tensors[i].name);

        bad += k == SIZE_MAX || moe_source_read(s, k, 0, q, lens[i], &err) != 0 ||
            memcmp(q, p + at, lens[i]) != 0 || moe_source_at(s, k)->dtype != tensors[i].dtype;
        at += lens[i];
    }
    tap_is_int((long long)bad, 0, "%s: all tensors", what);
    moe_source_close(s);
}

static void
check_dir(uint64_t shard, bool in_order, size_t files, const char *what)
{
    struct moe_sink_plan plan = { tensors, N, NULL, shard, 8, NULL, 0 };
    struct moe_sink_size size;
    struct moe_sink *s;
    char name[64];

    if (!tap_is_int(moe_sink_size(&plan, &size, &err), 0, "%s: sizes", what))
        return;
    tap_is_int((long long)size.files, (long long)files, "%s: files", what);
    if (!tap_is_int(moe_sink_open(in("out"), true, &plan, &s, &err), 0, "%s: opens: %s", what,
        err.text))
        return;
    tap_is_int(fill(s, in_order), 0, "%s: filled", what);
    tap_is_int(moe_sink_aux(s, "config.json", "{}", 2, &err), 0, "%s: another file", what);
    tap_is_int(moe_sink_commit(s, &err), 0, "%s: done: %s", what, err.text);
    for (size_t k = 0; k < size.files; k++) {
        char path[128];

        snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", k + 1, files);
        snprintf(path, sizeof(path), "out/%s", files > 1 ? name : "model.safetensors");
        tap_is_int(size_of(in(path)), (long long)size.bytes[k], "%s: size of %s", what, path);
    }
    tap_is_int(size_of(in("out/model.safetensors.index.json")),
        files > 1 ? (long long)size.index_bytes : -1, "%s: size of the index", what);
    tap_is_int(size_of(in("out/config.json")), 2, "%s: the other file", what);
    /* The file that is no configuration is not part of what is read back. */
    unlink(in("out/config.json"));
    check_data(in("out"), what);
    moe_sink_size_fini(&size);
}

static void
check_file(void)
{
    static const char *const meta[] = { "k", "v", NULL };
    struct moe_sink_plan plan = { tensors, N, meta, 30, 4096, NULL, 0 };
    struct moe_sink *s;

    tap_is_int(moe_sink_open(in("m.safetensors"), false, &plan, &s, &err), 0, "one file");
    tap_is_int(fill(s, true), 0, "filled");
    tap_is_int(moe_sink_aux(s, "config.json", "{}", 2, &err), 0, "another file is dropped");
    tap_is_int(size_of(in("m.safetensors")), -1, "not there yet");
    tap_is_int(moe_sink_commit(s, &err), 0, "done");
    tap_is_int(size_of(in("m.safetensors")), 4096 + 127, "aligned, never in shards");
    check_data(in("m.safetensors"), "one file");
    tap_is_int(moe_sink_open(in("m.safetensors"), false, &plan, &s, &err), MOE_EEXIST,
        "it is there: %s", err.text);
}

static void
check_refusals(void)
{
    struct moe_sink_plan plan = { tensors, N, NULL, 30, 8, NULL, 0 };
    struct moe_tensor twice[2] = { tensors[1], tensors[1] };
    unsigned char p[127] = { 0 };
    struct moe_sink_size size;
    struct moe_sink *s;

    tap_is_int(moe_sink_open(in("out"), false, &plan, &s, &err), MOE_EEXIST, "a directory: %s",
        err.text);
    tap_ok(moe_sink_open(in("less"), false, &plan, &s, &err) == 0 &&
        moe_sink_write(s, p, 126, &err) == 0, "a byte less");
    tap_is_int(moe_sink_commit(s, &err), MOE_EFORMAT, "is refused: %s", err.text);
    tap_is_int(size_of(in("less")), -1, "and nothing is there");
    tap_ok(moe_sink_open(in("more"), false, &plan, &s, &err) == 0 &&
        moe_sink_write(s, p, 127, &err) == 0, "all bytes");
    tap_is_int(moe_sink_write(s, p, 1, &err), MOE_EFORMAT, "one more is refused: %s", err.text);
    tap_is_int(moe_sink_pwrite(s, 0, 20, p, 5, &err), MOE_EFORMAT, "past a tensor: %s", err.text);
    moe_sink_abort(s);
    tap_is_int(size_of(in("more")), -1, "nothing is there");
    plan.tensors = twice;
    plan.n = 2;
    tap_is_int(moe_sink_size(&plan, &size, &err), MOE_EFORMAT, "a name twice: %s", err.text);
    tap_is_int(moe_sink_open(in("twice"), false, &plan, &s, &err), MOE_EFORMAT, "nor opened");
}

static void
check_stream(void)
{
    struct moe_sink_plan plan = { tensors, N, NULL, 30, 8, NULL, 0 };
    int old = dup(1), fd[2], rc;
    struct moe_sink *s;
    char got[2048];
    ssize_t n;

    fflush(stdout);
    if (pipe(fd) != 0)
        exit(1);
    dup2(fd[1], 1);
    close(fd[1]);
    rc = moe_sink_open("-", false, &plan, &s, &err);
    if (rc == 0 && moe_sink_pwrite(s, 0, 0, "", 1, &err) != MOE_EUNSUP)
        rc = -1;
    if (rc == 0 && moe_sink_is_stream(s))
        rc = fill(s, true);
    if (rc == 0)
        rc = moe_sink_commit(s, &err);
    dup2(old, 1);
    close(old);
    tap_is_int(rc, 0, "a stream: %s", err.text);
    n = read(fd[0], got, sizeof(got));
    close(fd[0]);
    {
        int f = open(in("s.safetensors"), O_WRONLY | O_CREAT, 0666);

        tap_ok(n > 127 && write(f, got, (size_t)n) == n, "what came through the pipe");
        close(f);
    }
    check_data(in("s.safetensors"), "a stream");
}

/* A kept directory is ended at every number of bytes, and gone on with. */
static void
check_keep(uint64_t shard)
{
    const struct moe_sink_plan plan = { tensors, N, NULL, shard, 8, NULL, 0 };
    struct moe_sink *s, *other;
    struct moe_source *back = NULL;
    unsigned char p[127], got[96];
    bool same = true;

    data(p);
    for (size_t cut = 0; cut <= 127; cut++) {
        int rc = moe_sink_keep("kept", false, &plan, 0, &s, &err);

        if (rc == 0 && (rc = moe_sink_write(s, p, cut, &err)) == 0)
            rc = moe_sink_sync(s, &err);
        if (rc == 0 && cut < 127)
            rc = moe_sink_write(s, "lost", 1, &err);    /* behind what was told to be there */
        if (rc == 0)
            moe_sink_abort(s);
        if (rc == 0 && (rc = moe_sink_keep("kept", false, &plan, cut, &s, &err)) == 0) {
            if ((rc = moe_sink_write(s, p + cut, 127 - cut, &err)) == 0)
                rc = moe_sink_commit(s, &err);
            else
                moe_sink_abort(s);
        }
        if (rc == 0 && (rc = moe_source_open("kept", &back, &err)) == 0)
            rc = moe_source_read(back, moe_source_find(back, "d"), 0, got, 96, &err);
        moe_source_close(back);
        back = NULL;
        same = same && rc == 0 && memcmp(got, p + 31, 96) == 0 && size_of("kept.part") < 0;
        if (system("rm -rf kept kept.part") != 0 || !same)
            break;
    }
    tap_ok(same, "shards of %llu: gone on with after any number of bytes: %s",
        (unsigned long long)shard, err.text);

    tap_ok(moe_sink_keep("kept", false, &plan, 0, &s, &err) == 0 &&
        moe_sink_keep("kept", false, &plan, 0, &other, &err) == MOE_EEXIST &&
        strstr(err.text, "another process") != NULL, "two at once: %s", err.text);
    moe_sink_abort(s);
    tap_ok(size_of("kept.part") >= 0 && moe_sink_keep("kept", false, &plan, 100, &s, &err) ==
        MOE_EFORMAT, "bytes that are not there: %s", err.text);
    tap_ok(moe_sink_keep("kept.safetensors", false, &plan, 0, &s, &err) == MOE_EUNSUP,
        "one file is not kept: %s", err.text);
    tap_ok(system("rm -rf kept.part") == 0, "removed");
}

int
main(void)
{
    scratch_enter();
    snprintf(dir, sizeof(dir), ".");
    check_dir(0, true, 1, "one shard");
    check_dir(0, false, 1, "one shard by parts");
    check_dir(30, true, 3, "three shards");
    check_dir(30, false, 3, "three shards by parts");
    check_file();
    check_refusals();
    check_stream();
    check_keep(0);
    check_keep(30);
    scratch_leave();
    return tap_done();
}
