/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the packed layout: where each code, scale, zero point and bias of a
 * block goes, and the sizes of records. moe-packed(5) is its description. Does not compute with it
 * (kernels) and reads no file.
 */
#include <inttypes.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/packed.h"
#include "kernels/kernels.h"

#define ROWS MOE_PACKED_ROWS
#define UNIT MOE_PACKED_UNIT

/* Columns that one unit of 64 bytes holds. */
static uint64_t
unit_cols(enum moe_packed_kind kind)
{
    switch (kind) {
    case MOE_PACKED_I4:
    case MOE_PACKED_E2M1:
        return 8;
    case MOE_PACKED_BF16:
        return 2;
    default:
        return 4;
    }
}

/* The code that q = 0 is stored as. */
static unsigned
offset_of(enum moe_packed_kind kind)
{
    return kind == MOE_PACKED_I4 ? 8 : 128;
}

/* Bytes of the bias of a block. */
static uint64_t
bias_bytes(const struct moe_packed *m)
{
    return m->bias ? ROWS * sizeof(float) : 0;
}

static uint64_t
scale_size(const struct moe_packed *m)
{
    return m->scale_dtype == MOE_F32 ? 4 : 2;
}

/* Bytes of the scales and zero points of n groups, padded. */
static uint64_t
scale_bytes(const struct moe_packed *m, uint64_t n)
{
    return (n * ROWS * (scale_size(m) + m->zeros) + UNIT - 1) / UNIT * UNIT;
}

static uint64_t
step_cols(const struct moe_packed *m, uint64_t k)
{
    return m->cols - k < MOE_PACKED_COLS ? m->cols - k : MOE_PACKED_COLS;
}

/* Bytes of the whole step at column k. */
static uint64_t
step_bytes(const struct moe_packed *m, uint64_t k)
{
    uint64_t cols = step_cols(m, k);

    return scale_bytes(m, cols / m->group) + cols / unit_cols(m->kind) * UNIT;
}

/* Rows of block b that the matrix has. */
static unsigned
true_rows(const struct moe_packed *m, uint64_t b)
{
    uint64_t left = m->rows - b * ROWS;

    return left < ROWS ? (unsigned)left : ROWS;
}

