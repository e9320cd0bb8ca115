/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packed layout: bytes worked out by hand, round trips, pack-quantized words
 * against the library that wrote them, records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/packed.h"
#include "kernels/kernels.h"
#include "tests/golden_qmat.h"
#include "tests/tap.h"

/* A number that looks random, the same each time. */
static uint32_t
mix(uint32_t v)
{
    v = (v ^ v >> 16) * 0x7feb352d;
    v = (v ^ v >> 15) * 0x846ca68b;
    return v ^ v >> 16;
}

/* One row, q = column % 16 - 8, so u4 = column % 16; scale 2.0; 15 rows do not exist. */
static void
by_hand_i4(void)
{
    struct moe_packed m = { MOE_PACKED_I4, MOE_BF16, 1, 32, 32, false, false };
    int8_t q[32];
    uint16_t scale = 0x4000;
    unsigned char got[64 + 4 * 64];
    uint64_t bytes = 0;

    for (int k = 0; k < 32; k++)
        q[k] = (int8_t)(k % 16 - 8);
    tap_ok(moe_packed_block_bytes(&m, &bytes) && bytes == sizeof(got), "INT4: one step of 32");
    memset(got, 0xee, sizeof(got));
    moe_packed_block(&m, 0, q, &scale, got);
    tap_is_mem(got, "\x00\x40\0\0\0\0", 6, "INT4: the scales of rows 0, 1, 2");
    tap_is_mem(got + 64, "\x40\x51\x62\x73\x88\x88\x88\x88", 8, "INT4: columns 0..7");
    tap_is_mem(got + 128, "\xc8\xd9\xea\xfb\x88", 5, "INT4: columns 8..15");
    tap_is_mem(got + 192, "\x40\x51\x62\x73\x88", 5, "INT4: columns 16..23");
    tap_ok(got[319] == 0x88 && got[63] == 0, "INT4: filled to the end");
}

static void
by_hand_i8(void)
{
    struct moe_packed m = { MOE_PACKED_I8, MOE_F16, 2, 64, 32, false, false };
    int8_t q[128];
    uint16_t scales[4] = { 0x1111, 0x2222, 0x3333, 0x4444 };
    unsigned char got[64 + 1024];
    uint64_t bytes = 0;

    for (int k = 0; k < 128; k++)
        q[k] = (int8_t)(k - 128);
    tap_ok(moe_packed_block_bytes(&m, &bytes) && bytes == sizeof(got), "INT8: one step of 64");
    moe_packed_block(&m, 0, q, scales, got);
    tap_is_mem(got, "\x11\x11\x33\x33\0\0", 6, "INT8: scales of group 0 for rows 0, 1, 2");
    tap_is_mem(got + 32, "\x22\x22\x44\x44\0\0", 6, "INT8: scales of group 1");
    tap_is_mem(got + 64, "\x00\x01\x02\x03\x40\x41\x42\x43\x80\x80", 10,
        "INT8: columns 0..3 of rows 0, 1, 2");
    tap_is_mem(got + 128, "\x04\x05\x06\x07\x44", 5, "INT8: columns 4..7");
}

static void
by_hand_bf16(void)
{
    struct moe_packed m = { MOE_PACKED_BF16, MOE_BF16, 2, 4, 0, false, false };
    uint16_t w[8] = { 0x0100, 0x0302, 0x0504, 0x0706, 0x1110, 0x1312, 0x1514, 0x1716 }, back[8];
    unsigned char got[128];
    uint64_t bytes = 0;

    tap_ok(moe_packed_block_bytes(&m, &bytes) && bytes == 128, "BF16: two pairs of columns");
    moe_packed_block_bf16(&m, 0, w, got);
    tap_is_mem(got, "\0\1\2\3\x10\x11\x12\x13\0\0\0\0", 12, "BF16: the first pair");
    tap_is_mem(got + 64, "\4\5\6\7\x14\x15\x16\x17\0\0\0\0", 12, "BF16: the second pair");
    moe_packed_unblock_bf16(&m, 0, got, back);
    tap_is_mem(back, w, sizeof(w), "BF16: and back");
}

