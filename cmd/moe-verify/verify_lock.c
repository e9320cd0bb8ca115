/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify lock`: a snapshot of files, packages and driver in groups,
 * and the differences of two snapshots.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_file.h"
#include "cmd/moe-verify/verify_lock.h"
#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/base/read.h"
#include "common/base/tool.h"
#include "common/trust/digestq.h"

#define LOCK_MAX ((size_t)256 << 20)
#define LIST_MAX ((size_t)64 << 20)
#define DRIVER "/proc/driver/nvidia/version"

enum { PACKAGES = 1, DRIVER_FILE };

static const struct moe_opt rows[] = {
    { PACKAGES, 0, "packages", MOE_OPT_FILE, "FILE", "lines of name and version; -: standard input",
        NULL, false, false },
    { DRIVER_FILE, 0, "driver", MOE_OPT_FILE, "FILE", "version of the GPU driver; default: /proc's",
        NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[--packages FILE] DIR [GROUP=FILE ...]",
    "check [--packages FILE] LOCK DIR", NULL };

const struct moe_opt_cmd verify_lock_cmd = {
    "moe-verify lock", usage, "Pin all that a model's answers depend on; tell what drifted.",
    rows, NULL
};

static const char *const groups[] = { "weights", "tokenizer", "adapters", "engine", "data",
    "packages", "driver", NULL };

/* Which group a file of the model's directory is in: the first that fits; else none. */
static const struct { const char *pattern, *group; } kinds[] = {
    { "adapter_*", "adapters" }, { "*.safetensors", "weights" }, { "*.gguf", "weights" },
    { "*.safetensors.index.json", "weights" }, { "tokenizer*", "tokenizer" },
    { "vocab.*", "tokenizer" }, { "merges.txt", "tokenizer" }, { "chat_template*", "tokenizer" },
    { "special_tokens_map.json", "tokenizer" }, { "added_tokens.json", "tokenizer" },
    { "*.json", "engine" }, { "*.yaml", "engine" },
};

struct args { const char *packages, *driver; };

struct entry {
    const char *group, *name, *value;
    bool given;             /* a file of its own, not of the directory */
};

struct lock {
    struct entry *e;
    size_t n, cap;
    struct moe_arena text;
    struct verify_files files;
    size_t troubles;
};

#define LOCK_INIT { .text = MOE_ARENA_INIT, .files = VERIFY_FILES_INIT }

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    (void)e;
    if (id == PACKAGES)
        a->packages = arg;
    else
        a->driver = arg;
    return 0;
}

/* The constant by that name, or NULL. */
static const char *
group_of(const char *name, size_t n)
{
    for (size_t i = 0; groups[i] != NULL; i++)
        if (strlen(groups[i]) == n && memcmp(groups[i], name, n) == 0)
            return groups[i];
    return NULL;
}

static int
add(struct lock *l, const char *group, const char *name, const char *value, bool given,
    struct moe_err *e)
{
    struct entry x = { group, moe_arena_text(&l->text, name, strlen(name)),
        moe_arena_text(&l->text, value, strlen(value)), given };

    if (l->n == l->cap) {
        size_t cap = l->cap > 0 ? 2 * l->cap : 64;
        struct entry *more = reallocarray(l->e, cap, sizeof(*more));
        if (more == NULL)
            return no_memory(e);
        l->e = more;
        l->cap = cap;
    }
    if (x.name == NULL || x.value == NULL)
        return no_memory(e);
    l->e[l->n++] = x;
    return 0;
}

/* ---- What is there ------------------------------------------------------------------- */

/* A queue over some files, whose digests become entries. */
struct queue {
    struct lock *l;
    struct moe_digestq_job *jobs;
    const char **group;         /* [n]; NULL: not pinned */
};

static int
open_file(void *ctx, size_t i, struct moe_err *e)
{
    struct queue *q = ctx;

    return verify_file_at(&q->l->files, i, e);
}

static int
done(void *ctx, size_t i, struct moe_err *e)
{
    struct queue *q = ctx;
    const struct verify_file *f = &q->l->files.f[i];
    char hex[MOE_DIGEST_HEX];

    if (q->jobs[i].rc == MOE_ENOENT && f->rel == NULL)
        return 0;       /* a given file that is gone: a difference, told by the comparison */
    if (q->jobs[i].rc != 0) {
        moe_tool_warn("%s", e->text);
        q->l->troubles++;
        return 0;
    }
    if (q->group[i] == NULL)
        return 0;
    return add(q->l, q->group[i], f->rel != NULL ? f->rel : f->name,
        moe_digest_hex(q->jobs[i].sum, hex), f->rel == NULL, e);
}

static const char *
kind_of(const char *rel)
{
    const char *slash = strrchr(rel, '/'), *base = slash != NULL ? slash + 1 : rel;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (fnmatch(kinds[i].pattern, base, 0) == 0)
            return kinds[i].group;
    return NULL;
}

/* Digest the files that were found; given[] has the groups of those after the directory's. */
static int
take_files(struct lock *l, const char *const *given, size_t n_given, struct moe_err *e)
{
    size_t n = l->files.n, own = n - n_given;
    struct queue q = { l, calloc(n, sizeof(*q.jobs)), calloc(n, sizeof(*q.group)) };
    struct moe_pool *pool = NULL;
    int rc = q.jobs == NULL || q.group == NULL ? no_memory(e) : moe_pool_new(0, &pool, e);

    for (size_t i = 0; i < n && rc == 0; i++) {
        q.group[i] = i < own ? kind_of(l->files.f[i].rel) : given[i - own];
        q.jobs[i] = (struct moe_digestq_job){ .name = l->files.f[i].name, .fd = -1,
            .len = q.group[i] != NULL ? MOE_DIGESTQ_REST : 0 };
    }
    if (rc == 0) {
        struct moe_digestq run = { q.jobs, n, open_file, done, &q, NULL };
        rc = moe_digestq_run(&run, pool, e);
    }
    moe_pool_free(pool);
    free(q.jobs);
    free(q.group);
    return rc;
}

/* Lines "name blank version", as dpkg-query -W writes them. */
static int
take_packages(struct lock *l, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t number = 1;
    int rc = moe_read_file(path, LIST_MAX, &b, e);

    if (rc == 0 && b.len > 0 && memchr(b.p, '\0', b.len) != NULL)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: NUL in a list of packages", path);
    for (char *p = b.p, *end; rc == 0 && p != NULL && *p != '\0'; p = end, number++) {
        char *blank;
        end = p + strcspn(p, "\n");
        if (*end == '\n')
            *end++ = '\0';
        if ((blank = strpbrk(p, " \t")) == NULL || blank == p || blank[1] == '\0')
            rc = moe_err_set(e, MOE_EFORMAT, "%s: line %zu: is no name and version", path, number);
        else {
            *blank = '\0';
            rc = add(l, "packages", p, blank + 1, false, e);
        }
    }
    moe_buf_fini(&b);
    return rc;
}

static int
take_driver(struct lock *l, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    if (path == NULL && access(DRIVER, F_OK) != 0)
        return 0;
    if ((rc = moe_read_file(path != NULL ? path : DRIVER, (size_t)64 << 10, &b, e)) == 0) {
        if (b.len > 0)
            b.p[strcspn(b.p, "\n")] = '\0';
        rc = add(l, "driver", "version", b.len > 0 ? b.p : "", false, e);
    }
    moe_buf_fini(&b);
    return rc;
}

/* ---- Two snapshots ------------------------------------------------------------------- */

static size_t
place(const char *group)
{
    size_t i = 0;

    while (groups[i] != group)
        i++;
    return i;
}

static int
compare(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    size_t i = place(a->group), j = place(b->group);

    return i != j ? (i < j ? -1 : 1) : strcmp(a->name, b->name);
}

static void
sort(struct lock *l)
{
    if (l->n > 0)
        qsort(l->e, l->n, sizeof(*l->e), compare);
}

static int
print_lock(struct lock *l, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    if (l->n == 0)
        return moe_err_set(e, MOE_EFORMAT, "nothing to pin");
    sort(l);
    moe_buf_fmt(&b, "{\"moe_lock\":1,\"entries\":%zu}\n", l->n);
    for (size_t i = 0; i < l->n; i++) {
        struct moe_jsonw w = { &b, false };
        moe_jsonw_open(&w, '{');
        moe_jsonw_key(&w, "group");
        moe_jsonw_str(&w, l->e[i].group, strlen(l->e[i].group));
        moe_jsonw_key(&w, "name");
        moe_jsonw_str(&w, l->e[i].name, strlen(l->e[i].name));
        moe_jsonw_key(&w, "value");
        moe_jsonw_str(&w, l->e[i].value, strlen(l->e[i].value));
        if (l->e[i].given) {
            moe_jsonw_key(&w, "given");
            moe_jsonw_bool(&w, true);
        }
        moe_jsonw_close(&w, '}');
        moe_buf_byte(&b, '\n');
    }
    if (b.bad)
        rc = no_memory(e);
    else if (b.len > 0 && fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc;
}

static int
read_entry(struct lock *l, struct moe_json_at at, struct moe_err *e)
{
    static const char *const keys[] = { "group", "name", "value", "given", NULL };
    const char *group, *name, *value, *known;
    bool given;
    int rc = moe_json_only(at, keys, e);

    if (rc != 0 || (rc = moe_json_str(at, "group", true, NULL, &group, e)) != 0 ||
        (rc = moe_json_str(at, "name", true, NULL, &name, e)) != 0 ||
        (rc = moe_json_str(at, "value", true, NULL, &value, e)) != 0 ||
        (rc = moe_json_bool(at, "given", false, false, &given, e)) != 0)
        return rc;
    if ((known = group_of(group, strlen(group))) == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: group: %s: is unknown", at.name, group);
    return add(l, known, name, value, given, e);
}

static int
read_lock(struct lock *l, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int64_t v, n = -1;
    int rc = moe_read_file(path, LOCK_MAX, &b, e);

    for (const char *p = b.p, *end = b.len > 0 ? b.p + b.len : b.p; rc == 0 && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        struct moe_json_at at = { NULL, path };
        json_t *o = NULL;
        if (stop == NULL)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: ends within a line", path);
        else if ((rc = moe_json_parse(p, (size_t)(stop - p), path, &o, e)) == 0 &&
            !json_is_object(o))
            rc = moe_err_set(e, MOE_EFORMAT, "%s: is no lock", path);
        at.o = o;
        if (rc == 0 && n >= 0)
            rc = read_entry(l, at, e);
        else if (rc == 0 && (rc = moe_json_int(at, "moe_lock", true, 0, 1, 1, &v, e)) == 0)
            rc = moe_json_int(at, "entries", true, 0, 1, INT32_MAX, &n, e);
        json_decref(o);
        p = stop != NULL ? stop + 1 : end;
    }
    if (rc == 0 && (n < 0 || (size_t)n != l->n))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no whole lock", path);
    moe_buf_fini(&b);
    sort(l);
    return rc;
}

/* Lines "GROUP: NAME: differs"; 1 if there are any. */
static int
differences(const struct lock *was, struct lock *is, const struct args *a, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t i = 0, j = 0;
    int rc;

    sort(is);
    while (i < was->n || j < is->n) {
        const struct entry *x = i < was->n ? &was->e[i] : NULL;
        const struct entry *y = j < is->n ? &is->e[j] : NULL;
        int c = x == NULL ? 1 : y == NULL ? -1 : compare(x, y);
        const struct entry *it = c > 0 ? y : x;
        const char *what = c < 0 ? "missing" : c > 0 ? "new" :
            strcmp(x->value, y->value) != 0 ? "differs" : NULL;
        if (strcmp(it->group, "packages") == 0 && a->packages == NULL)
            what = NULL;        /* told on stderr, not looked at */
        if (what != NULL) {
            moe_buf_fmt(&b, "%s: ", it->group);
            moe_buf_show(&b, it->name, strlen(it->name));
            moe_buf_fmt(&b, ": %s\n", what);
        }
        i += c <= 0;
        j += c >= 0;
    }
    rc = b.len > 0 ? MOE_EXIT_NO : MOE_EXIT_YES;
    if (b.bad)
        rc = no_memory(e);
    else if (b.len > 0 && fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc;
}

/* The directory, then the files given beside it; groups[i] is that of the i-th of those. */
static int
snapshot(struct lock *l, const struct args *a, const char *dir, const struct entry *given,
    size_t n, struct moe_err *e)
{
    const char **group = calloc(n + 1, sizeof(*group));
    int rc = group == NULL ? no_memory(e) : verify_file_add(&l->files, dir, e);

    if (rc == 0 && l->files.n_roots == 0)
        rc = moe_err_set(e, MOE_EUSAGE, "%s: is not a directory", dir);
    l->troubles += l->files.troubles;
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        rc = verify_file_add(&l->files, given[i].name, e);
        if (rc == MOE_ENOENT && given[i].value != NULL)
            rc = 0;             /* pinned and gone */
        else if (rc == 0 && l->files.n_roots > 1)
            rc = moe_err_set(e, MOE_EUSAGE, "%s: is a directory", given[i].name);
        else if (rc == 0 && given[i].name != NULL && strcmp(given[i].name, "-") == 0)
            rc = moe_err_set(e, MOE_EUSAGE, "-: standard input cannot be pinned");
        else if (rc == 0)
            group[k++] = given[i].group;
        if (i + 1 == n && rc == 0)
            n = k;
    }
    if (rc == 0)
        rc = take_files(l, group, n, e);
    if (rc == 0 && a->packages != NULL)
        rc = take_packages(l, a->packages, e);
    if (rc == 0)
        rc = take_driver(l, a->driver, e);
    free(group);
    return rc;
}

static void
fini(struct lock *l)
{
    free(l->e);
    verify_file_fini(&l->files);
    moe_arena_fini(&l->text);
}

static int
check(const struct args *a, const char *path, const char *dir, struct moe_err *e)
{
    struct lock was = LOCK_INIT, is = LOCK_INIT;
    struct entry *given = NULL;
    size_t n = 0;
    bool packages = false;
    int rc = read_lock(&was, path, e);

    if (rc == 0 && (given = calloc(was.n, sizeof(*given))) == NULL)
        rc = no_memory(e);
    for (size_t i = 0; i < was.n && rc == 0; i++) {
        if (was.e[i].given)
            given[n++] = was.e[i];
        packages = packages || strcmp(was.e[i].group, "packages") == 0;
    }
    if (rc == 0 && packages && a->packages == NULL)
        moe_tool_warn("%s: pins packages, which are not looked at without --packages", path);
    if (rc == 0 && (rc = snapshot(&is, a, dir, given, n, e)) == 0)
        rc = differences(&was, &is, a, e);
    if (rc >= 0 && is.troubles > 0)
        rc = MOE_EXIT_TROUBLE;
    free(given);
    fini(&was);
    fini(&is);
    return rc;
}

static int
make(const struct args *a, char *const *operands, size_t n, struct moe_err *e)
{
    struct lock l = LOCK_INIT;
    struct entry *given = calloc(n, sizeof(*given));
    int rc = given == NULL ? no_memory(e) : 0;

    for (size_t i = 1; i < n && rc == 0; i++) {
        const char *eq = strchr(operands[i], '=');
        given[i - 1].group = eq != NULL ? group_of(operands[i], (size_t)(eq - operands[i])) : NULL;
        if (given[i - 1].group == NULL)
            rc = moe_err_set(e, MOE_EUSAGE, "%s: is no GROUP=FILE with a group of the page",
                operands[i]);
        else
            given[i - 1].name = eq + 1;
    }
    if (rc == 0 && (rc = snapshot(&l, a, operands[0], given, n - 1, e)) == 0)
        rc = l.troubles > 0 ? MOE_EXIT_TROUBLE : print_lock(&l, e);
    free(given);
    fini(&l);
    return rc;
}

int
verify_lock(int argc, char **argv, struct moe_err *e)
{
    struct args a = { NULL, NULL };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_lock_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (first < argc && strcmp(argv[first], "check") == 0) {
        if (argc - first != 3)
            return moe_err_set(e, MOE_EUSAGE, "lock check LOCK DIR");
        return check(&a, argv[first + 1], argv[first + 2], e);
    }
    if (first == argc)
        return moe_err_set(e, MOE_EUSAGE, "which directory?");
    return make(&a, argv + first, (size_t)(argc - first), e);
}
