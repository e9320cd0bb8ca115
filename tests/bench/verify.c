/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-verify against sha256sum, both started anew for each run and in turns,
 * over files in the page cache: eight of them, one, and one by its tensors.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/formats/safet.h"
#include "common/system/measure.h"

#define FILES 8
#define FILE_BYTES ((size_t)32 << 20)
#define TENSORS 64

extern char **environ;

static char dir[] = P_tmpdir "/moe-bench-XXXXXX";
static char paths[FILES + 1][64];       /* the last is a model of as many bytes as all others */
static char program[4096];

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: verify: %s\n", e->text);
    exit(2);
}

static void
clean(void)
{
    for (int i = 0; i <= FILES; i++)
        (void)unlink(paths[i]);
    (void)rmdir(dir);
}

static void
die(const char *what)
{
    perror(what);
    exit(2);
}

/* One run: the program's lines go nowhere. */
static void
run(void *ctx)
{
    char *const *argv = ctx;
    posix_spawn_file_actions_t to;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&to);
    posix_spawn_file_actions_addopen(&to, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&pid, argv[0], &to, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        die(argv[0]);
    posix_spawn_file_actions_destroy(&to);
}

static void
write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, p, n);
        if (k <= 0)
            die("write");
        p += k;
        n -= (size_t)k;
    }
}

static int
create(int i)
{
    (void)snprintf(paths[i], sizeof(paths[i]), "%s/%d.safetensors", dir, i);
    int fd = open(paths[i], O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        die(paths[i]);
    return fd;
}

static void
write_header(int fd)
{
    uint64_t shape[] = { FILES * FILE_BYTES / TENSORS };
    char names[TENSORS][16];
    struct moe_tensor t[TENSORS];
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0 };

    for (size_t i = 0; i < TENSORS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
        t[i] = (struct moe_tensor){ .name = names[i], .name_len = 0, .dtype = MOE_U8, .rank = 1,
            .shape = shape, .begin = i * shape[0], .end = (i + 1) * shape[0] };
    }
    check(moe_safet_write(&b, t, TENSORS, NULL, 8, &e), &e);
    write_all(fd, b.p, b.len);
    moe_buf_fini(&b);
}

static void
make_files(void)
{
    char *data = malloc(FILE_BYTES);
    int model;

    if (mkdtemp(dir) == NULL || data == NULL || atexit(clean) != 0)
        die(dir);
    model = create(FILES);
    write_header(model);
    for (int i = 0; i < FILES; i++) {
        int fd = create(i);
        memset(data, 'a' + i, FILE_BYTES);
        write_all(fd, data, FILE_BYTES);
        write_all(model, data, FILE_BYTES);
        (void)close(fd);
    }
    (void)close(model);
    free(data);
}

static void
report(const char *op, const char *shape, struct moe_measure_case *c, size_t n)
{
    struct moe_measure_plan plan = { 9, 0 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    struct moe_measure m;

    for (size_t i = 0; i < n; i++) {
        c[i].run = run;
        c[i].bytes = FILES * FILE_BYTES;
    }
    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, op, shape, c, n, &m, 0, MOE_MEASURE_TIME, &e), &e);
    fputs(b.p, stdout);
    (void)fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

int
main(void)
{
    const char *b = getenv("B");
    char sum256[] = "sha256sum", sum[] = "sum", one[] = "-j1", tensors[] = "--tensors";
    char *ref[FILES + 2] = { sum256 }, *many[FILES + 3] = { program, sum };
    char *many1[FILES + 4] = { program, sum, one };
    char *model = paths[FILES];

    make_files();
    (void)snprintf(program, sizeof(program), "%s/moe-verify", b != NULL ? b : "build/release");
    for (int i = 0; i < FILES; i++)
        ref[1 + i] = many[2 + i] = many1[3 + i] = paths[i];
    struct moe_measure_case files[] = { { .variant = "sha256sum", .ctx = ref },
        { .variant = "moe-verify", .ctx = many }, { .variant = "moe-verify -j1", .ctx = many1 } };
    report("sha256", "8 files of 32 MiB", files, 3);

    char *ref_one[] = { sum256, model, NULL }, *sum_one[] = { program, sum, model, NULL };
    char *sum_one1[] = { program, sum, one, model, NULL };
    char *sum_tensors[] = { program, sum, tensors, model, NULL };
    struct moe_measure_case file[] = { { .variant = "sha256sum", .ctx = ref_one },
        { .variant = "moe-verify", .ctx = sum_one },
        { .variant = "moe-verify -j1", .ctx = sum_one1 },
        { .variant = "moe-verify --tensors", .ctx = sum_tensors } };
    report("sha256", "1 file of 256 MiB", file, 4);
    return fflush(stdout) != 0;
}
