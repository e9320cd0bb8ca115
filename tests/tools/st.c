/* SPDX-License-Identifier: Apache-2.0 */
/*
 * st: small works on models, for the shell tests.
 *   st sums MODEL           a line a tensor, sorted: NAME DTYPE SHAPE SHA256
 *   st golden JSON          the same lines from the "tensors" of a golden file
 *   st config JSON          its "config", with the lists called ignore sorted
 *   st poke MODEL TENSOR INDEX HEX   change bytes of a file in place
 *   st fuse SRC DST         experts of each layer as two stacks, in one file
 *   st rename SRC DST FROM TO ...    other names, in one file; TO "" leaves it out
 *   st cast SRC DST F16|F32          BF16 tensors in another type, in one file
 *   st golden_ds SRC DST NAME        a beside itself turned round, as quant/ds_fp8 has it
 *   st random DST gauss|student|outliers   one matrix of an expert, of random values
 *   st synth DIR LAYERS EXPERTS HIDDEN INTER stack|plain   a Qwen3-MoE of hashed BF16
 *   st rss COMMAND ...      run it; print the most memory it held, in KiB, on stderr
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/formats/naming.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

static struct moe_err err;

static void
need(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "st: %s\n", err.text);
    exit(2);
}

static void *
must(void *p)
{
    if (p == NULL) {
        fputs("st: out of memory\n", stderr);
        exit(2);
    }
    return p;
}

static int
compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
print_sorted(char **lines, size_t n)
{
    qsort(lines, n, sizeof(*lines), compare);
    for (size_t i = 0; i < n; i++) {
        puts(lines[i]);
        free(lines[i]);
    }
    free(lines);
}

static void
hex_digest(const void *p, size_t n, char hex[static 65])
{
    unsigned char d[EVP_MAX_MD_SIZE];
    unsigned len;

    if (EVP_Digest(p, n, d, &len, EVP_sha256(), NULL) != 1)
        exit(2);
    for (unsigned i = 0; i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
}

static void *
load(struct moe_source *s, size_t i, size_t *n)
{
    const struct moe_tensor *t = moe_source_at(s, i);
    void *p;

    *n = (size_t)(t->end - t->begin);
    p = must(malloc(*n + 1));
    need(moe_source_read(s, i, 0, p, *n, &err));
    return p;
}

static void
sums(const char *path)
{
    struct moe_source *s;
    char **lines;

    need(moe_source_open(path, &s, &err));
    lines = must(calloc(moe_source_n(s), sizeof(*lines)));
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        struct moe_buf b = MOE_BUF_INIT;
        char hex[65];
        size_t n;
        void *p = load(s, i, &n);

        hex_digest(p, n, hex);
        free(p);
        moe_buf_fmt(&b, "%s %s", t->name, moe_dtype_name(t->dtype));
        for (int k = 0; k < t->rank; k++)
            moe_buf_fmt(&b, "%c%llu", k == 0 ? ' ' : ',', (unsigned long long)t->shape[k]);
        moe_buf_fmt(&b, " %s", hex);
        lines[i] = must(moe_buf_take(&b));
    }
    print_sorted(lines, moe_source_n(s));
    moe_source_close(s);
}

static json_t *
json(const char *path)
{
    json_error_t je;
    json_t *j = json_load_file(path, 0, &je);

    if (j == NULL) {
        fprintf(stderr, "st: %s: %s\n", path, je.text);
        exit(2);
    }
    return j;
}

static const char *
dtype_name(const char *torch)
{
    static const char *const names[][2] = { { "bfloat16", "BF16" }, { "float16", "F16" },
        { "float32", "F32" }, { "int32", "I32" }, { "int64", "I64" } };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(torch, names[i][0]) == 0)
            return names[i][1];
    }
    return torch;
}

static void
golden(const char *path)
{
    json_t *all = json(path), *tensors = json_object_get(all, "tensors"), *t, *d;
    char **lines = must(calloc(json_object_size(tensors) + 1, sizeof(*lines)));
    const char *name;
    size_t n = 0, k;

    json_object_foreach(tensors, name, t) {
        struct moe_buf b = MOE_BUF_INIT;

        moe_buf_fmt(&b, "%s %s", name, dtype_name(json_string_value(json_array_get(t, 0))));
        json_array_foreach(json_array_get(t, 1), k, d)
            moe_buf_fmt(&b, "%c%lld", k == 0 ? ' ' : ',', (long long)json_integer_value(d));
        moe_buf_fmt(&b, " %s", json_string_value(json_array_get(t, 2)));
        lines[n++] = must(moe_buf_take(&b));
    }
    print_sorted(lines, n);
    json_decref(all);
}

/* The members that a reader looks at, in a fixed order and form. */
static void
config(const char *path)
{
    json_t *all = json(path), *c = json_object_get(all, "config"), *q, *ignore, *x;
    char **lines, *text;
    size_t i;

    c = c != NULL ? c : all;
    q = json_object_get(c, "quantization_config");
    ignore = json_object_get(q, "ignore");
    lines = must(calloc(json_array_size(ignore) + 1, sizeof(*lines)));
    json_array_foreach(ignore, i, x)
        lines[i] = must(strdup(json_string_value(x)));
    print_sorted(lines, json_array_size(ignore));
    json_object_del(q, "ignore");
    json_object_del(q, "version");          /* of the library that wrote it */
    json_object_del(q, "sparsity_config");  /* empty, and not asked for */
    json_object_del(q, "transform_config");
    json_object_del(q, "moe_sparsity_config");
    text = must(json_dumps(c, JSON_INDENT(1) | JSON_SORT_KEYS));
    puts(text);
    free(text);
    json_decref(all);
}

