/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the header of safetensors as it is read. Opens no files and knows nothing
 * of data, models or indexes; streams are safet_stream.c, writing safet_write.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/arena.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/base/scan.h"
#include "common/formats/safet.h"

struct moe_safet {
    struct moe_tensor *t;
    size_t n, cap;
    size_t *by_name, *by_offset;
    struct moe_safet_pair *meta;
    size_t n_meta, cap_meta;
    struct moe_arena arena;     /* names, shapes, metadata */
    uint64_t data_at, data_len;
};

/* ---- Memory ---------------------------------------------------------------- */

/* Room for one more of size bytes in a growing array. */
static bool
grow(void **p, size_t n, size_t *cap, size_t size)
{
    size_t to = *cap == 0 ? 16 : *cap * 2;
    void *q;

    if (n < *cap)
        return true;
    if ((q = realloc(*p, to * size)) == NULL)
        return false;
    *p = q;
    *cap = to;
    return true;
}

static int
no_memory(const char *name, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
}

/* ---- Reading --------------------------------------------------------------- */

static int
parse_dtype(struct moe_scan *j, struct moe_tensor *t, struct moe_err *e)
{
    int rc = moe_scan_str(j, e);

    if (rc != 0)
        return rc;
    if (!moe_dtype_find(j->text.p, j->text.len, &t->dtype))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: unknown dtype '%s'", j->name,
            t->name, j->text.p);
    return 0;
}

static int
parse_shape(struct moe_safet *s, struct moe_scan *j, struct moe_tensor *t, struct moe_err *e)
{
    uint64_t dims[MOE_SAFET_MAX_RANK], *shape;
    int rank = 0, rc;
    bool more;

    if ((rc = moe_scan_enter(j, MOE_SCAN_ARRAY, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(j, &more, e)) == 0 && more) {
        if (rank == MOE_SAFET_MAX_RANK)
            return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: more than %d dimensions",
                j->name, t->name, MOE_SAFET_MAX_RANK);
        if ((rc = moe_scan_uint(j, &dims[rank++], e)) != 0)
            return rc;
    }
    if (rc != 0)
        return rc;
    if ((shape = moe_arena_get(&s->arena, (size_t)rank * sizeof(*shape))) == NULL)
        return no_memory(j->name, e);
    memcpy(shape, dims, (size_t)rank * sizeof(*shape));
    t->shape = shape;
    t->rank = rank;
    return 0;
}

static int
parse_offsets(struct moe_scan *j, struct moe_tensor *t, struct moe_err *e)
{
    uint64_t at[2];
    size_t n = 0;
    bool more;
    int rc;

    if ((rc = moe_scan_enter(j, MOE_SCAN_ARRAY, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(j, &more, e)) == 0 && more) {
        if (n == 2)
            return moe_scan_fail(j, e, "more than two data_offsets");
        if ((rc = moe_scan_uint(j, &at[n++], e)) != 0)
            return rc;
    }
    if (rc != 0)
        return rc;
    if (n != 2)
        return moe_scan_fail(j, e, "data_offsets must be two numbers");
    t->begin = at[0];
    t->end = at[1];
    return 0;
}

static bool
text_is(const struct moe_scan *j, const char *want)
{
    return j->text.len == strlen(want) && memcmp(j->text.p, want, j->text.len) == 0;
}

/* The members of one tensor; its name is set. */
static int
parse_tensor(struct moe_safet *s, struct moe_scan *j, struct moe_tensor *t, struct moe_err *e)
{
    static const char *const keys[] = { "dtype", "shape", "data_offsets" };
    bool seen[3] = { false, false, false }, more;
    int rc;

    if ((rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(j, &more, e)) == 0 && more) {
        int k = 0;

        while (k < 3 && !text_is(j, keys[k]))
            k++;
        if (k < 3 && seen[k])
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %s twice", j->name, t->name,
                keys[k]);
        if (k == 0)
            rc = parse_dtype(j, t, e);
        else if (k == 1)
            rc = parse_shape(s, j, t, e);
        else if (k == 2)
            rc = parse_offsets(j, t, e);
        else
            rc = moe_scan_skip(j, e);
        if (rc != 0)
            return rc;
        if (k < 3)
            seen[k] = true;
    }
    for (int k = 0; rc == 0 && k < 3; k++) {
        if (!seen[k])
            rc = moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: no %s", j->name, t->name, keys[k]);
    }
    return rc;
}

