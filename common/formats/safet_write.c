/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text of a safetensors header as it is written. Does not write files.
 */
#include <string.h>

#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/formats/safet.h"

static void
write_meta(struct moe_jsonw *w, const char *const *meta)
{
    bool format = false;

    for (size_t i = 0; meta != NULL && meta[i] != NULL; i += 2)
        format = format || strcmp(meta[i], "format") == 0;
    moe_jsonw_key(w, "__metadata__");
    moe_jsonw_open(w, '{');
    if (!format) {
        moe_jsonw_key(w, "format");
        moe_jsonw_str(w, "pt", 2);
    }
    for (size_t i = 0; meta != NULL && meta[i] != NULL; i += 2) {
        moe_jsonw_key(w, meta[i]);
        moe_jsonw_str(w, meta[i + 1], strlen(meta[i + 1]));
    }
    moe_jsonw_close(w, '}');
}

/* One tensor at *at, which moves past it. */
static int
write_tensor(struct moe_jsonw *w, const struct moe_tensor *t, uint64_t *at, struct moe_err *e)
{
    size_t len = t->name_len > 0 ? t->name_len : strlen(t->name);
    uint64_t bytes, end;

    if (!moe_safet_bytes(t->dtype, t->shape, t->rank, &bytes) || !moe_num_add(*at, bytes, &end))
        return moe_err_set(e, MOE_EFORMAT, "tensor %s: its shape overflows or ends within a byte",
            t->name);
    if (memchr(t->name, '\0', len) != NULL)
        return moe_err_set(e, MOE_EFORMAT, "tensor %s: a NUL in its name is not written",
            t->name);
    moe_jsonw_key(w, t->name);
    moe_jsonw_open(w, '{');
    moe_jsonw_key(w, "dtype");
    moe_jsonw_str(w, moe_dtype_name(t->dtype), strlen(moe_dtype_name(t->dtype)));
    moe_jsonw_key(w, "shape");
    moe_jsonw_open(w, '[');
    for (int i = 0; i < t->rank; i++)
        moe_jsonw_uint(w, t->shape[i]);
    moe_jsonw_close(w, ']');
    moe_jsonw_key(w, "data_offsets");
    moe_jsonw_open(w, '[');
    moe_jsonw_uint(w, *at);
    moe_jsonw_uint(w, end);
    moe_jsonw_close(w, ']');
    moe_jsonw_close(w, '}');
    *at = end;
    return 0;
}

int
moe_safet_write(struct moe_buf *b, const struct moe_tensor *t, size_t n,
    const char *const *meta, size_t align, struct moe_err *e)
{
    struct moe_jsonw w = { b, false };
    struct moe_safet *back;
    size_t start = b->len, len;
    uint64_t at = 0;
    int rc;

    moe_buf_add(b, "\0\0\0\0\0\0\0", 8);
    moe_jsonw_open(&w, '{');
    write_meta(&w, meta);
    for (size_t i = 0; i < n; i++) {
        if ((rc = write_tensor(&w, &t[i], &at, e)) != 0)
            return rc;
        if (b->len - start > MOE_SAFET_MAX_HEADER)
            return moe_err_set(e, MOE_ELIMIT, "a header of %zu tensors is over %zu bytes", n,
                MOE_SAFET_MAX_HEADER);
    }
    moe_jsonw_close(&w, '}');
    while ((b->len - start) % align != 0 && !b->bad)
        moe_buf_byte(b, ' ');
    if (b->bad)
        return moe_err_set(e, MOE_ENOMEM, "header: out of memory");
    len = b->len - start - 8;
    for (int i = 0; i < 8; i++)
        b->p[start + (size_t)i] = (char)(unsigned char)((uint64_t)len >> 8 * i);
    rc = moe_safet_parse(b->p + start + 8, len, at, "header", &back, e);
    moe_safet_free(back);
    return rc;
}