static void
poke(const char *path, const char *name, const char *index, const char *hex)
{
    struct moe_source *s;
    const struct moe_tensor *t;
    char file[4096];
    uint64_t at;
    size_t i;
    int fd;

    need(moe_source_open(path, &s, &err));
    if ((i = moe_source_find(s, name)) == SIZE_MAX) {
        fprintf(stderr, "st: no tensor %s\n", name);
        exit(2);
    }
    t = moe_source_at(s, i);
    at = 8 + strtoull(index, NULL, 10) + t->begin;
    snprintf(file, sizeof(file), moe_source_is_dir(s) ? "%s/%s" : "%s", path,
        moe_source_file(s, moe_source_file_of(s, i)));
    if ((fd = open(file, O_RDWR)) < 0)
        exit(2);
    {
        unsigned char raw[8];
        size_t n;

        if (pread(fd, raw, 8, 0) != 8)
            exit(2);
        need(moe_safet_length(raw, file, &n, &err));
        at += n;
    }
    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        char two[3] = { hex[0], hex[1], '\0' };
        unsigned char c = (unsigned char)strtoul(two, NULL, 16);

        if (pwrite(fd, &c, 1, (off_t)at++) != 1)
            exit(2);
    }
    close(fd);
    moe_source_close(s);
}

/* ---- Building ---------------------------------------------------------------- */

struct made { struct moe_tensor *t; void **p; size_t n; };

static void
make(struct made *m, const char *name, enum moe_dtype dtype, int rank, const uint64_t *shape,
    void *p)
{
    uint64_t *copy = must(malloc(8 * sizeof(*copy)));

    m->t = must(realloc(m->t, (m->n + 1) * sizeof(*m->t)));
    m->p = must(realloc(m->p, (m->n + 1) * sizeof(*m->p)));
    memcpy(copy, shape, (size_t)rank * sizeof(*copy));
    m->t[m->n] = (struct moe_tensor){ .name = must(strdup(name)), .dtype = dtype, .rank = rank,
        .shape = copy };
    m->p[m->n++] = p;
}