static int
parse_meta(struct moe_safet *s, struct moe_scan *j, struct moe_err *e)
{
    bool more;
    int rc;

    if ((rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(j, &more, e)) == 0 && more) {
        struct moe_safet_pair *m;

        if (!grow((void **)&s->meta, s->n_meta, &s->cap_meta, sizeof(*s->meta)))
            return no_memory(j->name, e);
        m = &s->meta[s->n_meta];
        m->key_len = j->text.len;
        if ((m->key = moe_arena_text(&s->arena, j->text.p, j->text.len)) == NULL)
            return no_memory(j->name, e);
        if ((rc = moe_scan_str(j, e)) != 0)
            return rc;
        m->value_len = j->text.len;
        if ((m->value = moe_arena_text(&s->arena, j->text.p, j->text.len)) == NULL)
            return no_memory(j->name, e);
        s->n_meta++;
    }
    return rc;
}

static int
parse_text(struct moe_safet *s, struct moe_scan *j, struct moe_err *e)
{
    bool more, meta = false;
    int rc;

    if ((rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(j, &more, e)) == 0 && more) {
        struct moe_tensor *t;

        if (text_is(j, "__metadata__")) {
            if (meta)
                return moe_scan_fail(j, e, "__metadata__ twice");
            meta = true;
            if ((rc = parse_meta(s, j, e)) != 0)
                return rc;
            continue;
        }
        if (!grow((void **)&s->t, s->n, &s->cap, sizeof(*s->t)))
            return no_memory(j->name, e);
        t = &s->t[s->n];
        *t = (struct moe_tensor){ .name_len = j->text.len };
        if ((t->name = moe_arena_text(&s->arena, j->text.p, j->text.len)) == NULL)
            return no_memory(j->name, e);
        if ((rc = parse_tensor(s, j, t, e)) != 0)
            return rc;
        s->n++;
    }
    return rc != 0 ? rc : moe_scan_end(j, e);
}

/* ---- Order and checks ------------------------------------------------------ */

static int
compare_text(const char *a, size_t na, const char *b, size_t nb)
{
    int c = memcmp(a, b, na < nb ? na : nb);

    return c != 0 ? c : (na > nb) - (na < nb);
}

static int
compare_names(const void *pa, const void *pb, void *ctx)
{
    const struct moe_tensor *t = ctx;
    const struct moe_tensor *a = &t[*(const size_t *)pa], *b = &t[*(const size_t *)pb];

    return compare_text(a->name, a->name_len, b->name, b->name_len);
}

/* By begin, then end, so that empty tensors stand before the next full one. */
static int
compare_offsets(const void *pa, const void *pb, void *ctx)
{
    const struct moe_tensor *t = ctx;
    size_t ia = *(const size_t *)pa, ib = *(const size_t *)pb;
    const struct moe_tensor *a = &t[ia], *b = &t[ib];

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return (ia > ib) - (ia < ib);
}

static int
compare_pairs(const void *pa, const void *pb)
{
    const struct moe_safet_pair *a = *(const struct moe_safet_pair *const *)pa;
    const struct moe_safet_pair *b = *(const struct moe_safet_pair *const *)pb;

    return compare_text(a->key, a->key_len, b->key, b->key_len);
}

