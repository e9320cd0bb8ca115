/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the arithmetic of the schemes: scales as compressed-tensors computes
 * them, codes by division in F32, and how both are stored. Which scale a search
 * finds is quant_search.c's.
 */
#include <math.h>
#include <string.h>

#include "cmd/moe-quant/quant_encode.h"
#include "cmd/moe-quant/quant_search.h"
#include "kernels/kernels.h"

#define CHUNK 4096              /* values coded at a time, a multiple of every group */
#define E4M3_MAX 448.0f
#define E2M1_MAX 6.0f

static const float fp4[16] = {
    0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6
};

/* ---- Scales ------------------------------------------------------------------- */

float
quant_encode_widen(uint16_t v, enum moe_dtype t)
{
    return t == MOE_F16 ? moe_dtype_f16_f32(v) : moe_dtype_bf16_f32(v);
}

float
quant_encode_step(float x, enum moe_dtype t)
{
    return t == MOE_F16 ? moe_dtype_f16_f32(moe_dtype_f32_f16(x)) :
        moe_dtype_bf16_f32(moe_dtype_f32_bf16(x));
}

/* Never NaN, infinite or 0. */
uint16_t
quant_encode_round(float scale, enum moe_dtype t)
{
    uint16_t b = t == MOE_F16 ? moe_dtype_f32_f16(scale) : moe_dtype_f32_bf16(scale);
    uint16_t top = t == MOE_F16 ? 0x7bff : 0x7f7f;

    if ((b & 0x7fff) == 0)
        return t == MOE_F16 ? 0x1400 : 0x3c00;      /* 2^-10, 2^-7 */
    return (b & 0x7fff) > top ? (uint16_t)((b & 0x8000) | top) : b;
}

/*
 * E8M0 by compressed-tensors' rule: a mantissa of 1.75 and more counts as the
 * next power of two. top: exponent of the largest code. 255 would be NaN.
 */
static uint8_t
power_of_two(float most, int top)
{
    uint32_t up = ((uint32_t)moe_dtype_f32_bf16(most) + 32) >> 7;   /* biased exponent */
    int e;

    if (up > 254)               /* the next power is over the largest float: clip instead */
        up = 254;
    e = (int)up - top;
    return up == 0 || e < 0 ? 0 : e > 254 ? 254 : (uint8_t)e;
}

float
quant_encode_global(float range)
{
    float least = 0x1p-126f, inv;

    inv = quant_encode_step(1 / (range > least ? range : least), MOE_BF16);
    inv = quant_encode_step(inv * (E4M3_MAX * E2M1_MAX), MOE_BF16);
    if (!isfinite(inv))
        return 1;
    while (!isfinite(E4M3_MAX / inv * E2M1_MAX))    /* the largest code must not decode to it */
        inv = quant_encode_step(inv * 1.01f, MOE_BF16);
    return inv;
}

static uint8_t
nv_scale(float most, float global)
{
    float s = global * quant_encode_step(most / E2M1_MAX, MOE_BF16);
    uint8_t k = moe_dtype_f32_e4m3(s < E4M3_MAX ? s : E4M3_MAX);

    return k == 0 ? 0x20 : k;
}

size_t
quant_encode_scale(const struct quant_scheme *s)
{
    switch (s->codec->scale) {
    case QUANT_SCALE_NONE: return 0;
    case QUANT_SCALE_FLOAT: return 2;
    case QUANT_SCALE_F32: return 4;
    default: return 1;
    }
}

size_t
quant_encode_row(const struct quant_scheme *s, uint64_t cols)
{
    struct quant_part p[QUANT_SCHEME_PARTS];

    (void)quant_scheme_parts(s, 1, cols, p);
    return (size_t)p[0].bytes;
}

float
quant_encode_scale_at(const struct quant_encode *w, size_t i)
{
    uint16_t half;
    float f;

    switch (w->s->codec->scale) {
    case QUANT_SCALE_E8M0: return moe_dtype_e8m0_f32(w->scale[i]);
    case QUANT_SCALE_E4M3:
        return moe_dtype_e4m3_f32(w->scale[i]) / w->global;
    case QUANT_SCALE_F32:
        memcpy(&f, w->scale + 4 * i, sizeof(f));
        return f;
    default:
        memcpy(&half, w->scale + 2 * i, sizeof(half));
        return quant_encode_widen(half, w->s->scale);
    }
}