static void
write_made(struct made *m, const char *dst, struct moe_source *s)
{
    struct moe_sink_plan plan = { m->t, m->n, NULL, 0, 8, NULL, 0 };
    struct moe_sink *sink;

    need(moe_sink_open(dst, true, &plan, &sink, &err));
    for (size_t i = 0; i < m->n; i++) {
        uint64_t n = 0;

        moe_safet_bytes(m->t[i].dtype, m->t[i].shape, m->t[i].rank, &n);
        need(moe_sink_write(sink, m->p[i], (size_t)n, &err));
    }
    for (size_t i = 0; moe_source_aux_name(s, i) != NULL; i++) {
        const char *name = moe_source_aux_name(s, i);
        struct moe_buf b = MOE_BUF_INIT;

        need(moe_source_aux(s, name, (size_t)1 << 26, &b, &err));
        need(moe_sink_aux(sink, name, b.p, b.len, &err));
        moe_buf_fini(&b);
    }
    need(moe_sink_commit(sink, &err));
}

static void
drop(struct made *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free((char *)m->t[i].name);
        free((uint64_t *)m->t[i].shape);
        free(m->p[i]);
    }
    free(m->t);
    free(m->p);
}

/* Matrices of all experts one after another; gate before up of each. */
static void
add_stack(struct made *m, struct moe_source *s, const char *first, int experts, bool pair)
{
    const char *mid = strstr(first, ".experts.0.");
    const char *const proj[] = { pair ? "gate_proj" : "down_proj", "up_proj" };
    uint64_t shape[3] = { (uint64_t)experts, 0, 0 };
    struct moe_buf all = MOE_BUF_INIT;
    char name[512];

    for (int x = 0; x < experts; x++) {
        for (int k = 0; k < (pair ? 2 : 1); k++) {
            size_t i, n;
            void *p;

            snprintf(name, sizeof(name), "%.*s.experts.%d.%s.weight", (int)(mid - first), first, x,
                proj[k]);
            if ((i = moe_source_find(s, name)) == SIZE_MAX)
                exit(2);
            p = load(s, i, &n);
            moe_buf_add(&all, p, n);
            free(p);
            shape[1] = moe_source_at(s, i)->shape[0] * (pair ? 2 : 1);
            shape[2] = moe_source_at(s, i)->shape[1];
        }
    }
    snprintf(name, sizeof(name), "%.*s.experts.%s", (int)(mid - first), first,
        pair ? "gate_up_proj" : "down_proj");
    make(m, name, MOE_BF16, 3, shape, must(moe_buf_take(&all)));
}

static void
fuse(const char *src, const char *dst)
{
    struct made m = { NULL, NULL, 0 };
    struct moe_source *s;
    int experts;

    need(moe_source_open(src, &s, &err));
    experts = (int)moe_source_config(s)->experts;
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        struct moe_naming n;

        (void)moe_naming_parse(NULL, 0, t->name, &n);
        if (n.role != MOE_ROLE_EXPERT) {
            size_t len;

            make(&m, t->name, t->dtype, t->rank, t->shape, load(s, i, &len));
        } else if (n.expert == 0 && n.proj != MOE_PROJ_UP) {
            add_stack(&m, s, t->name, experts, n.proj == MOE_PROJ_GATE);
        }
    }
    write_made(&m, dst, s);
    drop(&m);
    moe_source_close(s);
}

static void
rename_tensors(const char *src, const char *dst, char **pairs)
{
    struct made m = { NULL, NULL, 0 };
    struct moe_source *s;

    need(moe_source_open(src, &s, &err));
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        const char *name = t->name;
        size_t n;

        for (char **p = pairs; p[0] != NULL && p[1] != NULL; p += 2) {
            if (strcmp(p[0], t->name) == 0)
                name = p[1];
        }
        if (*name != '\0')      /* an empty name leaves it out */
            make(&m, name, t->dtype, t->rank, t->shape, load(s, i, &n));
    }
    write_made(&m, dst, s);
    drop(&m);
    moe_source_close(s);
}