static int
check_meta(const struct moe_safet *s, const char *name, struct moe_err *e)
{
    const struct moe_safet_pair **p = malloc((s->n_meta + 1) * sizeof(*p));
    int rc = 0;

    if (p == NULL)
        return no_memory(name, e);
    for (size_t i = 0; i < s->n_meta; i++)
        p[i] = &s->meta[i];
    qsort(p, s->n_meta, sizeof(*p), compare_pairs);
    for (size_t i = 1; rc == 0 && i < s->n_meta; i++) {
        if (compare_pairs(&p[i - 1], &p[i]) == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: __metadata__: %s twice", name, p[i]->key);
    }
    free(p);
    return rc;
}

static int
index_tensors(struct moe_safet *s, const char *name, struct moe_err *e)
{
    s->by_name = malloc((s->n + 1) * sizeof(*s->by_name));
    s->by_offset = malloc((s->n + 1) * sizeof(*s->by_offset));
    if (s->by_name == NULL || s->by_offset == NULL)
        return no_memory(name, e);
    for (size_t i = 0; i < s->n; i++)
        s->by_name[i] = s->by_offset[i] = i;
    qsort_r(s->by_name, s->n, sizeof(*s->by_name), compare_names, s->t);
    qsort_r(s->by_offset, s->n, sizeof(*s->by_offset), compare_offsets, s->t);
    for (size_t i = 1; i < s->n; i++) {
        if (compare_names(&s->by_name[i - 1], &s->by_name[i], s->t) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s twice", name,
                s->t[s->by_name[i]].name);
    }
    return 0;
}

static int
check_size(const struct moe_tensor *t, const char *name, struct moe_err *e)
{
    uint64_t bytes;

    if (!moe_safet_bytes(t->dtype, t->shape, t->rank, &bytes))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: its shape overflows or ends within"
            " a byte", name, t->name);
    if (t->end < t->begin)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: ends before it begins", name, t->name);
    if (t->end - t->begin != bytes)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu bytes for a shape of %llu", name,
            t->name, (unsigned long long)(t->end - t->begin), (unsigned long long)bytes);
    return 0;
}

/* The tensors tile the data: no hole, no overlap, nothing after the last. */
static int
check_tiles(struct moe_safet *s, uint64_t data_len, const char *name, struct moe_err *e)
{
    uint64_t at = 0;

    for (size_t k = 0; k < s->n; k++) {
        const struct moe_tensor *t = &s->t[s->by_offset[k]];
        int rc = check_size(t, name, e);

        if (rc != 0)
            return rc;
        if (t->begin != at)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %s at byte %llu of the data", name,
                t->name, t->begin < at ? "overlaps another" : "a hole before it",
                (unsigned long long)(t->begin < at ? t->begin : at));
        at = t->end;
    }
    if (data_len != UINT64_MAX && at != data_len)
        return moe_err_set(e, MOE_EFORMAT, "%s: %llu bytes of data, but the tensors need %llu",
            name, (unsigned long long)data_len, (unsigned long long)at);
    s->data_len = at;
    return 0;
}

int
moe_safet_parse(const char *json, size_t n, uint64_t data_len, const char *name,
    struct moe_safet **out, struct moe_err *e)
{
    struct moe_safet *s;
    struct moe_scan j;
    int rc;