/* Two rows of one group, z = -8 and 3, a bias: 64 of bias, 32 + 16 of the group, 16 of padding. */
static void
by_hand_zeros(void)
{
    struct moe_packed m = { MOE_PACKED_I4, MOE_BF16, 2, 32, 32, true, true };
    int8_t q[64], z[2] = { -8, 3 }, zback[2];
    uint16_t scales[2] = { 0x4000, 0x3f80 };
    float bias[2] = { 1, -2 }, bback[2];
    unsigned char got[64 + 64 + 256], wide[64 + 512];
    uint64_t bytes = 0;

    for (int k = 0; k < 64; k++)
        q[k] = (int8_t)(k % 16 - 8);
    tap_ok(moe_packed_block_bytes(&m, &bytes) && bytes == sizeof(got), "zero points: the size");
    memset(got, 0xee, sizeof(got));
    moe_packed_block(&m, 0, q, scales, got);
    tap_is_mem(got, "\0\0\0\0\0\0\0\0\0\0\0", 11, "bias 0 until it is put");
    tap_is_mem(got + 96, "\x08\x08\x08\x08", 4, "zero points 0 until they are put");
    moe_packed_zeros(&m, 0, z, got);
    moe_packed_bias(&m, 0, bias, got);
    tap_is_mem(got, "\0\0\x80\x3f\0\0\0\xc0\0\0\0\0", 12, "the bias of rows 0, 1, 2");
    tap_is_mem(got + 64, "\0\x40\x80\x3f\0\0", 6, "then the scales of rows 0, 1, 2");
    tap_is_mem(got + 96, "\x00\x0b\x08\x08", 4, "then their zero points");
    tap_is_mem(got + 111, "\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\x51\x62\x73", 21,
        "then padding and codes");
    moe_packed_unzeros(&m, 0, got, zback);
    moe_packed_unbias(&m, 0, got, bback);
    tap_is_mem(zback, z, 2, "zero points and back");
    tap_is_mem(bback, bias, sizeof(bias), "bias and back");

    m = (struct moe_packed){ MOE_PACKED_I8, MOE_BF16, 2, 32, 32, true, false };
    moe_packed_block_bytes(&m, &bytes);
    tap_is_int((long long)bytes, sizeof(wide), "INT8: the size");
    z[0] = -128;
    z[1] = 127;
    moe_packed_block(&m, 0, q, scales, wide);
    moe_packed_zeros(&m, 0, z, wide);
    tap_is_mem(wide + 32, "\x00\xff\x80\x80", 4, "INT8: zero points after the scales");
    moe_packed_unzeros(&m, 0, wide, zback);
    tap_is_mem(zback, z, 2, "INT8: zero points and back");
}

/* Where moe-packed(5) puts code [r][k], by its words: steps, padding, groups, units. */
static uint64_t
place(const struct moe_packed *m, uint64_t k)
{
    uint64_t unit = m->kind == MOE_PACKED_I4 ? 8 : 4, at = m->bias ? 64 : 0, step = k / 256;

    for (uint64_t s = 0; s <= step; s++) {
        uint64_t cols = m->cols - 256 * s < 256 ? m->cols - 256 * s : 256;

        at += (cols / m->group * (m->zeros ? 48 : 32) + 63) & ~(uint64_t)63;
        at += (s < step ? cols : k % 256 / unit * unit) * (64 / unit);
    }
    return at;
}

