/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns writing the header of a GGUF file. Writes no file and no data: the
 * caller puts each tensor at the offset told here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/ggufw.h"

struct tensor {
    char name[MOE_GGUF_MAX_NAME + 1];
    uint32_t type;
    int n_dims;
    uint64_t ne[MOE_GGML_DIMS];
    uint64_t offset;
};

struct moe_ggufw {
    struct moe_buf kv;              /* as in the file */
    struct moe_buf keys;            /* NUL-terminated, one after another */
    struct tensor *tensors;
    uint64_t n_kv, data, align;
    size_t n, cap;
    struct moe_err bad;             /* the first mistake */
};

static void
put(struct moe_buf *b, uint64_t v, size_t n)
{
    char le[8];

    for (size_t i = 0; i < n; i++)
        le[i] = (char)(v >> (8 * i));
    moe_buf_add(b, le, n);
}

static void
put_str(struct moe_buf *b, const char *p, size_t n)
{
    put(b, n, 8);
    moe_buf_add(b, p, n);
}

static void
put_key(struct moe_ggufw *w, const char *key, uint32_t kind)
{
    size_t n = strlen(key);

    if (w->bad.code == 0 && (n == 0 || n > MOE_GGUF_MAX_KEY))
        moe_err_set(&w->bad, MOE_EFORMAT, "key %s has %zu bytes", key, n);
    put_str(&w->kv, key, n);
    put(&w->kv, kind, 4);
    moe_buf_add(&w->keys, key, n + 1);
    w->n_kv++;
}

static bool
holds(enum moe_gguf_kind kind, int64_t v)
{
    switch (kind) {
    case MOE_GGUF_U8: return v >= 0 && v <= UINT8_MAX;
    case MOE_GGUF_I8: return v >= INT8_MIN && v <= INT8_MAX;
    case MOE_GGUF_U16: return v >= 0 && v <= UINT16_MAX;
    case MOE_GGUF_I16: return v >= INT16_MIN && v <= INT16_MAX;
    case MOE_GGUF_U32: return v >= 0 && v <= UINT32_MAX;
    case MOE_GGUF_I32: return v >= INT32_MIN && v <= INT32_MAX;
    case MOE_GGUF_U64: return v >= 0;
    case MOE_GGUF_I64: return true;
    default: return false;
    }
}

/* Whether raw is n elements of kind, no less and no more. */
static bool
is_array(enum moe_gguf_kind kind, uint64_t n, const void *raw, size_t raw_len)
{
    const unsigned char *p = raw;
    size_t left = raw_len;
    uint64_t bytes;

    if (kind == MOE_GGUF_ARRAY)
        return false;
    if (kind != MOE_GGUF_STRING)
        return moe_num_mul(n, moe_ggufkv_size(kind), &bytes) && bytes == raw_len;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t len = 0;

        if (left < 8)
            return false;
        for (int k = 0; k < 8; k++)
            len |= (uint64_t)p[k] << (8 * k);
        if (len > left - 8)
            return false;
        p += 8 + len;
        left -= 8 + (size_t)len;
    }
    return left == 0;
}