/* What DeepSeek's form multiplies with: in two steps, as PyTorch divides a number by a tensor. */
static float
times_of(float most)
{
    return 1 / most * E4M3_MAX;
}

/* Choose scale i (zero point i) for n values with the range mm; searches look at x. */
static void
choose(struct quant_encode *w, size_t i, const float *x, const float *h, size_t n,
    const float mm[2])
{
    const struct quant_codec *c = w->s->codec;
    float most = fmaxf(-mm[0], mm[1]) + 0.0f, f;    /* not -0 */
    bool search = w->s->search != QUANT_SEARCH_RTN && most > 0 && x != NULL;
    uint16_t b;
    int zero = 0;

    switch (c->scale) {
    case QUANT_SCALE_E8M0:
        w->scale[i] = power_of_two(most, c->grid == QUANT_GRID_E2M1 ? 2 : 8);
        if (search && c->grid == QUANT_GRID_E2M1 && w->scale[i] > 0)
            w->scale[i] = quant_search_mxfp4(x, h, n, w->scale[i]);
        return;
    case QUANT_SCALE_E4M3:
        w->scale[i] = nv_scale(most, w->global);
        if (search)
            w->scale[i] = quant_search_nvfp4(w->s, x, h, n, w->global, w->scale[i]);
        return;
    case QUANT_SCALE_F32:       /* kept as what codes are multiplied with */
        f = most > 0 ? 1 / times_of(most) : 1;
        f = isfinite(f) && f > 0 ? f : 1;
        memcpy(w->scale + 4 * i, &f, sizeof(f));
        return;
    default:
        break;
    }
    if (c->grid == QUANT_GRID_E4M3) {
        b = quant_encode_round(most / E4M3_MAX, w->s->scale);
    } else if (w->s->asym) {
        b = quant_search_range(w->s, mm[0], mm[1], &zero);
        if (search)
            b = quant_search_asym(w->s, x, h, n, mm, b, &zero);
        w->zero[i] = (int8_t)zero;
    } else {
        b = quant_encode_round(most / ((float)(1 << (c->bits - 1)) - 0.5f), w->s->scale);
        if (search)
            b = quant_search_int(w->s, x, h, n, mm, b);
    }
    memcpy(w->scale + 2 * i, &b, sizeof(b));
}

/* ---- Codes -------------------------------------------------------------------- */

/* Two codes a byte, the even one low; `at` is even. */
static void
pack4(unsigned char *row, uint64_t at, const uint8_t *q, size_t n)
{
    unsigned char *p = row + at / 2;

    for (size_t i = 0; i + 1 < n; i += 2)
        p[i / 2] = (unsigned char)(q[i] | q[i + 1] << 4);
    if (n % 2 != 0)
        p[n / 2] = q[n - 1];
}

static void
e4m3_codes(uint8_t *q, const float *x, size_t n, float scale, float times, bool given)
{
    float zero = given ? -0.0f : 0.0f;  /* as if a zero point of 0 were added: -0 becomes 0 */
    float y[CHUNK];

    for (size_t i = 0; i < n; i++) {
        float v = times != 0 ? x[i] * times : x[i] / scale;

        v = v > E4M3_MAX ? E4M3_MAX : v;
        v = v < -E4M3_MAX ? -E4M3_MAX : v;
        y[i] = v + zero;
    }
    moe_kernels()->f32_e4m3(q, y, n);
}

static void
count_clipped(struct quant_stats *t, const float *x, size_t n, float scale, float lo, float hi)
{
    uint64_t k = 0;

    for (size_t i = 0; i < n; i++) {
        float y = x[i] / scale;

        k += (uint64_t)(y >= hi) + (uint64_t)(y < lo);
    }
    t->clipped += k;
}

/*
 * Columns [at, at + n) of row r by one scale; n <= CHUNK. times: the inverse of
 * the scale where that is what values are multiplied with, else 0.
 */
