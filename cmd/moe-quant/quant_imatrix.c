/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading importance matrices. Formats: tools/imatrix of llama.cpp; the
 * .dat of 2023 to 2025 (counts, names and values one after another, sums to be
 * divided by a count), and the GGUF that followed (NAME.in_sum2, NAME.counts).
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-quant/quant_imatrix.h"
#include "common/base/read.h"
#include "common/formats/source.h"

#define CHUNK 4096              /* values read at a time */

struct entry {
    enum moe_role role;
    enum moe_proj proj;
    int layer, expert;          /* expert -1: all, one after another, or none */
    uint64_t at, n;             /* bytes from the start of the file or tensor; values */
    size_t tensor;              /* GGUF */
    size_t counts;              /* GGUF: their tensor, SIZE_MAX: none */
};

struct quant_imatrix {
    char *path;
    int fd;                     /* .dat, else -1 */
    uint64_t size;
    struct moe_source *gguf;
    struct entry *entries;
    size_t n, cap;
};

static int
bad(const struct quant_imatrix *m, const char *what, struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: importance matrix: %s", m->path, what);
}

/* n values of an entry from value i. */
static int
values(const struct quant_imatrix *m, const struct entry *x, uint64_t i, size_t n, float *out,
    struct moe_err *e)
{
    if (m->gguf != NULL)
        return moe_source_read(m->gguf, x->tensor, 4 * i, out, 4 * n, e);
    return moe_read_at(m->fd, m->path, out, 4 * n, x->at + 4 * i, e);
}

/* Add an entry if its name means something; nothing is read of it yet. */
static int
add(struct quant_imatrix *m, const char *name, struct entry x, struct moe_err *e)
{
    struct moe_naming n;

    if (!moe_naming_parse(NULL, 0, name, &n))
        return 0;
    if (m->n == QUANT_IMATRIX_MAX_ENTRIES)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d entries", m->path,
            QUANT_IMATRIX_MAX_ENTRIES);
    if (m->n == m->cap) {
        size_t cap = m->cap == 0 ? 256 : 2 * m->cap;
        struct entry *more = realloc(m->entries, cap * sizeof(*more));

        if (more == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        m->entries = more;
        m->cap = cap;
    }
    x.role = n.role;
    x.proj = n.proj;
    x.layer = n.layer;
    x.expert = n.expert;
    m->entries[m->n++] = x;
    return 0;
}

/* All values are numbers and not negative. */
static int
check_values(const struct quant_imatrix *m, const struct entry *x, const char *name,
    struct moe_err *e)
{
    float v[CHUNK];

    for (uint64_t i = 0; i < x->n; i += CHUNK) {
        size_t n = x->n - i < CHUNK ? (size_t)(x->n - i) : CHUNK;
        int rc = values(m, x, i, n, v, e);

        if (rc != 0)
            return rc;
        for (size_t k = 0; k < n; k++) {
            if (!(v[k] >= 0) || !isfinite(v[k]))
                return moe_err_set(e, MOE_EFORMAT, "%s: importance matrix: %s: value %llu is"
                    " negative or no number", m->path, name, (unsigned long long)(i + k));
        }
    }
    return 0;
}

/* ---- The older form ----------------------------------------------------------- */

static int
number(const struct quant_imatrix *m, uint64_t *at, int32_t *v, struct moe_err *e)
{
    if (m->size - *at < 4)
        return bad(m, "it ends early", e);
    *at += 4;
    return moe_read_at(m->fd, m->path, v, 4, *at - 4, e);
}