static int
cmp_str(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sort n names, taken from the array of pointers, and tell of one that comes twice. */
static int
no_twins(const char **names, size_t n, const char *what, struct moe_err *e)
{
    qsort(names, n, sizeof(*names), cmp_str);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s %s comes twice", what, names[i]);
    return 0;
}

static int
check_names(struct moe_ggufw *w, struct moe_err *e)
{
    size_t n = w->n_kv > w->n ? (size_t)w->n_kv : w->n, at = 0;
    const char **names;
    int rc;

    if ((names = malloc((n + 1) * sizeof(*names))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < w->n_kv; i++) {
        names[i] = w->keys.p + at;
        at += strlen(names[i]) + 1;
    }
    rc = no_twins(names, (size_t)w->n_kv, "key", e);
    for (size_t i = 0; i < w->n; i++)
        names[i] = w->tensors[i].name;
    if (rc == 0)
        rc = no_twins(names, w->n, "tensor", e);
    free(names);
    return rc;
}

/* Offsets depend on the alignment, which any key may have changed until now. */
static int
place(struct moe_ggufw *w, struct moe_err *e)
{
    uint64_t at = 0, bytes;

    for (size_t i = 0; i < w->n; i++) {
        struct tensor *t = &w->tensors[i];

        t->offset = at;
        if (!moe_ggml_bytes(t->type, t->ne, &bytes))
            return moe_err_set(e, MOE_EFORMAT, "tensor %s: type %" PRIu32
                " with rows of %" PRIu64 " cannot be stored", t->name, t->type, t->ne[0]);
        if (!moe_num_add(at, bytes, &at) || !moe_num_align(at, w->align, &at) || at > INT64_MAX)
            return moe_err_set(e, MOE_EFORMAT, "tensor %s: its end overflows", t->name);
    }
    w->data = at;
    return 0;
}

struct moe_ggufw *
moe_ggufw_new(void)
{
    struct moe_ggufw *w = calloc(1, sizeof(*w));

    if (w != NULL)
        w->align = MOE_GGUF_ALIGN;
    return w;
}

void
moe_ggufw_free(struct moe_ggufw *w)
{
    if (w == NULL)
        return;
    moe_buf_fini(&w->kv);
    moe_buf_fini(&w->keys);
    free(w->tensors);
    free(w);
}

void
moe_ggufw_int(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind, int64_t v)
{
    if (w->bad.code == 0 && !holds(kind, v))
        moe_err_set(&w->bad, MOE_EFORMAT, "key %s: %" PRId64 " is no %s", key, v,
            moe_ggufkv_kind_name(kind));
    if (strcmp(key, MOE_GGUF_ALIGN_KEY) == 0) {
        if (w->bad.code == 0 && (kind != MOE_GGUF_U32 || v < MOE_GGUF_MIN_ALIGN ||
            (uint64_t)v > MOE_GGUF_MAX_ALIGN || (v & (v - 1)) != 0))
            moe_err_set(&w->bad, MOE_EFORMAT, "key %s: %" PRId64 " is no alignment", key, v);
        else
            w->align = (uint64_t)v;
    }
    put_key(w, key, kind);
    put(&w->kv, (uint64_t)v, moe_ggufkv_size(kind));
}

void
moe_ggufw_real(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind, double v)
{
    uint64_t bits;
    uint32_t bits32;
    float f = (float)v;

    if (w->bad.code == 0 && kind != MOE_GGUF_F32 && kind != MOE_GGUF_F64)
        moe_err_set(&w->bad, MOE_EFORMAT, "key %s: %s is no kind of reals", key,
            moe_ggufkv_kind_name(kind));
    memcpy(&bits, &v, sizeof(bits));
    if (kind == MOE_GGUF_F32) {
        memcpy(&bits32, &f, sizeof(bits32));
        bits = bits32;
    }
    put_key(w, key, kind);
    put(&w->kv, bits, moe_ggufkv_size(kind));
}

void
moe_ggufw_bool(struct moe_ggufw *w, const char *key, bool v)
{
    put_key(w, key, MOE_GGUF_BOOL);
    put(&w->kv, v, 1);
}

void
moe_ggufw_str(struct moe_ggufw *w, const char *key, const char *p, size_t n)
{
    put_key(w, key, MOE_GGUF_STRING);
    put_str(&w->kv, p, n);
}

void
moe_ggufw_array(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind,
    uint64_t n, const void *raw, size_t raw_len)
{
    if (w->bad.code == 0 && !is_array(kind, n, raw, raw_len))
        moe_err_set(&w->bad, MOE_EFORMAT, "key %s: %zu bytes are no %" PRIu64 " of %s", key,
            raw_len, n, moe_ggufkv_kind_name(kind));
    put_key(w, key, MOE_GGUF_ARRAY);
    put(&w->kv, kind, 4);
    put(&w->kv, n, 8);
    moe_buf_add(&w->kv, raw, raw_len);
}

void
moe_ggufw_copy(struct moe_ggufw *w, const struct moe_gguf_kv *kv)
{
    int64_t v;

    if (kv->array) {
        moe_ggufw_array(w, kv->key, kv->kind, kv->n, kv->raw, kv->raw_len);
    } else if (moe_ggufkv_int(kv, &v)) {
        moe_ggufw_int(w, kv->key, kv->kind, v);
    } else {
        put_key(w, kv->key, kv->kind);
        moe_buf_add(&w->kv, kv->raw, kv->raw_len);
    }
}

void
moe_ggufw_raw_str(struct moe_buf *raw, const char *p, size_t n)
{
    put_str(raw, p, n);
}

void
moe_ggufw_tensor(struct moe_ggufw *w, const char *name, uint32_t type,
    int n_dims, const uint64_t *ne)
{
    size_t len = strlen(name);
    struct tensor *t;

    if (w->bad.code != 0)
        return;
    if (len == 0 || len > MOE_GGUF_MAX_NAME) {
        moe_err_set(&w->bad, MOE_EFORMAT, "tensor %s: its name has %zu bytes, not 1 to %d",
            name, len, MOE_GGUF_MAX_NAME);
        return;
    }
    if (n_dims < 0 || n_dims > MOE_GGML_DIMS) {
        moe_err_set(&w->bad, MOE_EFORMAT, "tensor %s has %d dimensions", name, n_dims);
        return;
    }
    if (w->n == w->cap) {
        size_t cap = w->cap == 0 ? 64 : 2 * w->cap;

        if ((t = realloc(w->tensors, cap * sizeof(*t))) == NULL) {
            moe_err_set(&w->bad, MOE_ENOMEM, "out of memory");
            return;
        }
        w->tensors = t;
        w->cap = cap;
    }
    t = &w->tensors[w->n++];
    *t = (struct tensor){ .type = type, .n_dims = n_dims, .ne = { 1, 1, 1, 1 } };
    memcpy(t->name, name, len + 1);
    for (int d = 0; d < n_dims; d++)
        t->ne[d] = ne[d];
}

int
moe_ggufw_emit(struct moe_ggufw *w, struct moe_buf *b, struct moe_err *e)
{
    size_t from = b->len;
    int rc;

    if (w->bad.code != 0)
        return moe_err_set(e, w->bad.code, "%s", w->bad.text);
    if (w->kv.bad || w->keys.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = check_names(w, e)) != 0 || (rc = place(w, e)) != 0)
        return rc;
    moe_buf_str(b, "GGUF");
    put(b, 3, 4);
    put(b, w->n, 8);
    put(b, w->n_kv, 8);
    moe_buf_add(b, w->kv.p, w->kv.len);
    for (size_t i = 0; i < w->n; i++) {
        const struct tensor *t = &w->tensors[i];

        put_str(b, t->name, strlen(t->name));
        put(b, (uint64_t)t->n_dims, 4);
        for (int d = 0; d < t->n_dims; d++)
            put(b, t->ne[d], 8);
        put(b, t->type, 4);
        put(b, t->offset, 8);
    }
    while (!b->bad && (b->len - from) % w->align != 0)
        moe_buf_byte(b, 0);
    if (b->bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (b->len - from > MOE_GGUF_MAX_HEADER)
        return moe_err_set(e, MOE_ELIMIT, "the header is larger than %" PRIu64 " bytes",
            MOE_GGUF_MAX_HEADER);
    return 0;
}

uint64_t
moe_ggufw_offset(const struct moe_ggufw *w, size_t i)
{
    return w->tensors[i].offset;
}

uint64_t
moe_ggufw_data(const struct moe_ggufw *w)
{
    return w->data;
}

uint64_t
moe_ggufw_alignment(const struct moe_ggufw *w)
{
    return w->align;
}
