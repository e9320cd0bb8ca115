/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading pieces of stored matrices: which bytes of which part belong to
 * some rows. Decoding them is qmat.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_input.h"
#include "common/formats/ggml.h"

enum { DATA, SCALE, ZERO, INDEX, WIDE };

void *
quant_input_scratch(struct quant_scratch *w, int i, size_t n)
{
    if (n + 8 > w->cap[i]) {
        free(w->p[i]);
        w->p[i] = malloc(n + 8);
        w->cap[i] = w->p[i] != NULL ? n + 8 : 0;
    }
    return w->p[i];
}

void
quant_input_scratch_fini(struct quant_scratch *w)
{
    for (int i = 0; i < 5; i++)
        free(w->p[i]);
    memset(w, 0, sizeof(*w));
}

/* ---- Finding ------------------------------------------------------------------ */

static const struct moe_tensor *
find_tensor(void *ctx, const char *name)
{
    size_t i = moe_source_find(ctx, name);

    return i == SIZE_MAX ? NULL : moe_source_at(ctx, i);
}

#define TAKE(to, part, s) do { \
        (to).src = (part).t == NULL ? SIZE_MAX : moe_source_find(s, (part).t->name); \
        (to).at = (part).at; \
        (to).len = (part).len; \
    } while (0)

/* A small part: weight_shape, the divisor. */
static int
small(struct moe_source *s, const struct moe_qpart *p, void *to, size_t n, struct moe_err *e)
{
    if (p->len != n)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu bytes, not %zu",
            moe_source_path(s), p->t->name, (unsigned long long)p->len, n);
    return moe_source_read(s, moe_source_find(s, p->t->name), p->at, to, n, e);
}

static int
finish(struct moe_source *s, const struct moe_qparts *p, struct quant_input *in,
    struct moe_err *e)
{
    uint64_t shape[2];
    int rc;

    if (p->global.t != NULL && (rc = small(s, &p->global, &in->m.global, 4, e)) != 0)
        return rc;
    if (p->shape.t == NULL)
        return 0;
    if ((rc = small(s, &p->shape, shape, sizeof(shape), e)) != 0)
        return rc;
    /* One scale a row: the codes are padded to whole words, the shape tells how far. */
    if (in->m.group == 0 && shape[1] < in->m.cols &&
        (shape[1] * (unsigned)in->m.bits + 31) / 32 == (in->m.cols * (unsigned)in->m.bits) / 32)
        in->m.cols = shape[1];
    if (shape[0] != in->m.rows || shape[1] != in->m.cols)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu x %llu does not go with the"
            " codes", moe_source_path(s), p->shape.t->name, (unsigned long long)shape[0],
            (unsigned long long)shape[1]);
    return 0;
}

int
quant_input_find(struct moe_source *s, const struct moe_qscheme *scheme, const char *module,
    int64_t expert, struct quant_input *in, void (*used)(void *ctx, size_t tensor), void *ctx,
    struct moe_err *e)
{
    const struct moe_qparts_from from = { s, moe_source_path(s), find_tensor, NULL };
    struct moe_qparts p = { .data = { NULL, 0, 0 } };
    const struct moe_qpart *all[] = { &p.data, &p.scale, &p.zero, &p.g_idx, &p.global, &p.shape };
    int rc;

    *in = (struct quant_input){ .step = 1 };
    if ((rc = moe_qparts_find(scheme, &from, module, expert, &in->m, &p, e)) != 0 ||
        (rc = finish(s, &p, in, e)) != 0)
        return rc;
    TAKE(in->data, p.data, s);
    TAKE(in->scale, p.scale, s);
    TAKE(in->zero, p.zero, s);
    TAKE(in->g_idx, p.g_idx, s);
    in->rows = in->m.rows;
    in->cols = in->m.cols;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i]->t != NULL)
            used(ctx, moe_source_find(s, all[i]->t->name));
    }
    return 0;
}