static void
cast(const char *src, const char *dst, const char *type)
{
    struct made m = { NULL, NULL, 0 };
    struct moe_source *s;
    bool half = strcmp(type, "F16") == 0;

    need(moe_source_open(src, &s, &err));
    for (size_t i = 0; i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        size_t n;
        uint16_t *p = load(s, i, &n);
        float *f = must(malloc(2 * n + 1));

        for (size_t k = 0; k < n / 2; k++)
            f[k] = moe_dtype_bf16_f32(p[k]);
        for (size_t k = 0; half && k < n / 2; k++)
            p[k] = moe_dtype_f32_f16(f[k]);
        free(half ? (void *)f : p);
        make(&m, t->name, half ? MOE_F16 : MOE_F32, t->rank, t->shape, half ? (void *)p : f);
    }
    write_made(&m, dst, s);
    drop(&m);
    moe_source_close(s);
}

/* a stacked on a with its columns reversed: what quant/ds_fp8 was made from. */
static void
golden_ds(const char *src, const char *dst, const char *name)
{
    struct made m = { NULL, NULL, 0 };
    struct moe_source *s;
    const struct moe_tensor *t;
    uint64_t shape[2];
    uint16_t *p, *q;
    size_t n, i;

    need(moe_source_open(src, &s, &err));
    if ((i = moe_source_find(s, "a")) == SIZE_MAX)
        exit(2);
    t = moe_source_at(s, i);
    p = load(s, i, &n);
    q = must(malloc(2 * n));
    memcpy(q, p, n);
    for (size_t r = 0; r < t->shape[0]; r++)
        for (size_t c = 0; c < t->shape[1]; c++)
            q[(t->shape[0] + r) * t->shape[1] + c] = p[(r + 1) * t->shape[1] - 1 - c];
    free(p);
    shape[0] = 2 * t->shape[0];
    shape[1] = t->shape[1];
    make(&m, name, MOE_BF16, 2, shape, q);
    write_made(&m, dst, s);
    drop(&m);
    moe_source_close(s);
}

static double
uniform(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*x >> 11) + 0.5) / 9007199254740992.0;
}

static double
normal(uint64_t *x)
{
    double u = uniform(x);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * uniform(x));
}

/* 512 x 1024 values: Gaussian, Student's t with 5 degrees, or Gaussian with outliers. */
static void
random_matrix(const char *dst, const char *kind)
{
    struct made m = { NULL, NULL, 0 };
    uint64_t shape[2] = { 512, 1024 }, seed = 1;
    uint16_t *p = must(malloc(512 * 1024 * sizeof(*p)));
    struct moe_sink_plan plan;
    struct moe_sink *sink;

    for (size_t i = 0; i < 512 * 1024; i++) {
        double v = normal(&seed), k = 0;

        if (kind[0] == 's') {
            for (int j = 0; j < 5; j++) {
                double z = normal(&seed);
                k += z * z;
            }
            v /= sqrt(k / 5);
        } else if (kind[0] == 'o' && uniform(&seed) < 0.001) {
            v *= 10;
        }
        p[i] = moe_dtype_f32_bf16((float)(0.02 * v));
    }
    make(&m, "model.layers.0.mlp.experts.0.gate_proj.weight", MOE_BF16, 2, shape, p);
    plan = (struct moe_sink_plan){ m.t, m.n, NULL, 0, 8, NULL, 0 };
    need(moe_sink_open(dst, true, &plan, &sink, &err));
    need(moe_sink_write(sink, p, 512 * 1024 * sizeof(*p), &err));
    need(moe_sink_commit(sink, &err));
    drop(&m);
}

/* BF16 of a small magnitude, by a generator that is fast. */
static void
noise(uint16_t *p, size_t n, uint64_t seed)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        p[i] = (uint16_t)((x & 0x80ff) | 0x3c00);   /* 0.008 to 0.03, of either sign */
    }
}