static int
read_dat(struct quant_imatrix *m, struct moe_err *e)
{
    char name[QUANT_IMATRIX_MAX_NAME + 1];
    int32_t n, len, calls, count;
    uint64_t at = 0;
    int rc;

    if ((rc = number(m, &at, &n, e)) != 0)
        return rc;
    if (n < 1 || n > QUANT_IMATRIX_MAX_ENTRIES)
        return bad(m, "neither a GGUF file nor a plausible number of entries", e);
    for (int32_t i = 0; i < n; i++) {
        struct entry x = { .n = 0 };

        if ((rc = number(m, &at, &len, e)) != 0)
            return rc;
        if (len < 1 || len > QUANT_IMATRIX_MAX_NAME || m->size - at < (uint64_t)len)
            return bad(m, "a name of no plausible length", e);
        if ((rc = moe_read_at(m->fd, m->path, name, (size_t)len, at, e)) != 0)
            return rc;
        name[len] = '\0';
        at += (uint64_t)len;
        if ((rc = number(m, &at, &calls, e)) != 0 || (rc = number(m, &at, &count, e)) != 0)
            return rc;
        if (count < 1 || (m->size - at) / 4 < (uint64_t)count)
            return bad(m, "more values than it holds", e);
        x.at = at;
        x.n = (uint64_t)count;
        at += 4 * x.n;
        if ((rc = check_values(m, &x, name, e)) != 0 || (rc = add(m, name, x, e)) != 0)
            return rc;
    }
    return 0;
}

/* ---- GGUF --------------------------------------------------------------------- */

static int
read_gguf(struct quant_imatrix *m, struct moe_err *e)
{
    static const char sums[] = ".in_sum2";
    size_t k = strlen(sums);

    for (size_t i = 0; i < moe_source_n(m->gguf); i++) {
        const struct moe_tensor *t = moe_source_at(m->gguf, i);
        size_t len = strlen(t->name);
        char name[QUANT_IMATRIX_MAX_NAME];
        struct entry x = { .tensor = i };
        int rc;

        if (len <= k || len >= sizeof(name) || strcmp(t->name + len - k, sums) != 0)
            continue;
        if (t->dtype != MOE_F32)
            return bad(m, "sums that are not F32", e);
        memcpy(name, t->name, len - k);
        memcpy(name + len - k, ".counts", 8);
        x.counts = moe_source_find(m->gguf, name);
        name[len - k] = '\0';
        x.n = (t->end - t->begin) / 4;
        if ((rc = check_values(m, &x, name, e)) != 0 || (rc = add(m, name, x, e)) != 0)
            return rc;
    }
    return 0;
}

static int
compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->proj != y->proj)
        return x->proj < y->proj ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

