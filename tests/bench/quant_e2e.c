/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-quant as a whole, from the page cache: against reading the same file (what
 * cat would take), in turns. Lines with op quant_cpu tell processor time instead
 * of time, which a busy machine changes less, and the most memory held.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/jsonw.h"
#include "common/system/measure.h"

#define SHAPE "24x2048x2048"    /* matrices of experts, BF16: 201 MB */
#define FILE_NAME "big/model.safetensors"
#define MAX_RUNS 64

struct program {
    char quant[4096];
    const char *args[12];       /* after the program's name */
    double cpu_ns[MAX_RUNS];
    size_t n;
    long rss_kib;
};

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: quant_e2e: %s\n", e->text);
    exit(2);
}

/* Run a program with stdout to /dev/null; ends the benchmark if it fails. */
static struct rusage
spawn(const char *path, const char *const *args)
{
    const char *argv[16] = { path };
    struct rusage u;
    int status;
    pid_t pid;

    for (size_t i = 0; i < 14 && args[i] != NULL; i++)
        argv[i + 1] = args[i];
    if ((pid = fork()) == 0) {
        int fd = open("/dev/null", O_WRONLY);

        dup2(fd, 1);
        execv(path, (char *const *)argv);
        _exit(127);
    }
    if (pid < 0 || wait4(pid, &status, 0, &u) != pid || status != 0) {
        fprintf(stderr, "bench: quant_e2e: %s: status %d\n", path, status);
        exit(2);
    }
    return u;
}

static void
run(void *ctx)
{
    struct program *p = ctx;
    struct rusage u = spawn(p->quant, p->args);

    if (p->n < MAX_RUNS)
        p->cpu_ns[p->n++] = ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9 +
            ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
    if (u.ru_maxrss > p->rss_kib)
        p->rss_kib = u.ru_maxrss;
}

static void
cat(void *ctx)
{
    char *piece = ctx;
    int fd = open(FILE_NAME, O_RDONLY);

    while (read(fd, piece, 1 << 17) > 0)
        ;
    close(fd);
}

static void
cpu_line(struct moe_buf *b, const char *variant, struct program *p, uint64_t bytes)
{
    struct moe_measure_stat s = moe_measure_stat(p->cpu_ns, p->n);
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "op");
    moe_jsonw_str(&w, "quant_cpu", 9);
    moe_jsonw_key(&w, "shape");
    moe_jsonw_str(&w, SHAPE, strlen(SHAPE));
    moe_jsonw_key(&w, "variant");
    moe_jsonw_str(&w, variant, strlen(variant));
    moe_jsonw_key(&w, "ns");
    moe_jsonw_real(&w, s.median);
    moe_jsonw_key(&w, "ns_min");
    moe_jsonw_real(&w, s.min);
    moe_jsonw_key(&w, "ns_max");
    moe_jsonw_real(&w, s.max);
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, bytes);
    moe_jsonw_key(&w, "rss_kib");
    moe_jsonw_int(&w, p->rss_kib);
    moe_jsonw_key(&w, "rounds");
    moe_jsonw_uint(&w, p->n);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

int
main(void)
{
    static struct program p[] = {
        { .args = { "-q", "-j1", "big", "-", NULL } },
        { .args = { "-q", "-j2", "big", "-", NULL } },
        { .args = { "-q", "-j1", "--force", "big", "int4", NULL } },
        { .args = { "-q", "-j1", "-f", "int8", "big", "-", NULL } },
        { .args = { "-q", "-j1", "--force", "--report", "report", "big", "-", NULL } },
    };
    static const char *const names[] = { "int4", "int4-j2", "int4-dir", "int8", "int4-report" };
    static const char *const model[] = { "synth", "big", "1", "8", "2048", "2048", "plain", NULL };
    char dir[] = P_tmpdir "/moe-bench-XXXXXX";
    const char *const remove[] = { "-rf", dir, NULL };
    struct moe_measure_plan plan = { 9, 0 };
    struct moe_measure_case c[6];
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;
    struct stat st;
    char build[3000], tool[4096], *piece = malloc(1 << 17);

    if (getenv("B") == NULL || realpath(getenv("B"), build) == NULL || piece == NULL) {
        fputs("bench: quant_e2e: B must name the build folder\n", stderr);
        return 2;
    }
    (void)snprintf(tool, sizeof(tool), "%s/tests/tools/st", build);
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        return 2;
    (void)spawn(tool, model);
    if (stat(FILE_NAME, &st) != 0)
        return 2;
    c[0] = (struct moe_measure_case){ "cat", cat, NULL, piece, (uint64_t)st.st_size, 0 };
    for (size_t i = 0; i < 5; i++) {
        (void)snprintf(p[i].quant, sizeof(p[i].quant), "%s/moe-quant", build);
        c[i + 1] = (struct moe_measure_case){ names[i], run, NULL, &p[i], (uint64_t)st.st_size, 0 };
    }
    check(moe_measure_run(c, 6, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, "quant_e2e", SHAPE, c, 6, &m, 0, MOE_MEASURE_BYTES, &e), &e);
    for (size_t i = 0; i < 5; i++)
        cpu_line(&b, names[i], &p[i], (uint64_t)st.st_size);
    fputs(b.p, stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
    (void)spawn("/bin/rm", remove);
    free(piece);
    return 0;
}