static void
code(struct quant_encode *w, uint64_t r, uint64_t at, size_t n, float scale, float times, int zero)
{
    const struct quant_codec *c = w->s->codec;
    const struct moe_kernels *k = moe_kernels();
    const float *x = w->x + r * w->cols + at;
    unsigned char *row = w->data + r * quant_encode_row(w->s, w->cols);
    float *y = w->y != NULL ? w->y + r * w->cols + at : NULL;
    float half = (float)(1 << (c->bits - 1));
    uint8_t q[CHUNK];
    float z = (float)zero;

    switch (c->grid) {
    case QUANT_GRID_INT:
        k->codes_int((int8_t *)q, x, n, scale, z, -half, half - 1);
        for (size_t i = 0; y != NULL && i < n; i++)
            y[i] = (float)((int8_t)q[i] - zero) * scale;
        if (y != NULL)
            count_clipped(&w->stats, x, n, scale, -half - 0.5f - z, half - 0.5f - z);
        for (size_t i = 0; c->packed && i < n; i++)
            q[i] = (uint8_t)(q[i] + (1u << (c->bits - 1)));
        break;
    case QUANT_GRID_E2M1:
        k->codes_e2m1(q, x, n, scale);
        for (size_t i = 0; w->given && i < n; i++)
            q[i] |= (uint8_t)(x[i] == 0 && signbit(x[i]) ? 8 : 0);
        for (size_t i = 0; y != NULL && i < n; i++)
            y[i] = fp4[q[i]] * scale;
        if (y != NULL)
            count_clipped(&w->stats, x, n, scale, -E2M1_MAX, nextafterf(E2M1_MAX, 7));
        break;
    default:
        e4m3_codes(q, x, n, scale, times, w->given);
        if (y != NULL) {
            k->e4m3_f32(y, q, n);
            for (size_t i = 0; i < n; i++)
                y[i] *= scale;
            count_clipped(&w->stats, x, n, scale, -E4M3_MAX, nextafterf(E4M3_MAX, 449));
        }
    }
    if (c->bits == 4)
        pack4(row, at, q, n);
    else
        memcpy(row + at, q, n);
}

/* ---- Groups ------------------------------------------------------------------- */

static void
count_group(struct quant_encode *w, float scale, bool zeros)
{
    struct quant_stats *t = &w->stats;
    float a = fabsf(scale);

    t->scale_min = t->groups == 0 || a < t->scale_min ? a : t->scale_min;
    t->scale_max = a > t->scale_max ? a : t->scale_max;
    t->groups++;
    t->zero_groups += zeros;
}

/* Rows with scales of their own. */
static void
by_rows(struct quant_encode *w)
{
    uint64_t g = w->s->group == 0 ? w->cols : w->s->group, per_row = w->cols / g;
    const struct moe_kernels *k = moe_kernels();

    for (uint64_t r = 0; r < w->rows; r++) {
        for (uint64_t i = 0; i < per_row; i++) {
            const float *x = w->x + r * w->cols + i * g;
            size_t at = (size_t)(r * per_row + i);
            float mm[2] = { 0, 0 }, s;

            if (!w->given || w->y != NULL)
                (void)k->range_f32(mm, x, (size_t)g);
            if (!w->given)
                choose(w, at, x, w->h != NULL ? w->h + i * g : NULL, (size_t)g, mm);
            s = quant_encode_scale_at(w, at);
            for (uint64_t c = 0; c < g; c += CHUNK)
                code(w, r, i * g + c, (size_t)(g - c < CHUNK ? g - c : CHUNK), s, 0,
                    w->s->asym ? w->zero[at] : 0);
            if (w->y != NULL)
                count_group(w, s, mm[0] == 0 && mm[1] == 0);
        }
    }
}