static void
round_trip(struct moe_packed m)
{
    size_t n = (size_t)(m.rows * m.cols), groups = (size_t)(m.rows * (m.cols / m.group));
    int8_t *q = malloc(n), *back = malloc(n), *z = malloc(groups), *zback = malloc(groups);
    float *bias = malloc(m.rows * sizeof(*bias)), *bback = malloc(m.rows * sizeof(*bias));
    uint16_t *s = malloc(groups * 2), *sback = malloc(groups * 2);
    unsigned char *block;
    uint64_t bytes = 0;
    int bad = 0;

    if (!tap_ok(moe_packed_block_bytes(&m, &bytes) && bytes % 64 == 0,
        "%d: %d x %d, groups of %d%s%s", (int)m.kind, (int)m.rows, (int)m.cols, (int)m.group,
        m.zeros ? ", zero points" : "", m.bias ? ", bias" : ""))
        return;
    block = malloc(bytes);
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)(m.kind == MOE_PACKED_I4 ? (int)(mix((uint32_t)i) % 16) - 8 :
            (int)(mix((uint32_t)i) % 256) - 128);
    for (size_t i = 0; i < groups; i++)
        s[i] = (uint16_t)mix((uint32_t)i + 77);
    for (size_t i = 0; i < groups; i++)
        z[i] = (int8_t)(m.kind == MOE_PACKED_I4 ? (int)(mix((uint32_t)i + 5) % 16) - 8 :
            (int)(mix((uint32_t)i + 5) % 256) - 128);
    for (size_t i = 0; i < m.rows; i++)
        bias[i] = (float)mix((uint32_t)i + 9);
    for (uint64_t b = 0; b < moe_packed_blocks(&m); b++) {
        memset(block, 0x5a, bytes);
        moe_packed_block(&m, b, q, s, block);
        if (m.zeros) {
            moe_packed_zeros(&m, b, z, block);
            moe_packed_unzeros(&m, b, block, zback);
        }
        if (m.bias) {
            moe_packed_bias(&m, b, bias, block);
            moe_packed_unbias(&m, b, block, bback);
        }
        moe_packed_unblock(&m, b, block, back, sback);
        for (uint64_t r = 0; r < 16 && 16 * b + r < m.rows; r++)
            for (uint64_t k = 0; k < m.cols; k++) {
                unsigned v = block[place(&m, k) + 4 * r + k % 4];
                int want = q[(16 * b + r) * m.cols + k];

                if (m.kind == MOE_PACKED_I4)
                    bad += (int)(k % 8 < 4 ? v & 15 : v >> 4) - 8 != want;
                else
                    bad += (int)v - 128 != want;
            }
    }
    tap_is_int(bad, 0, "every code is where the page says");
    tap_is_mem(back, q, n, "codes and back");
    tap_is_mem(sback, s, groups * 2, "scales and back");
    if (m.zeros)
        tap_is_mem(zback, z, groups, "zero points and back");
    if (m.bias)
        tap_is_mem(bback, bias, m.rows * sizeof(*bias), "bias and back");
    free(z);
    free(zback);
    free(bias);
    free(bback);
    free(q);
    free(back);
    free(s);
    free(sback);
    free(block);
}

/*
 * Asymmetric pack-quantized to blocks and back: (q - z) * scale is what the
 * library that wrote the file decodes it to.
 */