    *out = NULL;
    if (n > MOE_SAFET_MAX_HEADER)
        return moe_err_set(e, MOE_ELIMIT, "%s: a header of %zu bytes is over %zu", name, n,
            MOE_SAFET_MAX_HEADER);
    if (n == 0 || json[0] != '{')
        return moe_err_set(e, MOE_EFORMAT, "%s: not safetensors: the header is no JSON object",
            name);
    if ((s = calloc(1, sizeof(*s))) == NULL)
        return no_memory(name, e);
    s->data_at = 8 + (uint64_t)n;
    moe_scan_init(&j, json, n, name);
    if ((rc = parse_text(s, &j, e)) == 0 &&
        (rc = check_meta(s, name, e)) == 0 &&
        (rc = index_tensors(s, name, e)) == 0)
        rc = check_tiles(s, data_len, name, e);
    moe_scan_fini(&j);
    if (rc != 0) {
        moe_safet_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

int
moe_safet_length(const unsigned char raw[8], const char *name, size_t *n,
    struct moe_err *e)
{
    uint64_t v = 0;

    *n = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | raw[i];
    if (v > MOE_SAFET_MAX_HEADER)
        return moe_err_set(e, MOE_EFORMAT, "%s: not safetensors: a header of %llu bytes is over"
            " %zu", name, (unsigned long long)v, MOE_SAFET_MAX_HEADER);
    *n = (size_t)v;
    return 0;
}

int
moe_safet_fd(int fd, const char *name, struct moe_safet **out, struct moe_err *e)
{
    unsigned char raw[8];
    struct stat st;
    char *json = NULL;
    uint64_t len;
    size_t n;
    int rc;

    *out = NULL;
    if (fstat(fd, &st) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", name);
    if (!S_ISREG(st.st_mode))
        return moe_err_set(e, MOE_EFORMAT, "%s: not a regular file", name);
    len = (uint64_t)st.st_size;
    if (len < 8)
        return moe_err_set(e, MOE_EFORMAT, "%s: not safetensors: only %llu bytes", name,
            (unsigned long long)len);
    if ((rc = moe_read_at(fd, name, raw, 8, 0, e)) != 0 ||
        (rc = moe_safet_length(raw, name, &n, e)) != 0)
        return rc;
    if (n > len - 8)
        return moe_err_set(e, MOE_EFORMAT, "%s: a header of %zu bytes in a file of %llu", name, n,
            (unsigned long long)len);
    if ((json = malloc(n + 1)) == NULL)
        return no_memory(name, e);
    if ((rc = moe_read_at(fd, name, json, n, 8, e)) == 0)
        rc = moe_safet_parse(json, n, len - 8 - n, name, out, e);
    free(json);
    return rc;
}

void
moe_safet_free(struct moe_safet *s)
{
    if (s == NULL)
        return;
    moe_arena_fini(&s->arena);
    free(s->meta);
    free(s->by_name);
    free(s->by_offset);
    free(s->t);
    free(s);
}

/* ---- Asking ---------------------------------------------------------------- */

size_t
moe_safet_n(const struct moe_safet *s)
{
    return s->n;
}

const struct moe_tensor *
moe_safet_at(const struct moe_safet *s, size_t i)
{
    return &s->t[i];
}

const struct moe_tensor *
moe_safet_find(const struct moe_safet *s, const char *name)
{
    size_t lo = 0, hi = s->n, len = strlen(name);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct moe_tensor *t = &s->t[s->by_name[mid]];
        int c = compare_text(name, len, t->name, t->name_len);

        if (c == 0)
            return t;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const struct moe_tensor *
moe_safet_by_name(const struct moe_safet *s, size_t k)
{
    return &s->t[s->by_name[k]];
}

size_t
moe_safet_by_offset(const struct moe_safet *s, size_t k)
{
    return s->by_offset[k];
}

uint64_t
moe_safet_data_at(const struct moe_safet *s)
{
    return s->data_at;
}

uint64_t
moe_safet_data_len(const struct moe_safet *s)
{
    return s->data_len;
}

const char *
moe_safet_meta(const struct moe_safet *s, const char *key)
{
    for (size_t i = 0; i < s->n_meta; i++) {
        if (compare_text(s->meta[i].key, s->meta[i].key_len, key, strlen(key)) == 0)
            return s->meta[i].value;
    }
    return NULL;
}

const struct moe_safet_pair *
moe_safet_meta_at(const struct moe_safet *s, size_t i)
{
    return i < s->n_meta ? &s->meta[i] : NULL;
}

bool
moe_safet_count(const struct moe_tensor *t, uint64_t *n)
{
    *n = 1;
    for (int i = 0; i < t->rank; i++) {
        if (!moe_num_mul(*n, t->shape[i], n))
            return false;
    }
    return true;
}

bool
moe_safet_bytes(enum moe_dtype type, const uint64_t *shape, int rank, uint64_t *n)
{
    struct moe_tensor t = { .shape = shape, .rank = rank };

    if (!moe_safet_count(&t, n) || !moe_num_mul(*n, moe_dtype_bits(type), n) || *n % 8 != 0)
        return false;
    *n /= 8;
    return true;
}
