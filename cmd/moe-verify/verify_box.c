/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the one view of two file formats. Reads no tensor.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-verify/verify_box.h"
#include "common/base/read.h"
#include "common/formats/ggml.h"
#include "common/formats/gguf.h"
#include "common/formats/safet.h"

static int
no_memory(const char *name, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
}

static int
make_room(struct verify_box *b, size_t n, const char *name, struct moe_err *e)
{
    b->t = calloc(n > 0 ? n : 1, sizeof(*b->t));
    b->by_name = calloc(n > 0 ? n : 1, sizeof(*b->by_name));
    if (b->t == NULL || b->by_name == NULL)
        return no_memory(name, e);
    b->n = n;
    return 0;
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct verify_tensor *t = ctx;

    return strcmp(t[*(const size_t *)x].name, t[*(const size_t *)y].name);
}

static void
sort_names(struct verify_box *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->by_name[i] = i;
    qsort_r(b->by_name, b->n, sizeof(*b->by_name), compare, b->t);
}

/* From the safetensors header that b has. */
static int
of_safet(struct verify_box *b, const char *name, struct moe_err *e)
{
    uint64_t data = moe_safet_data_at(b->safet);
    int rc = make_room(b, moe_safet_n(b->safet), name, e);

    if (rc != 0)
        return rc;
    for (size_t k = 0; k < b->n; k++) {
        const struct moe_tensor *t = moe_safet_at(b->safet, moe_safet_by_offset(b->safet, k));
        if (t->name_len == 0 || t->name_len != strlen(t->name))
            return moe_err_set(e, MOE_EUNSUP, "%s: %s: a list cannot hold this name", name,
                t->name);
        b->t[k] = (struct verify_tensor){ t->name, moe_dtype_name(t->dtype), t->shape, t->rank,
            data + t->begin, t->end - t->begin };
    }
    sort_names(b);
    return 0;
}

static int
of_gguf(struct verify_box *b, const char *name, struct moe_err *e)
{
    uint64_t data = moe_gguf_data_at(b->gguf);
    int rc = make_room(b, moe_gguf_n(b->gguf), name, e);

    if (rc != 0)
        return rc;
    for (size_t k = 0; k < b->n; k++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(b->gguf, k);
        b->t[k] = (struct verify_tensor){ t->name, moe_ggml_name(t->type), t->ne, t->n_dims,
            data + t->offset, t->bytes };
    }
    sort_names(b);
    return 0;
}

int
verify_box_open(struct verify_box *b, int fd, const char *name, struct moe_err *e)
{
    char magic[4];
    int rc = moe_read_at(fd, name, magic, sizeof(magic), 0, e);

    if (rc != 0)
        return rc;
    if (memcmp(magic, "GGUF", sizeof(magic)) == 0) {
        rc = moe_gguf_fd(fd, name, &b->gguf, e);
        rc = rc != 0 ? rc : of_gguf(b, name, e);
    } else {
        rc = moe_safet_fd(fd, name, &b->safet, e);
        rc = rc != 0 ? rc : of_safet(b, name, e);
    }
    if (rc != 0)
        verify_box_close(b);
    return rc;
}

int
verify_box_stream(struct verify_box *b, struct moe_stream *s, const char *name,
    struct moe_err *e)
{
    int rc = moe_safet_stream(s, name, &b->safet, e);

    if (rc == 0)
        rc = of_safet(b, name, e);
    if (rc != 0)
        verify_box_close(b);
    return rc;
}

void
verify_box_close(struct verify_box *b)
{
    free(b->t);
    free(b->by_name);
    moe_safet_free(b->safet);
    moe_gguf_free(b->gguf);
    *b = (struct verify_box)VERIFY_BOX_INIT;
}

const struct verify_tensor *
verify_box_find(const struct verify_box *b, const char *name)
{
    size_t lo = 0, hi = b->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct verify_tensor *t = &b->t[b->by_name[mid]];
        int c = strcmp(name, t->name);
        if (c == 0)
            return t;
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

void
verify_box_shape(struct moe_buf *b, const struct verify_tensor *t)
{
    moe_buf_byte(b, '[');
    for (int i = 0; i < t->rank; i++)
        moe_buf_fmt(b, i > 0 ? ",%llu" : "%llu", (unsigned long long)t->dims[i]);
    moe_buf_byte(b, ']');
}