static void
asymmetric(const char *file, const char *matrix, uint64_t rows, uint64_t cols)
{
    char path[128];
    struct golden_tensors g;
    struct moe_qmat q;
    struct moe_packed m;
    size_t n = (size_t)(rows * cols);
    int8_t *codes = malloc(n), *zeros = malloc(n / 32);
    uint16_t *scales = malloc(n / 32 * 2);
    float *w = malloc(n * sizeof(*w));
    unsigned char *block;
    uint64_t bytes = 0;
    json_t *j, *info;
    int shifted = 0;

    (void)snprintf(path, sizeof(path), "quant/ct/%s.safetensors", file);
    g = golden_tensors(path);
    (void)snprintf(path, sizeof(path), "quant/ct/%s.json", file);
    info = json_object_get(json_object_get(golden_json(path), "matrices"), matrix);
    j = json_object_get(golden_json(path), "quantization_config");
    j = json_object_get(json_object_get(json_object_get(j, "config_groups"), "group_0"), "weights");
    q = golden_qmat_of(&g, matrix, j, "pack-quantized", rows, cols);
    if (!tap_ok(moe_packed_of(&q, &m) && m.zeros && !m.bias && m.scale_dtype == MOE_BF16,
        "%s %s: has a packed form with zero points", file, matrix))
        return;
    m.bias = true;
    moe_packed_block_bytes(&m, &bytes);
    block = malloc(bytes);
    for (uint64_t b = 0; b < moe_packed_blocks(&m); b++) {
        memset(block, 0x55, bytes);
        moe_packed_from_ct(&m, b, &q, block);
        moe_packed_unblock(&m, b, block, codes, scales);
        moe_packed_unzeros(&m, b, block, zeros);
    }
    for (size_t i = 0; i < n; i++) {
        w[i] = (float)(codes[i] - zeros[i / m.group]) * moe_dtype_bf16_f32(scales[i / m.group]);
        shifted += zeros[i / m.group] != 0;
    }
    tap_ok(shifted > 0, "%s %s: zero points in use", file, matrix);
    tap_is_str(golden_sha256(w, n * sizeof(*w)),
        json_string_value(json_object_get(info, "dequant_f32_sha256")),
        "%s %s: words to blocks", file, matrix);
    free(codes);
    free(zeros);
    free(scales);
    free(w);
    free(block);
}

/* INT8 with groups, made by hand, as its decoder reads it; 19 rows: zero points end in a word. */
static void
asymmetric_int8(void)
{
    unsigned char data[19 * 64], zero[5 * 4 * 2];
    uint16_t scale[19 * 2], sback[19 * 2];
    struct moe_qmat q = { .enc = MOE_ENC_CT_PACK, .rows = 19, .cols = 64, .bits = 8, .group = 32,
        .scale_dtype = MOE_BF16, .data = data, .data_len = sizeof(data), .scale = scale,
        .scale_len = sizeof(scale), .zero = zero, .zero_len = sizeof(zero) };
    unsigned char block[128 + 1024];
    static float want[19 * 64];
    int8_t codes[19 * 64], zeros[19 * 2];
    struct moe_err e = { 0, "" };
    struct moe_packed m;
    int bad = 0;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)mix((uint32_t)i);
    for (size_t i = 0; i < sizeof(zero); i++)
        zero[i] = (unsigned char)mix((uint32_t)i + 1000);
    for (size_t i = 0; i < 38; i++)
        scale[i] = (uint16_t)(0x3f00 + mix((uint32_t)i) % 256);
    tap_is_int(moe_qmat_check(&q, "q", &e), 0, "INT8 with zero points: %s", e.text);
    moe_qmat_rows(&q, 0, 19, want);
    tap_ok(moe_packed_of(&q, &m) && m.kind == MOE_PACKED_I8 && m.zeros, "its packed form");
    for (uint64_t b = 0; b < 2; b++) {
        moe_packed_from_ct(&m, b, &q, block);
        moe_packed_unblock(&m, b, block, codes, sback);
        moe_packed_unzeros(&m, b, block, zeros);
    }
    for (size_t i = 0; i < sizeof(codes); i++)
        bad += (float)(codes[i] - zeros[i / 32]) * moe_dtype_bf16_f32(sback[i / 32]) != want[i];
    tap_is_int(bad, 0, "INT8 with zero points: words to blocks");
}

