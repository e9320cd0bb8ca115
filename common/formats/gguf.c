/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading the header of a GGUF file: bytes to keys and tensors, every rule
 * checked. Does not write (ggufw.c) or know the types of tensors (ggml.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/num.h"
#include "common/base/read.h"
#include "common/formats/ggml.h"
#include "common/formats/gguf.h"

#define FIRST_READ ((uint64_t)1 << 20)      /* most headers of small models fit */
#define MIN_KV 14                           /* length, one byte of key, type, one byte */
#define MIN_TENSOR 25                       /* length, one byte of name, dims, type, offset */

static const char align_key[] = MOE_GGUF_ALIGN_KEY;

struct moe_gguf {
    unsigned char *bytes;           /* the header; keys and names get their NUL here */
    struct moe_gguf_kv *kv;
    uint32_t *kv_order;             /* indices sorted by key */
    struct moe_gguf_tensor *tensors;
    uint32_t *order;                /* indices sorted by name */
    size_t n_kv, kv_cap, n, cap;
    uint64_t data_at, data_len, align;
};

struct cursor {
    const unsigned char *p;
    uint64_t at, have, file_len;
    uint64_t want;                  /* set when the file has more than is at p */
    const char *name;
    struct moe_err *e;
};

static int fail(struct cursor *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int
fail(struct cursor *c, int code, const char *fmt, ...)
{
    char what[MOE_ERR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return moe_err_set(c->e, code, "%s: offset %" PRIu64 ": %s", c->name, c->at, what);
}

/* n more bytes must be there. */
static int
need(struct cursor *c, uint64_t n, const char *what)
{
    if (n > c->file_len - c->at)
        return fail(c, MOE_EFORMAT, "the file ends inside %s", what);
    if (n > MOE_GGUF_MAX_HEADER - c->at)
        return fail(c, MOE_ELIMIT, "the header is larger than %" PRIu64 " bytes",
            MOE_GGUF_MAX_HEADER);
    if (n > c->have - c->at) {
        c->want = c->at + n;
        return MOE_EFORMAT;
    }
    return 0;
}

static uint64_t
load(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static int
get(struct cursor *c, size_t n, uint64_t *v, const char *what)
{
    int rc = need(c, n, what);

    if (rc != 0)
        return rc;
    *v = load(c->p + c->at, n);
    c->at += n;
    return 0;
}

static int
get_str(struct cursor *c, const unsigned char **p, uint64_t *n, const char *what)
{
    int rc;

    if ((rc = get(c, 8, n, what)) != 0 || (rc = need(c, *n, what)) != 0)
        return rc;
    *p = c->p + c->at;
    c->at += *n;
    return 0;
}

/* A key or a name: at least one byte, at most max, no NUL. */
static int
get_name(struct cursor *c, uint64_t max, const char **p, const char *what)
{
    const unsigned char *s;
    uint64_t n;
    int rc;

    if ((rc = get(c, 8, &n, what)) != 0)
        return rc;
    if (n == 0 || n > max)
        return fail(c, MOE_EFORMAT, "%s has %" PRIu64 " bytes, not 1 to %" PRIu64, what, n, max);
    if ((rc = need(c, n, what)) != 0)
        return rc;
    s = c->p + c->at;
    if (memchr(s, 0, n) != NULL)
        return fail(c, MOE_EFORMAT, "%s holds a NUL", what);
    c->at += n;
    *p = (const char *)s;
    return 0;
}

/* Room for one more in an array that has grown to n: memory follows the bytes read. */
static void *
grow(void *p, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap == 0 ? 16 : 2 * *cap;
    void *q;

    if (n < *cap)
        return p;
    if ((q = realloc(p, more * size)) != NULL)
        *cap = more;
    return q;
}

static int
get_value(struct cursor *c, struct moe_gguf_kv *kv)
{
    uint64_t from = c->at, bytes, len;
    const unsigned char *s;
    int rc;

    if (kv->kind == MOE_GGUF_STRING) {
        /* Each takes 8 bytes or more, so a wild count ends soon. */
        for (uint64_t i = 0; i < kv->n; i++)
            if ((rc = get_str(c, &s, &len, "a string")) != 0)
                return rc;
    } else {
        if (!moe_num_mul(kv->n, moe_ggufkv_size(kv->kind), &bytes))
            bytes = UINT64_MAX;
        if ((rc = need(c, bytes, "a value")) != 0)
            return rc;
        for (uint64_t i = 0; kv->kind == MOE_GGUF_BOOL && i < bytes; i++)
            if (c->p[from + i] > 1)
                return fail(c, MOE_EFORMAT, "a boolean is %u", c->p[from + i]);
        c->at += bytes;
    }
    kv->raw = c->p + from;
    kv->raw_len = (size_t)(c->at - from);
    return 0;
}

static int
get_alignment(struct cursor *c, struct moe_gguf *g, const struct moe_gguf_kv *kv)
{
    if (kv->array || kv->kind != MOE_GGUF_U32)
        return fail(c, MOE_EFORMAT, "%s is not a UINT32", align_key);
    g->align = load(kv->raw, 4);
    if (g->align < MOE_GGUF_MIN_ALIGN || g->align > MOE_GGUF_MAX_ALIGN ||
        (g->align & (g->align - 1)) != 0)
        return fail(c, MOE_EFORMAT, "%s is %" PRIu64 ", not a power of two from %d to %" PRIu64,
            align_key, g->align, MOE_GGUF_MIN_ALIGN, MOE_GGUF_MAX_ALIGN);
    return 0;
}

static int
get_kv(struct cursor *c, struct moe_gguf *g)
{
    struct moe_gguf_kv *kv, *more;
    uint64_t kind, key_end;
    int rc;

    if ((more = grow(g->kv, g->n_kv, &g->kv_cap, sizeof(*g->kv))) == NULL)
        return fail(c, MOE_ENOMEM, "out of memory");
    g->kv = more;
    kv = &g->kv[g->n_kv];
    *kv = (struct moe_gguf_kv){ .n = 1 };
    if ((rc = get_name(c, MOE_GGUF_MAX_KEY, &kv->key, "a key")) != 0)
        return rc;
    key_end = c->at;
    if ((rc = get(c, 4, &kind, "a type")) != 0)
        return rc;
    if (kind == MOE_GGUF_ARRAY) {
        kv->array = true;
        if ((rc = get(c, 4, &kind, "a type")) != 0 || (rc = get(c, 8, &kv->n, "a count")) != 0)
            return rc;
        if (kind == MOE_GGUF_ARRAY)
            return fail(c, MOE_EFORMAT, "an array of arrays");
    }
    if (kind >= MOE_GGUF_KIND_N)
        return fail(c, MOE_EFORMAT, "value type %" PRIu64 " does not exist", kind);
    kv->kind = (enum moe_gguf_kind)kind;
    if ((rc = get_value(c, kv)) != 0)
        return rc;
    if (kv->key != NULL &&
        key_end == (uint64_t)((const unsigned char *)kv->key - c->p) + sizeof(align_key) - 1 &&
        memcmp(kv->key, align_key, sizeof(align_key) - 1) == 0 &&
        (rc = get_alignment(c, g, kv)) != 0)
        return rc;
    g->n_kv++;
    return 0;
}

static int
get_tensor(struct cursor *c, struct moe_gguf *g)
{
    struct moe_gguf_tensor *t, *more;
    uint64_t v, len, elements, bytes;
    int rc;

    if ((more = grow(g->tensors, g->n, &g->cap, sizeof(*g->tensors))) == NULL)
        return fail(c, MOE_ENOMEM, "out of memory");
    g->tensors = more;
    t = &g->tensors[g->n];
    *t = (struct moe_gguf_tensor){ .ne = { 1, 1, 1, 1 } };
    if ((rc = get_name(c, MOE_GGUF_MAX_NAME, &t->name, "a tensor's name")) != 0)
        return rc;
    len = c->at - (uint64_t)((const unsigned char *)t->name - c->p);
    if ((rc = get(c, 4, &v, "a tensor")) != 0)
        return rc;
    if (v > MOE_GGML_DIMS)
        return fail(c, MOE_EFORMAT, "tensor %.*s has %" PRIu64 " dimensions", (int)len, t->name, v);
    t->n_dims = (int)v;
    for (int d = 0; d < t->n_dims; d++)
        if ((rc = get(c, 8, &t->ne[d], "a tensor")) != 0)
            return rc;
    if ((rc = get(c, 4, &v, "a tensor")) != 0 || (rc = get(c, 8, &t->offset, "a tensor")) != 0)
        return rc;
    t->type = (uint32_t)v;
    if (!moe_ggml_block(t->type, &elements, &bytes))
        return fail(c, MOE_EUNSUP, "tensor %.*s has type %" PRIu32 ", which is not known",
            (int)len, t->name, t->type);
    if (t->ne[0] % elements != 0)
        return fail(c, MOE_EFORMAT, "tensor %.*s: rows of %" PRIu64 " are not whole blocks of "
            "%" PRIu64, (int)len, t->name, t->ne[0], elements);
    if (!moe_ggml_bytes(t->type, t->ne, &t->bytes))
        return fail(c, MOE_EFORMAT, "tensor %.*s: its size overflows", (int)len, t->name);
    g->n++;
    return 0;
}

/* Offsets must follow one another, padded, and the last byte be in the file. */
static int
check_data(struct cursor *c, struct moe_gguf *g)
{
    uint64_t at = 0, end;

    if (g->n > 0 && !moe_num_align(c->at, g->align, &c->at))
        return fail(c, MOE_EFORMAT, "the data's offset overflows");
    g->data_at = c->at;
    if (g->data_at > c->file_len)
        return fail(c, MOE_EFORMAT, "the file ends before the data");
    for (size_t i = 0; i < g->n; i++) {
        const struct moe_gguf_tensor *t = &g->tensors[i];

        if (t->offset != at)
            return fail(c, MOE_EFORMAT, "tensor %s is at %" PRIu64 ", not at %" PRIu64,
                t->name, t->offset, at);
        if (!moe_num_add(at, t->bytes, &end) || end > c->file_len - g->data_at)
            return fail(c, MOE_EFORMAT, "tensor %s: the file has no %" PRIu64 " bytes for it",
                t->name, t->bytes);
        if (!moe_num_align(end, g->align, &at))
            return fail(c, MOE_EFORMAT, "tensor %s: its end overflows", t->name);
    }
    g->data_len = at;
    return 0;
}

/* The length before a key or name tells where its NUL goes; what stood there has been read. */
static void
terminate(struct moe_gguf *g, const char *s)
{
    size_t at = (size_t)((const unsigned char *)s - g->bytes);

    g->bytes[at + load(g->bytes + at - 8, 8)] = '\0';
}

static int
by_key(const void *a, const void *b, void *g)
{
    const struct moe_gguf_kv *kv = ((const struct moe_gguf *)g)->kv;

    return strcmp(kv[*(const uint32_t *)a].key, kv[*(const uint32_t *)b].key);
}

static int
by_name(const void *a, const void *b, void *g)
{
    const struct moe_gguf_tensor *t = ((const struct moe_gguf *)g)->tensors;

    return strcmp(t[*(const uint32_t *)a].name, t[*(const uint32_t *)b].name);
}

/* Sorting finds duplicates without a quadratic or a guessable hash. */
static int
sort(struct cursor *c, struct moe_gguf *g)
{
    g->kv_order = malloc((g->n_kv + 1) * sizeof(*g->kv_order));
    g->order = malloc((g->n + 1) * sizeof(*g->order));
    if (g->kv_order == NULL || g->order == NULL)
        return fail(c, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < g->n_kv; i++)
        g->kv_order[i] = (uint32_t)i;
    for (size_t i = 0; i < g->n; i++)
        g->order[i] = (uint32_t)i;
    qsort_r(g->kv_order, g->n_kv, sizeof(*g->kv_order), by_key, g);
    qsort_r(g->order, g->n, sizeof(*g->order), by_name, g);
    for (size_t i = 1; i < g->n_kv; i++)
        if (by_key(&g->kv_order[i - 1], &g->kv_order[i], g) == 0)
            return fail(c, MOE_EFORMAT, "key %s comes twice", g->kv[g->kv_order[i]].key);
    for (size_t i = 1; i < g->n; i++)
        if (by_name(&g->order[i - 1], &g->order[i], g) == 0)
            return fail(c, MOE_EFORMAT, "tensor %s comes twice", g->tensors[g->order[i]].name);
    return 0;
}

static int
parse(struct cursor *c, struct moe_gguf *g)
{
    uint64_t version, n, n_kv;
    int rc;

    if ((rc = need(c, 4, "the magic")) != 0)
        return rc;
    if (memcmp(c->p, "GGUF", 4) != 0)
        return fail(c, MOE_EFORMAT, "not a GGUF file");
    c->at = 4;
    if ((rc = get(c, 4, &version, "the version")) != 0)
        return rc;
    if (version != 3)
        return fail(c, MOE_EUNSUP, (version & 0xffff) == 0 ? "GGUF version %" PRIu64
            " (a big-endian file?)" : "GGUF version %" PRIu64 ", not 3", version);
    if ((rc = get(c, 8, &n, "the counts")) != 0 || (rc = get(c, 8, &n_kv, "the counts")) != 0)
        return rc;
    if (n > (c->file_len - c->at) / MIN_TENSOR || n_kv > (c->file_len - c->at) / MIN_KV)
        return fail(c, MOE_EFORMAT, "%" PRIu64 " keys and %" PRIu64
            " tensors do not fit in the file", n_kv, n);
    for (uint64_t i = 0; i < n_kv; i++)
        if ((rc = get_kv(c, g)) != 0)
            return rc;
    for (uint64_t i = 0; i < n; i++)
        if ((rc = get_tensor(c, g)) != 0)
            return rc;
    for (size_t i = 0; i < g->n_kv; i++)
        terminate(g, g->kv[i].key);
    for (size_t i = 0; i < g->n; i++)
        terminate(g, g->tensors[i].name);
    if ((rc = check_data(c, g)) != 0)
        return rc;
    return sort(c, g);
}

/*
 * Parse a header at bytes, which now belongs to the call. *want is 0, or the
 * bytes it takes to go on, and then the failure has no text.
 */
static int
parse_own(unsigned char *bytes, uint64_t n, uint64_t file_len, const char *name,
    uint64_t *want, struct moe_gguf **out, struct moe_err *e)
{
    struct cursor c = { .p = bytes, .have = n, .file_len = file_len, .name = name, .e = e };
    struct moe_gguf *g = calloc(1, sizeof(*g));
    int rc;

    *out = NULL;
    *want = 0;
    if (g == NULL) {
        free(bytes);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    }
    g->bytes = bytes;
    g->align = MOE_GGUF_ALIGN;
    if ((rc = parse(&c, g)) != 0) {
        *want = c.want;
        moe_gguf_free(g);
        return rc;
    }
    *out = g;
    return 0;
}

/* ---- Public ------------------------------------------------------------- */

int
moe_gguf_parse(const void *p, size_t n, uint64_t file_len, const char *name,
    struct moe_gguf **out, struct moe_err *e)
{
    unsigned char *bytes;
    uint64_t want;
    int rc;

    *out = NULL;
    if (n > file_len)
        n = (size_t)file_len;
    if ((bytes = malloc(n + 1)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if (n > 0)
        memcpy(bytes, p, n);
    rc = parse_own(bytes, n, file_len, name, &want, out, e);
    if (want > 0)
        return moe_err_set(e, rc, "%s: the header is cut at %zu bytes", name, n);
    return rc;
}

int
moe_gguf_fd(int fd, const char *name, struct moe_gguf **out, struct moe_err *e)
{
    uint64_t have = FIRST_READ, want, file_len;
    struct stat st;
    int rc;

    *out = NULL;
    if (fstat(fd, &st) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", name);
    if (!S_ISREG(st.st_mode))
        return moe_err_set(e, MOE_EIO, "%s: not a regular file", name);
    file_len = (uint64_t)st.st_size;
    /* Read a prefix, and twice as much when the header reaches further. */
    for (;;) {
        unsigned char *bytes;

        if (have > file_len)
            have = file_len;
        if ((bytes = malloc((size_t)have + 1)) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        if ((rc = moe_read_at(fd, name, bytes, (size_t)have, 0, e)) != 0) {
            free(bytes);
            return rc;
        }
        rc = parse_own(bytes, have, file_len, name, &want, out, e);
        if (want == 0)
            return rc;
        have = want > 2 * have ? want : 2 * have;
    }
}

void
moe_gguf_free(struct moe_gguf *g)
{
    if (g == NULL)
        return;
    free(g->bytes);
    free(g->kv);
    free(g->kv_order);
    free(g->tensors);
    free(g->order);
    free(g);
}

size_t
moe_gguf_kvs(const struct moe_gguf *g)
{
    return g->n_kv;
}

const struct moe_gguf_kv *
moe_gguf_kv(const struct moe_gguf *g, size_t i)
{
    return &g->kv[i];
}

const struct moe_gguf_kv *
moe_gguf_find_kv(const struct moe_gguf *g, const char *key)
{
    size_t lo = 0, hi = g->n_kv;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct moe_gguf_kv *kv = &g->kv[g->kv_order[mid]];
        int d = strcmp(key, kv->key);

        if (d == 0)
            return kv;
        if (d < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

size_t
moe_gguf_n(const struct moe_gguf *g)
{
    return g->n;
}

const struct moe_gguf_tensor *
moe_gguf_at(const struct moe_gguf *g, size_t i)
{
    return &g->tensors[i];
}

const struct moe_gguf_tensor *
moe_gguf_find(const struct moe_gguf *g, const char *name)
{
    size_t lo = 0, hi = g->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct moe_gguf_tensor *t = &g->tensors[g->order[mid]];
        int d = strcmp(name, t->name);

        if (d == 0)
            return t;
        if (d < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

uint64_t
moe_gguf_data_at(const struct moe_gguf *g)
{
    return g->data_at;
}

uint64_t
moe_gguf_data_len(const struct moe_gguf *g)
{
    return g->data_len;
}

uint64_t
moe_gguf_alignment(const struct moe_gguf *g)
{
    return g->align;
}