/* Rows that share scales: blocks, ragged at the edges, or the whole matrix. */
static void
by_blocks(struct quant_encode *w)
{
    uint64_t tall = w->s->codec->rows != 0 ? w->s->codec->rows : w->rows;
    uint64_t wide = w->s->group != 0 ? w->s->group : w->cols, per_row = w->cols / wide;
    const struct moe_kernels *k = moe_kernels();

    per_row += w->cols % wide != 0;
    for (uint64_t r = 0; r < w->rows; r += tall) {
        uint64_t rows = w->rows - r < tall ? w->rows - r : tall;

        for (uint64_t i = 0; i < per_row; i++) {
            uint64_t n = w->cols - i * wide < wide ? w->cols - i * wide : wide;
            size_t at = (size_t)(r / tall * per_row + i);
            float mm[2] = { -w->range, w->range }, m[2], s, times = 0;

            for (uint64_t j = r; w->s->codec->rows != 0 && j < r + rows; j++) {
                (void)k->range_f32(m, w->x + j * w->cols + i * wide, (size_t)n);
                mm[0] = j == r ? m[0] : fminf(mm[0], m[0]);
                mm[1] = j == r ? m[1] : fmaxf(mm[1], m[1]);
            }
            if (!w->given)
                choose(w, at, NULL, NULL, 0, mm);
            s = quant_encode_scale_at(w, at);
            if (w->s->codec->scale == QUANT_SCALE_F32 && !w->given && s != 1)
                times = times_of(fmaxf(-mm[0], mm[1]));
            for (uint64_t j = r; j < r + rows; j++)
                for (uint64_t c = 0; c < n; c += CHUNK)
                    code(w, j, i * wide + c, (size_t)(n - c < CHUNK ? n - c : CHUNK), s, times,
                        0);
            if (w->y != NULL)
                count_group(w, s, mm[0] == 0 && mm[1] == 0);
        }
    }
}

static void
plain(struct quant_encode *w)
{
    size_t n = (size_t)(w->rows * w->cols);
    const struct moe_kernels *k = moe_kernels();

    switch (w->s->codec->dtype) {
    case MOE_BF16:
        k->f32_bf16((uint16_t *)(void *)w->data, w->x, n);
        if (w->y != NULL)
            k->bf16_f32(w->y, (const uint16_t *)(const void *)w->data, n);
        break;
    case MOE_F16:
        k->f32_f16((uint16_t *)(void *)w->data, w->x, n);
        if (w->y != NULL)
            k->f16_f32(w->y, (const uint16_t *)(const void *)w->data, n);
        break;
    default:
        memcpy(w->data, w->x, n * sizeof(float));
        if (w->y != NULL)
            memcpy(w->y, w->x, n * sizeof(float));
    }
}

void
quant_encode_run(struct quant_encode *w)
{
    if (w->s->codec->grid == QUANT_GRID_PLAIN) {
        plain(w);
        return;
    }
    if (w->s->codec->scale == QUANT_SCALE_E4M3 && !w->given)
        w->global = quant_encode_global(w->range);
    /* Rows of codes end in whole words. */
    if (w->s->codec->dtype == MOE_I32 && w->cols * (uint64_t)w->s->codec->bits % 32 != 0)
        memset(w->data, 0, (size_t)w->rows * quant_encode_row(w->s, w->cols));
    if (w->s->codec->rows == 1)
        by_rows(w);
    else
        by_blocks(w);
}

void
quant_encode_zeros(uint32_t *out, const int8_t *zero, uint64_t rows, uint64_t groups, int bits)
{
    uint64_t words = rows * (uint64_t)bits / 32 + (rows * (uint64_t)bits % 32 != 0);
    unsigned per = 32u / (unsigned)bits;

    memset(out, 0, (size_t)(words * groups) * sizeof(*out));
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t g = 0; g < groups; g++)
            out[r / per * groups + g] |= (uint32_t)(zero[r * groups + g] + (1 << (bits - 1))) <<
                (r % per * (unsigned)bits);
    }
}

void
quant_encode_merge(struct quant_stats *a, const struct quant_stats *b)
{
    if (b->groups > 0) {
        a->scale_min = a->groups == 0 ? b->scale_min : fminf(a->scale_min, b->scale_min);
        a->scale_max = fmaxf(a->scale_max, b->scale_max);
    }
    a->xx += b->xx;
    a->yy += b->yy;
    a->ee += b->ee;
    a->wx += b->wx;
    a->we += b->we;
    a->max_err = fmax(a->max_err, b->max_err);
    a->values += b->values;
    a->groups += b->groups;
    a->zero_groups += b->zero_groups;
    a->clipped += b->clipped;
    a->nan_zeroed += b->nan_zeroed;
}