/* pack-quantized straight to blocks: the same as through its codes. */
static void
from_ct(const char *file, const char *matrix, uint64_t rows, uint64_t cols)
{
    char path[128];
    struct golden_tensors g;
    struct moe_qmat q;
    struct moe_packed m;
    unsigned char *got, *want;
    int8_t *codes = malloc((size_t)(rows * cols));
    uint64_t bytes = 0;
    json_t *j;
    int bad = 0;

    (void)snprintf(path, sizeof(path), "quant/ct/%s.safetensors", file);
    g = golden_tensors(path);
    (void)snprintf(path, sizeof(path), "quant/ct/%s.json", file);
    j = json_object_get(golden_json(path), "quantization_config");
    j = json_object_get(json_object_get(json_object_get(j, "config_groups"), "group_0"), "weights");
    q = golden_qmat_of(&g, matrix, j, "pack-quantized", rows, cols);
    if (!tap_ok(moe_packed_of(&q, &m), "%s %s: has a packed form", file, matrix))
        return;
    for (uint64_t i = 0; i < rows * cols; i++) {
        const unsigned char *p = q.data;

        codes[i] = (int8_t)(q.bits == 4 ? (p[i / 2] >> (i % 2 * 4) & 15) - 8 : p[i] - 128);
    }
    moe_packed_block_bytes(&m, &bytes);
    got = malloc(bytes);
    want = malloc(bytes);
    for (uint64_t b = 0; b < moe_packed_blocks(&m); b++) {
        memset(got, 0x55, bytes);
        memset(want, 0xaa, bytes);
        moe_packed_from_ct(&m, b, &q, got);
        moe_packed_block(&m, b, codes, q.scale, want);
        bad += memcmp(got, want, bytes) != 0;
    }
    tap_is_int(bad, 0, "%s %s: words to blocks", file, matrix);
    free(codes);
    free(got);
    free(want);
}

/* The product with a unit vector is a column: q * scale, exactly, as the qmat decodes it. */
static void
same_as_kernel(const char *file, const char *matrix, uint64_t rows, uint64_t cols)
{
    char path[128];
    struct golden_tensors g;
    struct moe_qmat q;
    struct moe_packed m;
    struct moe_blocks form;
    uint64_t bytes = 0, blocks;
    unsigned char *w;
    float *x = calloc((size_t)(cols * cols), sizeof(*x)), *out, *want;
    json_t *j;
    int bad = 0;

    (void)snprintf(path, sizeof(path), "quant/ct/%s.safetensors", file);
    g = golden_tensors(path);
    (void)snprintf(path, sizeof(path), "quant/ct/%s.json", file);
    j = json_object_get(golden_json(path), "quantization_config");
    j = json_object_get(json_object_get(json_object_get(j, "config_groups"), "group_0"), "weights");
    q = golden_qmat_of(&g, matrix, j, "pack-quantized", rows, cols);
    (void)moe_packed_of(&q, &m);
    moe_packed_block_bytes(&m, &bytes);
    blocks = moe_packed_blocks(&m);
    w = aligned_alloc(64, bytes * blocks);
    out = calloc((size_t)(cols * blocks * 16), sizeof(*out));
    want = calloc((size_t)(rows * cols), sizeof(*want));
    for (uint64_t b = 0; b < blocks; b++)
        moe_packed_from_ct(&m, b, &q, w + b * bytes);
    for (uint64_t k = 0; k < cols; k++)
        x[k * cols + k] = 1;
    form = moe_packed_form(&m);
    moe_kernels()->gemm_packed(out, blocks * 16, w, blocks, &form, x, cols, cols);
    moe_qmat_rows(&q, 0, rows, want);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t k = 0; k < cols; k++)
            bad += out[k * blocks * 16 + r] != want[r * cols + k];
    for (uint64_t r = rows; r < blocks * 16; r++)
        for (uint64_t k = 0; k < cols; k++)
            bad += out[k * blocks * 16 + r] != 0;
    tap_is_int(bad, 0, "%s %s: the kernel sees the same weights", file, matrix);
    free(w);
    free(x);
    free(out);
    free(want);
}