int
quant_imatrix_open(const char *path, struct quant_imatrix **out, struct moe_err *e)
{
    struct quant_imatrix *m = calloc(1, sizeof(*m));
    char magic[4] = "";
    struct stat st;
    int rc = 0;

    *out = NULL;
    if (m == NULL || (m->path = strdup(path)) == NULL) {
        free(m);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    if ((m->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0 || fstat(m->fd, &st) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        rc = moe_err_set(e, MOE_EUNSUP, "%s: not a regular file", path);
    else
        m->size = (uint64_t)st.st_size;
    if (rc == 0 && m->size >= sizeof(magic))
        rc = moe_read_at(m->fd, path, magic, sizeof(magic), 0, e);
    if (rc == 0 && memcmp(magic, "GGUF", 4) == 0) {
        if ((rc = moe_source_open(path, &m->gguf, e)) == 0)
            rc = read_gguf(m, e);
    } else if (rc == 0) {
        rc = read_dat(m, e);
    }
    if (rc == 0 && m->n == 0)
        rc = bad(m, "no entry whose name is known", e);
    if (rc != 0) {
        quant_imatrix_close(m);
        return rc;
    }
    qsort(m->entries, m->n, sizeof(*m->entries), compare);
    *out = m;
    return 0;
}

void
quant_imatrix_close(struct quant_imatrix *m)
{
    if (m == NULL)
        return;
    if (m->fd >= 0)
        close(m->fd);
    moe_source_close(m->gguf);
    free(m->entries);
    free(m->path);
    free(m);
}

/* ---- Weights ------------------------------------------------------------------ */

/* The expert's own entry, or that of all experts. */
static const struct entry *
look(const struct quant_imatrix *m, enum moe_role role, enum moe_proj proj, int layer, int expert)
{
    struct entry key = { .role = role, .proj = proj, .layer = layer, .expert = expert };
    const struct entry *x = bsearch(&key, m->entries, m->n, sizeof(key), compare);

    key.expert = -1;
    return x != NULL ? x : bsearch(&key, m->entries, m->n, sizeof(key), compare);
}

/* Whether a slice saw nothing by its count; one without counts is judged by its values. */
static int
silent(const struct quant_imatrix *m, const struct entry *x, uint64_t slice, bool *yes,
    struct moe_err *e)
{
    const struct moe_tensor *t;
    float count;
    int rc;

    *yes = false;
    if (m->gguf == NULL || x->counts == SIZE_MAX)
        return 0;
    t = moe_source_at(m->gguf, x->counts);
    if (t->dtype != MOE_F32 || (t->end - t->begin) / 4 <= slice)
        return 0;
    if ((rc = moe_source_read(m->gguf, x->counts, 4 * slice, &count, 4, e)) == 0)
        *yes = !(count > 0);
    return rc;
}

int
quant_imatrix_find(const struct quant_imatrix *m, enum moe_role role, enum moe_proj proj,
    int layer, int expert, uint64_t cols, struct quant_weights *w,
    enum quant_imatrix_found *found, struct moe_err *e)
{
    enum moe_proj other = proj == MOE_PROJ_GATE ? MOE_PROJ_UP : MOE_PROJ_GATE;
    const struct entry *x = look(m, role, proj, layer, expert);
    uint64_t slice = 0, wide;
    double sum = 0;
    float v[CHUNK];
    bool dead;
    int rc;

    *found = QUANT_IMATRIX_NONE;
    if (x == NULL && (proj == MOE_PROJ_GATE || proj == MOE_PROJ_UP) &&
        (x = look(m, role, other, layer, expert)) == NULL)
        x = look(m, role, MOE_PROJ_GATE_UP, layer, expert);
    if (x == NULL)
        return 0;
    if (x->expert < 0 && expert >= 0)
        slice = (uint64_t)expert;
    wide = x->n / cols;
    if (x->n % cols != 0 || slice >= wide || (expert < 0 && wide != 1) ||
        wide > QUANT_IMATRIX_MAX_EXPERTS)
        return moe_err_set(e, MOE_EFORMAT, "%s: importance matrix: %llu values for layer %d, %s"
            " %s, do not go with %llu columns and expert %d", m->path, (unsigned long long)x->n,
            layer, moe_naming_role(role), moe_naming_proj(proj), (unsigned long long)cols,
            expert);
    if ((rc = silent(m, x, slice, &dead, e)) != 0)
        return rc;
    for (uint64_t i = 0; i < cols; i += CHUNK) {
        size_t n = cols - i < CHUNK ? (size_t)(cols - i) : CHUNK;

        if ((rc = values(m, x, slice * cols + i, n, v, e)) != 0)
            return rc;
        for (size_t k = 0; k < n; k++)
            sum += (double)v[k];
    }
    *w = (struct quant_weights){ (size_t)(x - m->entries), slice * cols,
        sum > 0 ? (float)((double)cols / sum) : 0 };
    *found = dead || sum <= 0 || !isfinite(w->times) ? QUANT_IMATRIX_DEAD : QUANT_IMATRIX_HERE;
    return 0;
}

int
quant_imatrix_read(const struct quant_imatrix *m, const struct quant_weights *w, uint64_t cols,
    float *h, struct moe_err *e)
{
    int rc = values(m, &m->entries[w->entry], w->at, (size_t)cols, h, e);

    for (uint64_t i = 0; rc == 0 && i < cols; i++)
        h[i] *= w->times;
    return rc;
}