static uint32_t
word(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void
put_word(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
    p[2] = (unsigned char)(v >> 16);
    p[3] = (unsigned char)(v >> 24);
}

/* Four nibbles of the low 16 bits, one to a byte. */
static uint32_t
spread(uint32_t v)
{
    v = (v | v << 8) & 0x00ff00ff;
    return (v | v << 4) & 0x0f0f0f0f;
}

/* ---- Scales, zero points, bias -------------------------------------------------- */

/*
 * Scales of the step at column k; scales [rows][cols / group] as bytes. The zero
 * points beside them become 0. Returns their end.
 */
static unsigned char *
put_scales(const struct moe_packed *m, uint64_t b, const unsigned char *scales, uint64_t k,
    unsigned char *to)
{
    uint64_t groups = step_cols(m, k) / m->group, per_row = m->cols / m->group;
    unsigned rows = true_rows(m, b);

    memset(to, 0, scale_bytes(m, groups));
    if (m->zeros)
        memset(to + groups * ROWS * scale_size(m), (int)offset_of(m->kind), groups * ROWS);
    for (unsigned r = 0; r < rows; r++) {
        const unsigned char *from = scales + 2 * ((b * ROWS + r) * per_row + k / m->group);

        for (uint64_t g = 0; g < groups; g++)
            memcpy(to + 2 * (g * ROWS + r), from + 2 * g, 2);
    }
    return to + scale_bytes(m, groups);
}

static const unsigned char *
get_scales(const struct moe_packed *m, uint64_t b, uint16_t *scales, uint64_t k,
    const unsigned char *from)
{
    uint64_t groups = step_cols(m, k) / m->group, per_row = m->cols / m->group;

    for (unsigned r = 0; r < true_rows(m, b); r++)
        for (uint64_t g = 0; g < groups; g++)
            memcpy(&scales[(b * ROWS + r) * per_row + k / m->group + g],
                from + 2 * (g * ROWS + r), 2);
    return from + scale_bytes(m, groups);
}

/* Zero points of the step at `to`, from those of pack-quantized: codes that run down the rows. */
static void
put_zero_words(const struct moe_packed *m, uint64_t b, const unsigned char *from, uint64_t k,
    unsigned char *to)
{
    uint64_t groups = step_cols(m, k) / m->group, per_row = m->cols / m->group;
    unsigned bits = m->kind == MOE_PACKED_I4 ? 4 : 8, rows = true_rows(m, b);

    to += groups * ROWS * scale_size(m);
    from += 4 * (b * ROWS * bits / 32 * per_row + k / m->group);
    for (uint64_t g = 0; g < groups; g++, to += ROWS, from += 4)
        for (unsigned r = 0; r < rows; r++)
            to[r] = (unsigned char)(word(from + r * bits / 32 * 4 * per_row) >> r * bits % 32 &
                ((1u << bits) - 1));
}

void
moe_packed_zeros(const struct moe_packed *m, uint64_t b, const int8_t *zeros, void *to)
{
    uint64_t per_row = m->cols / m->group;
    unsigned char *p = (unsigned char *)to + bias_bytes(m);

    for (uint64_t k = 0; k < m->cols; p += step_bytes(m, k), k += MOE_PACKED_COLS) {
        uint64_t groups = step_cols(m, k) / m->group;

        for (unsigned r = 0; r < true_rows(m, b); r++)
            for (uint64_t g = 0; g < groups; g++)
                p[groups * ROWS * scale_size(m) + g * ROWS + r] =
                    (unsigned char)((int)offset_of(m->kind) +
                    zeros[(b * ROWS + r) * per_row + k / m->group + g]);
    }
}

void
moe_packed_unzeros(const struct moe_packed *m, uint64_t b, const void *from, int8_t *zeros)
{
    uint64_t per_row = m->cols / m->group;
    const unsigned char *p = (const unsigned char *)from + bias_bytes(m);

    for (uint64_t k = 0; k < m->cols; p += step_bytes(m, k), k += MOE_PACKED_COLS) {
        uint64_t groups = step_cols(m, k) / m->group;

        for (unsigned r = 0; r < true_rows(m, b); r++)
            for (uint64_t g = 0; g < groups; g++)
                zeros[(b * ROWS + r) * per_row + k / m->group + g] = (int8_t)(
                    p[groups * ROWS * scale_size(m) + g * ROWS + r] - (int)offset_of(m->kind));
    }
}

void
moe_packed_bias(const struct moe_packed *m, uint64_t b, const float *bias, void *to)
{
    for (unsigned r = 0; r < true_rows(m, b); r++) {
        uint32_t v;

        memcpy(&v, &bias[b * ROWS + r], sizeof(v));
        put_word((unsigned char *)to + 4 * r, v);
    }
}

void
moe_packed_unbias(const struct moe_packed *m, uint64_t b, const void *from, float *bias)
{
    for (unsigned r = 0; r < true_rows(m, b); r++) {
        uint32_t v = word((const unsigned char *)from + 4 * r);

        memcpy(&bias[b * ROWS + r], &v, sizeof(v));
    }
}

void *
moe_packed_begin(const struct moe_packed *m, void *to)
{
    memset(to, 0, bias_bytes(m));
    return (unsigned char *)to + bias_bytes(m);
}

/* ---- Steps ---------------------------------------------------------------------- */

struct moe_blocks
moe_packed_form(const struct moe_packed *m)
{
    return (struct moe_blocks){
        .codes = m->kind == MOE_PACKED_I4 ? MOE_CODES_I4 : m->kind == MOE_PACKED_I8 ?
            MOE_CODES_I8 : m->kind == MOE_PACKED_E2M1 ? MOE_CODES_E2M1 : MOE_CODES_E4M3,
        .scale = m->scale_dtype == MOE_F32 ? MOE_SCALE_F32 : m->scale_dtype == MOE_F16 ?
            MOE_SCALE_F16 : MOE_SCALE_BF16,
        .zeros = m->zeros, .head = bias_bytes(m), .cols = m->cols, .group = m->group };
}

/* One unit of the codes from column i of the step on. */
static void
put_unit(enum moe_packed_kind kind, const struct moe_packed_step *s, uint64_t i,
    unsigned char *to)
{
    for (unsigned r = 0; r < ROWS; r++) {
        const uint8_t *c = &s->code[r][i];

        for (unsigned j = 0; j < 4; j++) {
            if (kind == MOE_PACKED_E4M3)
                to[j * ROWS + r] = c[j];
            else if (unit_cols(kind) == 8)
                to[4 * r + j] = (unsigned char)(c[j] | c[j + 4] << 4);
            else
                to[4 * r + j] = c[j];
        }
    }
}

void *
moe_packed_put(const struct moe_packed *m, uint64_t k, const struct moe_packed_step *s, void *to)
{
    uint64_t cols = step_cols(m, k), groups = cols / m->group, size = scale_size(m);
    unsigned char *p = to;

    memset(p, 0, scale_bytes(m, groups));
    for (uint64_t g = 0; g < groups; g++)
        for (unsigned r = 0; r < ROWS; r++) {
            unsigned char raw[4];

            put_word(raw, s->scale[r][g]);
            memcpy(p + size * (g * ROWS + r), raw, size);
            if (m->zeros)
                p[groups * ROWS * size + g * ROWS + r] = s->zero[r][g];
        }
    p += scale_bytes(m, groups);
    for (uint64_t i = 0; i < cols; i += unit_cols(m->kind), p += UNIT)
        put_unit(m->kind, s, i, p);
    return p;
}

/* ---- Blocks --------------------------------------------------------------------- */

/* The 4 bytes of a row in a unit, from its codes. */
static uint32_t
unit_of(enum moe_packed_kind kind, const int8_t *q)
{
    uint32_t v = 0;

    for (unsigned i = 0; i < 4; i++) {
        if (kind == MOE_PACKED_I4)
            v |= (uint32_t)((q[i] + 8) | (q[i + 4] + 8) << 4) << (8 * i);
        else
            v |= (uint32_t)(q[i] + 128) << (8 * i);
    }
    return v;
}

/* The same from words of pack-quantized: offset codes, the first column lowest. */
static void
put_words(const struct moe_packed *m, uint64_t b, const unsigned char *from, uint64_t k,
    uint64_t cols, unsigned char *to)
{
    bool i4 = m->kind == MOE_PACKED_I4;
    uint64_t row_bytes = i4 ? m->cols / 2 : m->cols, units = cols / unit_cols(m->kind);
    unsigned rows = true_rows(m, b);

    from += b * ROWS * row_bytes + (i4 ? k / 2 : k);
    for (uint64_t u = 0; u < units; u++, to += UNIT, from += 4) {
        for (unsigned r = 0; r < rows; r++) {
            uint32_t w = word(from + r * row_bytes);

            put_word(to + 4 * r, i4 ? spread(w & 0xffff) | spread(w >> 16) << 4 : w);
        }
        for (unsigned r = rows; r < ROWS; r++)
            put_word(to + 4 * r, i4 ? 0x88888888 : 0x80808080);
    }
}

void
moe_packed_block(const struct moe_packed *m, uint64_t b, const int8_t *codes,
    const uint16_t *scales, void *to)
{
    static const int8_t zeros[8];
    uint64_t each = unit_cols(m->kind);
    unsigned rows = true_rows(m, b);
    unsigned char *p = moe_packed_begin(m, to);

    for (uint64_t k = 0; k < m->cols; k += MOE_PACKED_COLS) {
        uint64_t end = k + step_cols(m, k);

        p = put_scales(m, b, (const unsigned char *)scales, k, p);
        for (uint64_t i = k; i < end; i += each, p += UNIT)
            for (unsigned r = 0; r < ROWS; r++)
                put_word(p + 4 * r, unit_of(m->kind,
                    r < rows ? codes + (b * ROWS + r) * m->cols + i : zeros));
    }
}

void
moe_packed_block_bf16(const struct moe_packed *m, uint64_t b, const uint16_t *w, void *to)
{
    unsigned rows = true_rows(m, b);
    unsigned char *p = moe_packed_begin(m, to);

    for (uint64_t k = 0; k < m->cols; k += 2, p += UNIT) {
        for (unsigned r = 0; r < rows; r++)
            memcpy(p + 4 * r, w + (b * ROWS + r) * m->cols + k, 4);
        memset(p + (size_t)4 * rows, 0, (size_t)4 * (ROWS - rows));
    }
}

void
moe_packed_unblock(const struct moe_packed *m, uint64_t b, const void *from,
    int8_t *codes, uint16_t *scales)
{
    uint64_t each = unit_cols(m->kind);
    const unsigned char *p = (const unsigned char *)from + bias_bytes(m);

    for (uint64_t k = 0; k < m->cols; k += MOE_PACKED_COLS) {
        uint64_t end = k + step_cols(m, k);

        p = get_scales(m, b, scales, k, p);
        for (uint64_t i = k; i < end; i += each, p += UNIT)
            for (unsigned r = 0; r < true_rows(m, b); r++)
                for (unsigned j = 0; j < 4; j++) {
                    int8_t *q = codes + (b * ROWS + r) * m->cols + i + j;

                    if (m->kind == MOE_PACKED_I4) {
                        q[0] = (int8_t)((p[4 * r + j] & 15) - 8);
                        q[4] = (int8_t)((p[4 * r + j] >> 4) - 8);
                    } else {
                        q[0] = (int8_t)(p[4 * r + j] - 128);
                    }
                }
    }
}

void
moe_packed_unblock_bf16(const struct moe_packed *m, uint64_t b, const void *from, uint16_t *w)
{
    const unsigned char *p = (const unsigned char *)from + bias_bytes(m);

    for (uint64_t k = 0; k < m->cols; k += 2, p += UNIT)
        for (unsigned r = 0; r < true_rows(m, b); r++)
            memcpy(w + (b * ROWS + r) * m->cols + k, p + 4 * r, 4);
}

bool
moe_packed_of(const struct moe_qmat *q, struct moe_packed *m)
{
    uint64_t bytes;

    if (q->enc != MOE_ENC_CT_PACK || (q->bits != 4 && q->bits != 8) || q->g_idx != NULL ||
        (q->scale_dtype != MOE_BF16 && q->scale_dtype != MOE_F16))
        return false;
    *m = (struct moe_packed){ .kind = q->bits == 4 ? MOE_PACKED_I4 : MOE_PACKED_I8,
        .scale_dtype = q->scale_dtype, .rows = q->rows, .cols = q->cols, .group = q->group,
        .zeros = !q->symmetric };
    return moe_packed_block_bytes(m, &bytes);
}

void
moe_packed_from_ct(const struct moe_packed *m, uint64_t b, const struct moe_qmat *q, void *to)
{
    unsigned char *p = moe_packed_begin(m, to);

    for (uint64_t k = 0; k < m->cols; k += MOE_PACKED_COLS) {
        uint64_t cols = step_cols(m, k);
        unsigned char *codes = put_scales(m, b, q->scale, k, p);

        if (m->zeros)
            put_zero_words(m, b, q->zero, k, p);
        put_words(m, b, q->data, k, cols, codes);
        p += step_bytes(m, k);
    }
}

/* ---- Sizes ------------------------------------------------------------------------ */

bool
moe_packed_block_bytes(const struct moe_packed *m, uint64_t *bytes)
{
    uint64_t scales = 0, codes, last = m->cols % MOE_PACKED_COLS;

    if (m->rows == 0 || m->cols == 0 || m->rows > INT64_MAX - ROWS)
        return false;
    if (m->kind != MOE_PACKED_BF16) {
        if (m->group != 32 && m->group != 64 && m->group != 128)
            return false;
        if (m->scale_dtype != MOE_BF16 && m->scale_dtype != MOE_F16 && m->scale_dtype != MOE_F32)
            return false;
        if (m->zeros && m->kind != MOE_PACKED_I4 && m->kind != MOE_PACKED_I8)
            return false;
        if (m->cols % m->group != 0)
            return false;
        if (!moe_num_mul(m->cols / MOE_PACKED_COLS, scale_bytes(m, MOE_PACKED_COLS / m->group),
            &scales) || !moe_num_add(scales, scale_bytes(m, last / m->group), &scales))
            return false;
    } else if (m->group != 0 || m->zeros || m->cols % 2 != 0) {
        return false;
    }
    return moe_num_mul(m->cols / unit_cols(m->kind), UNIT, &codes) &&
        moe_num_add(scales, codes, bytes) && moe_num_add(*bytes, bias_bytes(m), bytes);
}

uint64_t
moe_packed_blocks(const struct moe_packed *m)
{
    return (m->rows + ROWS - 1) / ROWS;
}

/* Bytes of all blocks, n times. */
static bool
matrix_bytes(const struct moe_packed *m, uint64_t n, uint64_t *block, uint64_t *bytes)
{
    return moe_packed_block_bytes(m, block) &&
        moe_num_mul(*block, moe_packed_blocks(m), bytes) && moe_num_mul(*bytes, n, bytes);
}

/* A record of that much: room for the trailer, then whole pages. */
static bool
whole_pages(uint64_t payload, uint64_t *bytes)
{
    return moe_num_add(payload, 4, bytes) && moe_num_align(*bytes, MOE_PACKED_ALIGN, bytes) &&
        *bytes <= INT64_MAX;
}

int
moe_packed_expert_layout(const struct moe_packed *gate_up, const struct moe_packed *down,
    struct moe_packed_expert *out, struct moe_err *e)
{
    uint64_t more;

    *out = (struct moe_packed_expert){ .gate_up = *gate_up, .down = *down };
    if (down->rows != gate_up->cols || down->cols != gate_up->rows)
        return moe_err_set(e, MOE_EUNSUP, "%" PRIu64 " x %" PRIu64 " and %" PRIu64 " x %" PRIu64
            " are not the two halves of an expert", gate_up->rows, gate_up->cols, down->rows,
            down->cols);
    if (!matrix_bytes(gate_up, 2, &out->gate_up_block, &out->down_at) ||
        !matrix_bytes(down, 1, &out->down_block, &more) ||
        !moe_num_add(out->down_at, more, &more) || !whole_pages(more, &out->bytes))
        return moe_err_set(e, MOE_EUNSUP, "an expert of %" PRIu64 " x %" PRIu64 " with groups of %"
            PRIu64 " and %" PRIu64 " cannot be packed", gate_up->rows, gate_up->cols,
            gate_up->group, down->group);
    out->crc_at = out->bytes - 4;
    return 0;
}

bool
moe_packed_record_bytes(const struct moe_packed *m, uint64_t *bytes)
{
    uint64_t block, payload;

    return matrix_bytes(m, 1, &block, &payload) && whole_pages(payload, bytes);
}

void
moe_packed_seal(void *record, uint64_t bytes)
{
    unsigned char *p = record;

    put_word(p + bytes - 4, moe_kernels()->crc32c(0, p, (size_t)bytes - 4));
}

bool
moe_packed_intact(const void *record, uint64_t bytes)
{
    const unsigned char *p = record;

    return word(p + bytes - 4) == moe_kernels()->crc32c(0, p, (size_t)bytes - 4);
}