static void
shapes(void)
{
    static const struct moe_packed bad[] = {
        { MOE_PACKED_I4, MOE_BF16, 0, 32, 32, false, false },
        { MOE_PACKED_I4, MOE_BF16, 16, 0, 32, false, false },
        { MOE_PACKED_I4, MOE_BF16, 16, 96, 64, false, false },
        { MOE_PACKED_I4, MOE_BF16, 16, 256, 256, false, false },
        { MOE_PACKED_I4, MOE_BF16, 16, 256, 0, false, false },
        { MOE_PACKED_I8, MOE_F8_E4M3, 16, 256, 32, false, false },
        { MOE_PACKED_E2M1, MOE_BF16, 16, 256, 32, true, false },
        { MOE_PACKED_E4M3, MOE_F32, 16, 256, 128, true, false },
        { MOE_PACKED_BF16, MOE_BF16, 16, 3, 0, false, false },
        { MOE_PACKED_BF16, MOE_BF16, 16, 64, 32, false, false },
        { MOE_PACKED_I4, MOE_BF16, UINT64_MAX, 32, 32, false, false },
        { MOE_PACKED_BF16, MOE_BF16, 16, UINT64_MAX - 1, 0, false, false },
        { MOE_PACKED_BF16, MOE_BF16, 16, 64, 0, true, false },
        { MOE_PACKED_I8, MOE_BF16, 16, (UINT64_MAX >> 4) & ~(uint64_t)127, 128, true, true },
    };
    struct moe_packed m = { MOE_PACKED_I4, MOE_BF16, 1, 128, 128, false, false };
    struct moe_qmat q = { .enc = MOE_ENC_CT_PACK, .rows = 16, .cols = 128, .bits = 4,
        .group = 128, .symmetric = true, .scale_dtype = MOE_BF16 };
    int32_t order[128] = { 0 };
    uint64_t bytes = 0;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_ok(!moe_packed_block_bytes(&bad[i], &bytes), "shape %zu is refused", i);
    tap_ok(moe_packed_of(&q, &m), "a form for INT4");
    q.symmetric = false;
    tap_ok(moe_packed_of(&q, &m) && m.zeros, "a form with zero points");
    q.symmetric = true;
    q.g_idx = order;
    tap_ok(!moe_packed_of(&q, &m), "none for columns in another order");
    q.g_idx = NULL;
    q.bits = 3;
    tap_ok(!moe_packed_of(&q, &m), "none for 3 bits");
    q.bits = 4;
    q.group = 0;
    tap_ok(!moe_packed_of(&q, &m), "none for one scale a row");
    /* The blocks fill a page, which leaves no room for the trailer. */
    m = (struct moe_packed){ MOE_PACKED_BF16, MOE_BF16, 16, 128, 0, false, false };
    tap_ok(moe_packed_record_bytes(&m, &bytes) && bytes == 8192, "a full page and a trailer");
}

static void
experts(void)
{
    struct moe_packed up = { MOE_PACKED_I4, MOE_BF16, 768, 2048, 128, false, false };
    struct moe_packed down = { MOE_PACKED_I4, MOE_BF16, 2048, 768, 128, false, false };
    struct moe_err e = { 0, "" };
    struct moe_packed_expert x;

    /* Qwen3-30B-A3B: 768 rows of 2048 make 48 block pairs, 8 steps of 64 + 2048 bytes each. */
    tap_is_int(moe_packed_expert_layout(&up, &down, &x, &e), 0, "an expert of 2048 and 768");
    tap_is_int((long long)x.gate_up_block, 8 * (64 + 2048), "a block of gate");
    tap_is_int((long long)x.down_at, 2 * 48 * 8 * (64 + 2048), "where down begins");
    tap_is_int((long long)x.down_block, 3 * (64 + 2048), "a block of down");
    tap_is_int((long long)x.bytes, (1622016 + 128 * 3 * 2112 + 4 + 4095) / 4096 * 4096,
        "the record");
    tap_is_int((long long)x.crc_at, (long long)x.bytes - 4, "its trailer");
    /* Two groups a step: 64 of scales, 32 of zero points, 32 of padding. */
    up.zeros = up.bias = down.bias = true;
    tap_is_int(moe_packed_expert_layout(&up, &down, &x, &e), 0, "zero points and biases");
    tap_is_int((long long)x.gate_up_block, 64 + 8 * (128 + 2048), "a block of gate with both");
    tap_is_int((long long)x.down_block, 64 + 3 * (64 + 2048), "a block of down with a bias");
    tap_ok(x.gate_up.zeros && !x.down.zeros && x.down.bias, "as they were given");
    down.cols = 512;
    tap_ok(moe_packed_expert_layout(&up, &down, &x, &e) == MOE_EUNSUP &&
        strstr(e.text, "768 x 2048 and 2048 x 512") != NULL, "halves that do not meet");
    up = (struct moe_packed){ MOE_PACKED_I4, MOE_BF16, 2880, 2880, 128, false, false };
    down = up;
    down.group = 64;
    tap_ok(moe_packed_expert_layout(&up, &down, &x, &e) == MOE_EUNSUP &&
        strstr(e.text, "groups of 128 and 64") != NULL, "2880 with groups of 128");
    up.rows = up.cols = (uint64_t)1 << 40;
    tap_ok(moe_packed_expert_layout(&up, &up, &x, &e) == MOE_EUNSUP, "too large");
}

