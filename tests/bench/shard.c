/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-shard: planning the largest layers of the suite (alone: EPLB's own time is
 * scripts/bench-eplb's), and cutting and joining a model in the page cache
 * against cp of the same bytes and sync of them, in turns.
 */
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/random.h"
#include "common/system/measure.h"

#define MODEL "model"
#define SHAPE "24x3x2048x2048"  /* matrices of experts, BF16: 604 MB */

extern char **environ;

static char dir[] = P_tmpdir "/moe-bench-XXXXXX";
static char program[4096], st[4096], one_thread[] = "-j1";

static void
die(const char *what)
{
    fprintf(stderr, "bench: shard: %s\n", what);
    exit(2);
}

static void
check(int rc, const struct moe_err *e)
{
    if (rc != 0)
        die(e->text);
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
clean(void)
{
    char rm[] = "rm", flags[] = "-rf";
    char *argv[] = { rm, flags, dir, NULL };

    if (chdir("/") == 0)
        run(argv);
}

/* Counts of a lognormal distribution, sigma 0.7. */
static void
write_counts(const char *name, int layers, int experts)
{
    FILE *f = fopen(name, "w");
    uint64_t k = 0;

    if (f == NULL)
        die(name);
    for (int l = 0; l < layers; l++) {
        for (int x = 0; x < experts; x++, k += 2) {
            double r = sqrt(-2 * log(1 - moe_random_uniform(1, k)));
            double z = r * cos(6.283185307179586 * moe_random_uniform(1, k + 1));

            fprintf(f, "%d\t%d\t%.0f\n", l, x, 1e4 * exp(0.7 * z));
        }
    }
    if (fclose(f) != 0)
        die(name);
}

static void
report(const char *op, const char *shape, struct moe_measure_case *c, size_t n, size_t limit)
{
    struct moe_measure_plan plan = { 9, 0 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    struct moe_measure m;

    for (size_t i = 0; i < n; i++)
        c[i].run = run;
    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, op, shape, c, n, &m, limit, MOE_MEASURE_TIME, &e), &e);
    fputs(b.p, stdout);
    (void)fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

static void
plans(const char *shape, char *counts, char *devices, char *slots)
{
    char plan[] = "plan", quiet[] = "-q", g[] = "-g", s[] = "-s";
    char *one[] = { program, plan, quiet, one_thread, g, devices, s, slots, counts, NULL };
    char *all[] = { program, plan, quiet, g, devices, s, slots, counts, NULL };
    struct moe_measure_case c[] = { { .variant = "one thread", .ctx = one },
        { .variant = "all threads", .ctx = all } };

    report("plan", shape, c, 2, 2);
}

static void
files(void)
{
    char synth[] = "synth", model[] = MODEL, l[] = "1", x[] = "24", h[] = "2048", i[] = "2048";
    char plain[] = "plain", cp[] = "cp", recursive[] = "-r", force[] = "--force", quiet[] = "-q";
    char split[] = "split", merge[] = "merge", ep[] = "--ep", four[] = "4", copied[] = "copied";
    char ranks[] = "ranks", back[] = "back", sh[] = "sh", c[] = "-c";
    char copy[] = "rm -rf copied && cp -r model copied && exec sync copied/* copied";
    char *make[] = { st, synth, model, l, x, h, i, plain, NULL };
    char *first[] = { cp, recursive, model, copied, NULL };
    char *again[] = { sh, c, copy, NULL };
    char *cut[] = { program, split, quiet, force, ep, four, model, ranks, NULL };
    char *join[] = { program, merge, quiet, force, ranks, back, NULL };
    struct moe_measure_case list[] = { { .variant = "cp and sync", .ctx = again },
        { .variant = "split", .ctx = cut }, { .variant = "merge", .ctx = join } };

    run(make);
    run(first);
    run(cut);
    report("cut", SHAPE, list, 3, 0);
}

int
main(void)
{
    const char *b = getenv("B");
    char here[2048], small[] = "256.tsv", large[] = "384.tsv", d64[] = "64", d128[] = "128";
    char s320[] = "320", s512[] = "512";

    if (getcwd(here, sizeof(here)) == NULL || mkdtemp(dir) == NULL || atexit(clean) != 0)
        die(dir);
    b = b != NULL ? b : "build/release";
    (void)snprintf(program, sizeof(program), "%s%s%s/moe-shard", *b == '/' ? "" : here,
        *b == '/' ? "" : "/", b);
    (void)snprintf(st, sizeof(st), "%s%s%s/tests/tools/st", *b == '/' ? "" : here,
        *b == '/' ? "" : "/", b);
    if (chdir(dir) != 0)
        die(dir);
    write_counts(small, 61, 256);
    write_counts(large, 61, 384);
    plans("61x256, 320 slots, 64 devices", small, d64, s320);
    plans("61x384, 512 slots, 128 devices", large, d128, s512);
    files();
    return fflush(stdout) != 0;
}