void
quant_input_view(struct quant_input *in, bool transposed, uint64_t first, uint64_t step,
    uint64_t rows)
{
    in->transposed = transposed;
    in->first = first;
    in->step = step;
    in->rows = rows;
    in->cols = transposed ? in->m.rows : in->m.cols;
}

bool
quant_input_direct(const struct quant_input *in)
{
    return in->m.enc == MOE_ENC_PLAIN && !in->transposed && in->step == 1 &&
        (in->m.dtype == MOE_BF16 || in->m.dtype == MOE_F16 || in->m.dtype == MOE_F32);
}

/* ---- Reading ------------------------------------------------------------------ */

static bool
sideways(const struct quant_input *in)
{
    return in->m.enc == MOE_ENC_GPTQ || in->m.enc == MOE_ENC_AWQ;
}

/* Stored rows that begin together. */
static uint64_t
unit(const struct quant_input *in)
{
    if (sideways(in) || (in->m.enc == MOE_ENC_CT_PACK && !in->m.symmetric))
        return 32;
    return in->m.block_rows > 1 ? in->m.block_rows : 1;
}

uint64_t
quant_input_strip(const struct quant_input *in)
{
    return in->transposed ? 128 : unit(in);
}

/* Piece [off, off + len) of each of n stored rows of row_bytes, from row `row`. */
static int
gather(struct moe_source *s, size_t src, uint64_t at, uint64_t row, uint64_t n,
    uint64_t row_bytes, uint64_t off, uint64_t len, struct quant_scratch *w, int slot,
    const void **p, uint64_t *got, struct moe_err *e)
{
    unsigned char *to = quant_input_scratch(w, slot, (size_t)(n * len));
    int rc = 0;

    *p = to;
    *got = n * len;
    if (to == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    at += row * row_bytes + off;
    if (off == 0 && len == row_bytes)
        return n * len == 0 ? 0 : moe_source_read(s, src, at, to, (size_t)(n * len), e);
    for (uint64_t i = 0; rc == 0 && i < n; i++, at += row_bytes, to += len)
        rc = moe_source_read(s, src, at, to, (size_t)len, e);
    return rc;
}

/* Stored rows [lo, lo + n) of row-major parts, as a matrix of their own. */
static int
rows_of(struct moe_source *s, const struct quant_input *in, uint64_t lo, uint64_t n,
    struct quant_scratch *w, struct moe_qmat *m, struct moe_err *e)
{
    uint64_t block = m->block_rows, bits = (uint64_t)m->bits, rows = in->m.rows;
    bool fp8 = m->enc == MOE_ENC_CT_FP8 || m->enc == MOE_ENC_DS_FP8;
    uint64_t first = lo, count = n, all = rows;
    int rc;

    m->rows = n;
    if ((rc = gather(s, in->data.src, in->data.at, lo, n, in->data.len / rows, 0,
        in->data.len / rows, w, DATA, &m->data, &m->data_len, e)) != 0)
        return rc;
    if (in->scale.src == SIZE_MAX)
        return 0;
    if (fp8 && block == 0) {
        first = 0;
        count = all = 1;
    } else if (fp8) {
        first = lo / block;
        count = (n - 1) / block + 1;
        all = (rows - 1) / block + 1;
    }
    if ((rc = gather(s, in->scale.src, in->scale.at, first, count, in->scale.len / all, 0,
        in->scale.len / all, w, SCALE, &m->scale, &m->scale_len, e)) != 0 ||
        in->zero.src == SIZE_MAX)
        return rc;
    all = (rows * bits - 1) / 32 + 1;
    return gather(s, in->zero.src, in->zero.at, lo * bits / 32, (n * bits - 1) / 32 + 1,
        in->zero.len / all, 0, in->zero.len / all, w, ZERO, &m->zero, &m->zero_len, e);
}

/* The same of what GPTQ and AWQ store [in, out]: n outputs, a multiple of 32 or to the end. */
static int
columns_of(struct moe_source *s, const struct quant_input *in, uint64_t lo, uint64_t n,
    struct quant_scratch *w, struct moe_qmat *m, struct moe_err *e)
{
    uint64_t rows = in->m.rows, bits = (uint64_t)m->bits, groups;
    uint64_t scale_row = rows * moe_dtype_bits(m->scale_dtype) / 8;
    uint64_t data_row = m->enc == MOE_ENC_AWQ ? rows * bits / 8 : rows * 4;
    int rc;

    m->rows = n;
    groups = in->scale.len / scale_row;
    if ((rc = gather(s, in->data.src, in->data.at, 0, in->data.len / data_row, data_row,
        data_row * lo / rows, data_row * n / rows, w, DATA, &m->data, &m->data_len, e)) != 0 ||
        (rc = gather(s, in->scale.src, in->scale.at, 0, groups, scale_row, scale_row * lo / rows,
        scale_row * n / rows, w, SCALE, &m->scale, &m->scale_len, e)) != 0)
        return rc;
    if (in->zero.src != SIZE_MAX && (rc = gather(s, in->zero.src, in->zero.at, 0, groups,
        rows * bits / 8, lo * bits / 8, n * bits / 8, w, ZERO, &m->zero, &m->zero_len, e)) != 0)
        return rc;
    if (in->g_idx.src != SIZE_MAX) {
        const void *p;

        rc = gather(s, in->g_idx.src, in->g_idx.at, 0, 1, in->g_idx.len, 0, in->g_idx.len, w,
            INDEX, &p, &m->g_idx_len, e);
        m->g_idx = p;
    }
    return rc;
}

/* Columns [lo, lo + n) of a plain matrix stored [in, out], turned over by the caller. */
static int
strip_of(struct moe_source *s, const struct quant_input *in, uint64_t lo, uint64_t n,
    struct quant_scratch *w, struct moe_qmat *m, struct moe_err *e)
{
    uint64_t size = moe_dtype_bits(m->dtype) / 8;

    m->cols = n;
    return gather(s, in->data.src, in->data.at, 0, m->rows, in->m.cols * size, lo * size,
        n * size, w, DATA, &m->data, &m->data_len, e);
}

/* Which stored rows (columns) hold rows [row, row + n). */
static void
span(const struct quant_input *in, uint64_t row, uint64_t n, uint64_t *lo, uint64_t *count)
{
    uint64_t end = in->first + in->step * (row + n - 1) + 1, u = unit(in);

    *lo = in->first + in->step * row;
    *lo -= *lo % u;
    if (sideways(in) && end % u != 0)
        end = in->m.rows - end < u - end % u ? in->m.rows : end + u - end % u;
    *count = end - *lo;
}

int
quant_input_rows(struct moe_source *s, const struct quant_input *in, const char *name,
    uint64_t row, uint64_t n, struct quant_scratch *w, float *x, struct moe_err *e)
{
    struct moe_qmat m = in->m;
    uint64_t lo, count, at;
    float *wide = x;
    int rc;

    span(in, row, n, &lo, &count);
    rc = in->transposed ? strip_of(s, in, lo, count, w, &m, e) :
        sideways(in) ? columns_of(s, in, lo, count, w, &m, e) :
        rows_of(s, in, lo, count, w, &m, e);
    if (rc != 0 || (rc = moe_qmat_check(&m, name, e)) != 0)
        return rc;
    if (!in->transposed && in->step == 1 && count == n) {
        moe_qmat_rows(&m, 0, n, x);
        return 0;
    }
    if ((wide = quant_input_scratch(w, WIDE, (size_t)(m.rows * m.cols) * sizeof(*x))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    moe_qmat_rows(&m, 0, m.rows, wide);
    at = in->first + in->step * row - lo;
    for (uint64_t r = 0; r < n && !in->transposed; r++)
        memcpy(x + r * in->cols, wide + (at + r * in->step) * in->cols,
            (size_t)in->cols * sizeof(*x));
    for (uint64_t k = 0; k < in->cols && in->transposed; k++)
        for (uint64_t r = 0; r < n; r++)
            x[r * in->cols + k] = wide[k * count + at + r * in->step];
    return 0;
}

/* ---- The same grid ------------------------------------------------------------ */

static bool
half(enum moe_dtype t)
{
    return t == MOE_BF16 || t == MOE_F16;
}

static bool
same_int(const struct quant_input *in, struct quant_scheme *t)
{
    const struct moe_qmat *m = &in->m;
    uint64_t group = m->enc == MOE_ENC_CT_INT8 ? m->group : m->group % in->cols;

    if (m->enc != MOE_ENC_CT_PACK && m->enc != MOE_ENC_CT_INT8)
        return false;
    if (m->enc == MOE_ENC_CT_INT8 ? t->codec->bits != 8 : t->codec->bits != m->bits)
        return false;
    if (group != t->group % in->cols || !half(m->scale_dtype) ||
        (m->enc == MOE_ENC_CT_PACK && m->symmetric == t->asym))
        return false;
    t->scale = m->scale_dtype;
    return true;
}

bool
quant_input_same_grid(const struct quant_input *in, struct quant_scheme *t)
{
    const struct moe_qmat *m = &in->m;

    if (t->codec == NULL || in->transposed)
        return false;
    switch (t->codec->grid) {
    case QUANT_GRID_INT:
        return in->step == 1 && same_int(in, t);
    case QUANT_GRID_E2M1:
        if (t->codec->scale == QUANT_SCALE_E4M3)
            return m->enc == MOE_ENC_CT_NVFP4 && in->step == 1;
        return m->enc == MOE_ENC_CT_MXFP4 || m->enc == MOE_ENC_OSS_MXFP4;
    case QUANT_GRID_E4M3:
        if (t->codec->scale == QUANT_SCALE_E8M0)
            return m->enc == MOE_ENC_CT_MXFP8 && in->step == 1;
        if (t->codec->scale == QUANT_SCALE_F32)
            return m->enc == MOE_ENC_DS_FP8 && in->step == 1 && m->scale_dtype == MOE_F32 &&
                m->block_rows == 128 && m->group == 128;
        if (m->enc != MOE_ENC_CT_FP8 || in->step != 1 || !half(m->scale_dtype) ||
            m->block_rows != t->codec->rows || m->group != t->group)
            return false;
        t->scale = m->scale_dtype;
        return true;
    default:
        return false;
    }
}

void
quant_input_scales(const struct quant_input *in, const struct quant_scheme *t, uint64_t row,
    uint64_t n, const struct quant_scratch *w, unsigned char *scale, int8_t *zero)
{
    uint64_t lo, count, per_row = in->m.group == 0 ? 1 : (in->cols - 1) / in->m.group + 1;
    uint64_t size = moe_dtype_bits(in->m.scale_dtype) / 8, block = t->codec->rows;
    const unsigned char *from = w->p[SCALE];
    const uint32_t *z = w->p[ZERO];
    unsigned bits = (unsigned)in->m.bits;

    span(in, row, n, &lo, &count);
    if (block != 1) {
        memcpy(scale, from, (size_t)((block == 0 ? 1 : (n - 1) / block + 1) * per_row * size));
        return;
    }
    for (uint64_t r = 0; r < n; r++) {
        uint64_t at = in->first + in->step * (row + r) - lo;

        memcpy(scale + r * per_row * size, from + at * per_row * size, (size_t)(per_row * size));
        for (uint64_t g = 0; t->asym && g < per_row; g++)
            zero[r * per_row + g] = (int8_t)((int)(z[at * bits / 32 * per_row + g] >>
                (at * bits % 32) & ((1u << bits) - 1)) - (1 << (bits - 1)));
    }
}