static void
trailer(void)
{
    unsigned char *p = calloc(1, 4096);

    memcpy(p, "123456789", 9);
    moe_packed_seal(p, 13);
    tap_is_mem(p + 9, "\x83\x92\x06\xe3", 4, "CRC32C of 123456789");
    moe_packed_seal(p, 4096);
    tap_ok(moe_packed_intact(p, 4096), "intact");
    for (int i = 0; i < 4096; i += 91) {
        p[i] ^= 4;
        if (moe_packed_intact(p, 4096))
            tap_ok(false, "a flipped bit in byte %d is found", i);
        p[i] ^= 4;
    }
    tap_ok(moe_packed_intact(p, 4096), "intact again");
    free(p);
}

int
main(void)
{
    by_hand_i4();
    by_hand_i8();
    by_hand_bf16();
    by_hand_zeros();
    for (int kind = MOE_PACKED_I4; kind <= MOE_PACKED_I8; kind++) {
        enum moe_packed_kind k = (enum moe_packed_kind)kind;

        round_trip((struct moe_packed){ k, MOE_BF16, 16, 256, 128, false, false });
        round_trip((struct moe_packed){ k, MOE_F16, 37, 384, 128, false, false });
        round_trip((struct moe_packed){ k, MOE_BF16, 5, 576, 64, false, false });
        round_trip((struct moe_packed){ k, MOE_BF16, 48, 32, 32, false, false });
        round_trip((struct moe_packed){ k, MOE_BF16, 17, 800, 32, false, false });
        round_trip((struct moe_packed){ k, MOE_BF16, 37, 384, 128, true, false });
        round_trip((struct moe_packed){ k, MOE_BF16, 5, 576, 64, false, true });
        round_trip((struct moe_packed){ k, MOE_F16, 17, 800, 32, true, true });
        round_trip((struct moe_packed){ k, MOE_F16, 16, 128, 128, true, true });
    }
    from_ct("int4_sym_g128", "a", 64, 512);
    from_ct("int4_sym_g128", "c", 16, 256);
    from_ct("int4_sym_g128_f16", "a", 64, 512);
    from_ct("int4_sym_g64", "b", 136, 320);
    from_ct("int4_sym_g32", "b", 136, 320);
    from_ct("int8_sym_g128_pack", "a", 64, 512);
    asymmetric("int4_asym_g128", "a", 64, 512);
    asymmetric("int4_asym_g64", "b", 136, 320);
    asymmetric("int4_asym_g64", "c", 16, 256);
    asymmetric_int8();
    same_as_kernel("int4_sym_g128", "a", 64, 512);
    same_as_kernel("int4_sym_g128_f16", "a", 64, 512);
    same_as_kernel("int4_sym_g64", "b", 136, 320);
    same_as_kernel("int4_sym_g32", "b", 136, 320);
    shapes();
    experts();
    trailer();
    return tap_done();
}
