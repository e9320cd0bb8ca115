/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns decoding the block types of ggml, one function a type, in the order of
 * operations of ggml-quants.c (each product rounded, no fused multiply-add).
 */
#include <inttypes.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/ggml.h"
#include "common/formats/qmat_dec.h"

/* E2M1 doubled, so that every code is whole; scales are halved to match. */
static const signed char fp4x2[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static float
f16(const unsigned char *p)
{
    return moe_dtype_f16_f32((uint16_t)(p[0] | p[1] << 8));
}

/* d, 16 bytes: value j in the low nibble of byte j, j + 16 in the high one. */
static void
q4_0(const unsigned char *p, float *out)
{
    float d = f16(p);

    for (int j = 0; j < 16; j++) {
        out[j] = (float)((p[2 + j] & 15) - 8) * d;
        out[j + 16] = (float)((p[2 + j] >> 4) - 8) * d;
    }
}

/* d, 32 fifth bits, 16 bytes as in Q4_0. */
static void
q5_0(const unsigned char *p, float *out)
{
    float d = f16(p);
    uint32_t high = (uint32_t)p[2] | (uint32_t)p[3] << 8 | (uint32_t)p[4] << 16 |
        (uint32_t)p[5] << 24;

    for (int j = 0; j < 16; j++) {
        int lo = (p[6 + j] & 15) | (int)(high >> j & 1) << 4;
        int hi = (p[6 + j] >> 4) | (int)(high >> (j + 16) & 1) << 4;

        out[j] = (float)(lo - 16) * d;
        out[j + 16] = (float)(hi - 16) * d;
    }
}

static void
q8_0(const unsigned char *p, float *out)
{
    float d = f16(p);

    for (int j = 0; j < 32; j++)
        out[j] = (float)(int8_t)p[2 + j] * d;
}

/*
 * 16 bytes of 4-bit scale and minimum for 16 values each, 64 bytes of codes, d,
 * dmin. A half of 128 values takes 32 bytes; its quarters are bit pairs.
 */
static void
q2_k(const unsigned char *p, float *out)
{
    const unsigned char *scales = p, *q = p + 16;
    float d = f16(p + 80), dmin = f16(p + 82);

    for (int i = 0; i < 256; i++) {
        int sc = scales[i / 16], code = q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        float dl = d * (float)(sc & 15), ml = dmin * (float)(sc >> 4);

        out[i] = dl * (float)code - ml;
    }
}

/* 32 bytes of third bits (clear = minus 4), 64 of codes as in Q2_K, 12 of 6-bit scales, d. */
static void
q3_k(const unsigned char *p, float *out)
{
    const unsigned char *high = p, *q = p + 32, *s = p + 96;
    float d = f16(p + 108);

    for (int i = 0; i < 256; i++) {
        int k = i / 16, code = q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        /* Low nibbles of 16 scales in 8 bytes, their upper bit pairs in 4. */
        int sc = (k < 8 ? s[k] & 15 : s[k - 8] >> 4) | (s[8 + k % 4] >> (k / 4 * 2) & 3) << 4;

        if ((high[i % 32] >> (i / 32) & 1) == 0)
            code -= 4;
        out[i] = d * (float)(sc - 32) * (float)code;
    }
}

/* Scale and minimum, 6 bits each, of 32 values: sub-block j of 8 in 12 bytes. */
static void
k_scale(const unsigned char *s, int j, int *sc, int *min)
{
    if (j < 4) {
        *sc = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *sc = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

/* d, dmin, 12 bytes of scales, for Q5_K 32 of fifth bits, 128 of codes. */
static void
q45_k(const unsigned char *p, int bits, float *out)
{
    const unsigned char *high = p + 16, *q = bits == 5 ? p + 48 : p + 16;
    float d = f16(p), dmin = f16(p + 2);

    for (int j = 0; j < 8; j++) {
        int sc, min;
        float d1, m1;

        k_scale(p + 4, j, &sc, &min);
        d1 = d * (float)sc;
        m1 = dmin * (float)min;
        for (int l = 0; l < 32; l++) {
            int code = q[j / 2 * 32 + l] >> (j % 2 * 4) & 15;

            if (bits == 5)
                code |= (high[l] >> j & 1) << 4;
            out[32 * j + l] = d1 * (float)code - m1;
        }
    }
}

static void
q4_k(const unsigned char *p, float *out)
{
    q45_k(p, 4, out);
}

static void
q5_k(const unsigned char *p, float *out)
{
    q45_k(p, 5, out);
}

/* 128 bytes of low nibbles, 64 of upper bit pairs, 16 INT8 scales, d. */
static void
q6_k(const unsigned char *p, float *out)
{
    const signed char *scales = (const signed char *)p + 192;
    float d = f16(p + 208);

    for (int i = 0; i < 256; i++) {
        int half = i / 128, quarter = i % 128 / 32, l = i % 32;
        int low = p[64 * half + 32 * (quarter % 2) + l] >> (quarter / 2 * 4) & 15;
        int code = low | (p[128 + 32 * half + l] >> (2 * quarter) & 3) << 4;

        out[i] = d * (float)scales[i / 16] * (float)(code - 32);
    }
}

/* E8M0, 16 bytes as in Q4_0. 255 is 2^127 here, not NaN: ggml knows no NaN scale. */
static void
mxfp4(const unsigned char *p, float *out)
{
    uint32_t bits = p[0] < 2 ? 0x00200000u << p[0] : (uint32_t)(p[0] - 1) << 23;
    float d;

    memcpy(&d, &bits, sizeof(d));
    for (int j = 0; j < 16; j++) {
        out[j] = (float)fp4x2[p[1 + j] & 15] * d;
        out[j + 16] = (float)fp4x2[p[1 + j] >> 4] * d;
    }
}

/* 4 scales E4M3 without sign, then 8 bytes for each 16 values, nibbles as in Q4_0. */
static void
nvfp4(const unsigned char *p, float *out)
{
    for (int b = 0; b < 4; b++) {
        float d = (p[b] & 127) == 127 ? 0 : moe_dtype_e4m3_f32(p[b] & 127) * 0.5f;
        const unsigned char *q = p + 4 + 8 * b;

        for (int j = 0; j < 8; j++) {
            out[16 * b + j] = (float)fp4x2[q[j] & 15] * d;
            out[16 * b + j + 8] = (float)fp4x2[q[j] >> 4] * d;
        }
    }
}

static const struct {
    uint32_t type;
    void (*block)(const unsigned char *p, float *out);
} decoders[] = {
    { MOE_GGML_Q4_0, q4_0 }, { MOE_GGML_Q5_0, q5_0 }, { MOE_GGML_Q8_0, q8_0 },
    { MOE_GGML_Q2_K, q2_k }, { MOE_GGML_Q3_K, q3_k }, { MOE_GGML_Q4_K, q4_k },
    { MOE_GGML_Q5_K, q5_k }, { MOE_GGML_Q6_K, q6_k }, { MOE_GGML_MXFP4, mxfp4 },
    { MOE_GGML_NVFP4, nvfp4 },
};

/* Types without blocks are element types of ours. */
static bool
plain_type(uint32_t type, enum moe_dtype *t)
{
    switch (type) {
    case MOE_GGML_F32: *t = MOE_F32; return true;
    case MOE_GGML_F16: *t = MOE_F16; return true;
    case MOE_GGML_BF16: *t = MOE_BF16; return true;
    case MOE_GGML_F64: *t = MOE_F64; return true;
    default: return false;
    }
}

int
moe_qmat_ggml_check(const struct moe_qmat *m, const char *name, struct moe_err *e)
{
    uint64_t elements, bytes, len;
    bool known = false;
    enum moe_dtype t;

    for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
        known = known || decoders[i].type == m->ggml;
    if (!moe_ggml_block(m->ggml, &elements, &bytes) || (!known && !plain_type(m->ggml, &t)))
        return moe_err_set(e, MOE_EUNSUP, "%s: ggml type %" PRIu32 " (%s) is not decoded", name,
            m->ggml, moe_ggml_name(m->ggml) == NULL ? "unknown" : moe_ggml_name(m->ggml));
    if (m->cols % elements != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: rows of %" PRIu64 " are not whole blocks of %s",
            name, m->cols, moe_ggml_name(m->ggml));
    if (!moe_num_mul(m->rows * (m->cols / elements), bytes, &len))
        return moe_err_set(e, MOE_EFORMAT, "%s: its size overflows", name);
    return moe_qmat_part(name, "data", m->data, m->data_len, len, 8, e);
}

void
moe_qmat_ggml_rows(const struct moe_qmat *m, uint64_t row, uint64_t n, float *out)
{
    void (*block)(const unsigned char *p, float *out) = NULL;
    uint64_t elements = 1, bytes = 1, from, count;
    const unsigned char *p = m->data;
    enum moe_dtype t;

    (void)moe_ggml_block(m->ggml, &elements, &bytes);
    from = row * (m->cols / elements);
    count = n * (m->cols / elements);
    if (plain_type(m->ggml, &t)) {
        (void)moe_dtype_to_f32(t, p + from * bytes, count, out);
        return;
    }
    for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
        if (decoders[i].type == m->ggml)
            block = decoders[i].block;
    for (p += from * bytes; count > 0; count--, p += bytes, out += elements)
        block(p, out);
}