static void
synth(const char *dir, int layers, int experts, uint64_t hidden, uint64_t inter, bool stacked)
{
    struct made m = { NULL, NULL, 0 };
    uint64_t gate_up[] = { (uint64_t)experts, 2 * inter, hidden };
    uint64_t down[] = { (uint64_t)experts, hidden, inter };
    uint64_t router[] = { (uint64_t)experts, hidden };
    struct moe_sink_plan plan;
    struct moe_sink *sink;
    char name[256];
    size_t cap = (size_t)8 << 20;
    uint16_t *piece = must(malloc(cap));

    for (int l = 0; l < layers; l++) {
        snprintf(name, sizeof(name), "model.layers.%d.mlp.gate.weight", l);
        make(&m, name, MOE_BF16, 2, router, NULL);
        if (stacked) {
            snprintf(name, sizeof(name), "model.layers.%d.mlp.experts.gate_up_proj", l);
            make(&m, name, MOE_BF16, 3, gate_up, NULL);
            snprintf(name, sizeof(name), "model.layers.%d.mlp.experts.down_proj", l);
            make(&m, name, MOE_BF16, 3, down, NULL);
        }
        for (int x = 0; !stacked && x < experts; x++) {
            uint64_t up[] = { inter, hidden };

            for (int k = 0; k < 3; k++) {
                static const char *const proj[] = { "gate", "up", "down" };

                snprintf(name, sizeof(name), "model.layers.%d.mlp.experts.%d.%s_proj.weight", l,
                    x, proj[k]);
                make(&m, name, MOE_BF16, 2, k == 2 ? down + 1 : up, NULL);
            }
        }
    }
    plan = (struct moe_sink_plan){ m.t, m.n, NULL, 0, 8, NULL, 0 };
    need(moe_sink_open(dir, true, &plan, &sink, &err));
    for (size_t i = 0; i < m.n; i++) {
        uint64_t n = 0;

        moe_safet_bytes(MOE_BF16, m.t[i].shape, m.t[i].rank, &n);
        noise(piece, n < cap ? (size_t)n / 2 : cap / 2, i);
        for (uint64_t at = 0; at < n;) {
            size_t k = n - at < cap ? (size_t)(n - at) : cap;

            need(moe_sink_write(sink, piece, k, &err));
            at += k;
        }
    }
    snprintf(name, sizeof(name), "{\"model_type\":\"qwen3_moe\",\"hidden_size\":%llu,"
        "\"num_hidden_layers\":%d,\"vocab_size\":64,\"num_attention_heads\":1,"
        "\"num_experts\":%d,\"num_experts_per_tok\":1,\"moe_intermediate_size\":%llu}\n",
        (unsigned long long)hidden, layers, experts, (unsigned long long)inter);
    need(moe_sink_aux(sink, "config.json", name, strlen(name), &err));
    need(moe_sink_commit(sink, &err));
    drop(&m);
    free(piece);
}

static int
rss(char **command)
{
    struct rusage u;
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || getrusage(RUSAGE_CHILDREN, &u) != 0)
        return 2;
    fprintf(stderr, "%ld\n", u.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

int
main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "sums") == 0 && argc == 3)
        sums(argv[2]);
    else if (strcmp(verb, "golden") == 0 && argc == 3)
        golden(argv[2]);
    else if (strcmp(verb, "config") == 0 && argc == 3)
        config(argv[2]);
    else if (strcmp(verb, "poke") == 0 && argc == 6)
        poke(argv[2], argv[3], argv[4], argv[5]);
    else if (strcmp(verb, "fuse") == 0 && argc == 4)
        fuse(argv[2], argv[3]);
    else if (strcmp(verb, "rename") == 0 && argc >= 6)
        rename_tensors(argv[2], argv[3], argv + 4);
    else if (strcmp(verb, "cast") == 0 && argc == 5)
        cast(argv[2], argv[3], argv[4]);
    else if (strcmp(verb, "golden_ds") == 0 && argc == 5)
        golden_ds(argv[2], argv[3], argv[4]);
    else if (strcmp(verb, "random") == 0 && argc == 4)
        random_matrix(argv[2], argv[3]);
    else if (strcmp(verb, "synth") == 0 && argc == 8)
        synth(argv[2], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10),
            strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10),
            strcmp(argv[7], "stack") == 0);
    else if (strcmp(verb, "rss") == 0 && argc >= 3)
        return rss(argv + 2);
    else {
        fputs("st: see the head of tests/tools/st.c\n", stderr);
        return 2;
    }
    return 0;
}
