/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group quantisation: the codes and scales of compressed-tensors over the
 * golden matrices, in every tier; the variants against the reference; values
 * that are not finite.
 */
#include <string.h>

#include "common/formats/dtype.h"
#include "tests/golden.h"
#include "tests/kernel/checkkern.h"
#include "tests/tap.h"

/* An encoding under quant/ct and the matrices it has. */
static const struct {
    const char *name;
    const char *matrices;
    int bits;
    size_t group;               /* 0: one a row */
    bool packed, f16;
} cases[] = {
    { "int4_sym_g32", "bc", 4, 32, true, false },
    { "int4_sym_g64", "b", 4, 64, true, false },
    { "int4_sym_g128", "ac", 4, 128, true, false },
    { "int4_sym_channel", "b", 4, 0, true, false },
    { "int4_sym_g128_f16", "a", 4, 128, true, true },
    { "int8_sym_channel_w8a8", "bc", 8, 0, false, false },
    { "int8_sym_g128_pack", "ac", 8, 128, true, false },
};

static struct golden_tensor
find(const struct golden_tensors *g, char matrix, const char *suffix)
{
    struct golden_tensor t;
    char name[64];

    snprintf(name, sizeof(name), "%c%s", matrix, suffix);
    golden_find(g, name, true, &t);
    return t;
}

/* Rows of the source as a table's operation wants them: BF16, F16, or F32. */
enum input { BF16, F16, F32 };

static size_t
quantise(const struct moe_kernels *k, int bits, enum input in, void *codes, uint16_t *scale,
    const void *x, size_t n, size_t group)
{
    if (bits == 4)
        return in == F32 ? k->quant_i4_f32(codes, scale, x, n, group) :
            in == F16 ? k->quant_i4_f16(codes, scale, x, n, group) :
            k->quant_i4_bf16(codes, scale, x, n, group);
    return in == F32 ? k->quant_i8_f32(codes, scale, x, n, group) :
        in == F16 ? k->quant_i8_f16(codes, scale, x, n, group) :
        k->quant_i8_bf16(codes, scale, x, n, group);
}

static void
golden_matrix(const struct moe_kernels *k, size_t c, const struct golden_tensors *src,
    const struct golden_tensors *ct, char matrix, enum input in)
{
    struct golden_tensor w = find(src, matrix, ""), s = find(ct, matrix, ".weight_scale");
    struct golden_tensor q = find(ct, matrix, cases[c].packed ? ".weight_packed" : ".weight");
    size_t rows = w.shape[0], cols = w.shape[1];
    size_t group = cases[c].group ? cases[c].group : cols, step = cols * (size_t)cases[c].bits / 8;
    uint8_t *codes = ck_buf(0, rows * step);
    uint16_t *scale = ck_buf(1, rows * (cols / group) * sizeof(*scale));
    float *f = ck_buf(2, cols * sizeof(*f));
    uint16_t *h = ck_buf(3, cols * sizeof(*h));
    size_t bad = 0;

    for (size_t r = 0; r < rows; r++) {
        memcpy(h, w.p + 2 * r * cols, 2 * cols);
        k->bf16_f32(f, h, cols);
        if (in == F16)
            k->f32_f16(h, f, cols);
        bad += quantise(k, cases[c].bits, in, codes + r * step, scale + r * (cols / group),
            in == F32 ? (const void *)f : h, cols, group);
    }
    /* pack-quantized stores INT8 with an offset of 128, as it does INT4 with one of 8. */
    for (size_t i = 0; cases[c].bits == 8 && cases[c].packed && i < rows * step; i++)
        codes[i] ^= 0x80;
    static const char *const names[] = { "BF16", "F16", "F32" };
    tap_ok(bad == 0 && q.n == rows * step && memcmp(q.p, codes, q.n) == 0 &&
        s.n == rows * (cols / group) * 2 && memcmp(s.p, scale, s.n) == 0,
        "%s %c from %s, %s: codes and scales of compressed-tensors", cases[c].name, matrix,
        names[in], k->tier);
}

static void
golden_tier(const struct moe_kernels *k)
{
    struct golden_tensors src = golden_tensors("quant/src/weights.safetensors");
    char path[80];

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        snprintf(path, sizeof(path), "quant/ct/%s.safetensors", cases[c].name);
        struct golden_tensors ct = golden_tensors(path);
        for (const char *m = cases[c].matrices; *m; m++) {
            golden_matrix(k, c, &src, &ct, *m, cases[c].f16 ? F16 : BF16);
            if (!cases[c].f16)
                golden_matrix(k, c, &src, &ct, *m, F32);
        }
    }
}

/* The first rows decoded, against the library's own dequantised values. */
static void
golden_dequant(const struct moe_kernels *k)
{
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        char path[80], m = cases[c].matrices[0];
        if (cases[c].bits != 4)
            continue;
        snprintf(path, sizeof(path), "quant/ct/%s.safetensors", cases[c].name);
        struct golden_tensors ct = golden_tensors(path);
        struct golden_tensor d = find(&ct, m, ".dequant"), q = find(&ct, m, ".weight_packed");
        struct golden_tensor s = find(&ct, m, ".weight_scale");
        size_t n = d.n / sizeof(float), cols = d.shape[1];
        size_t group = cases[c].group ? cases[c].group : cols;
        float *out = ck_buf(0, d.n);
        uint8_t *codes = ck_buf(1, n / 2);
        uint16_t *scale = ck_buf(2, n / group * 2);

        memcpy(codes, q.p, n / 2);
        memcpy(scale, s.p, n / group * 2);
        k->dequant_i4(out, codes, scale, n, group, cases[c].f16);
        tap_is_mem(out, d.p, d.n, "%s %c, %s: dequantised", cases[c].name, m, k->tier);
    }
}

/* Rows whose magnitudes vary from group to group, as far as the type reaches. */
static void
fill(void *x, size_t n, size_t group, enum input in, enum ck_kind kind)
{
    if (in == F32)
        ck_f32(x, n, kind);
    else if (in == F16)
        ck_f16(x, n, kind);
    else
        ck_bf16(x, n, kind);
    if (kind != CK_RANDOM)
        return;
    for (size_t i = 0; i < n; i++) {
        int e = (int)(i / group * 37 % 254) - 127;
        if (in == F32)
            ((float *)x)[i] *= __builtin_ldexpf(1, e);
        else if (in == BF16)
            ((uint16_t *)x)[i] = moe_dtype_f32_bf16(moe_dtype_bf16_f32(((uint16_t *)x)[i]) *
                __builtin_ldexpf(1, e));
    }
}

static const struct { size_t n, group; } sizes[] = {
    { 0, 32 }, { 32, 32 }, { 64, 32 }, { 320, 64 }, { 512, 128 }, { 256, 256 }, { 2, 2 },
    { 20, 10 }, { 34, 34 }, { 62, 62 }, { 140, 70 }, { 1000, 1000 }, { 4224, 32 },
};

static void
same_one(const struct moe_kernels *k, int bits, enum input in, size_t n, size_t group,
    enum ck_kind kind)
{
    size_t len = n * (size_t)bits / 8, groups = n / group;
    void *x = ck_buf(0, n * (in == F32 ? 4 : 2));
    uint8_t *want = ck_buf(1, len), *got = ck_buf(2, len);
    uint16_t *want_s = ck_buf(3, groups * 2), *got_s = ck_buf(4, groups * 2);
    size_t want_bad, got_bad;

    fill(x, n, group, in, kind);
    want_bad = quantise(ck_ref(), bits, in, want, want_s, x, n, group);
    got_bad = quantise(k, bits, in, got, got_s, x, n, group);
    ck_expect(want_bad == got_bad && memcmp(want, got, len) == 0 &&
        memcmp(want_s, got_s, groups * 2) == 0 && ck_intact(2) && ck_intact(4),
        "i%d input %d n %zu group %zu, %s", bits, in, n, group, ck_kind_name(kind));
}

static void
same_tier(const struct moe_kernels *k)
{
    ck_begin("quant_i4 quant_i8", k->tier);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int kind = 0; kind < CK_KINDS; kind++)
            for (int in = BF16; in <= F32; in++)
                for (int bits = 4; bits <= 8; bits += 4)
                    same_one(k, bits, (enum input)in, sizes[s].n, sizes[s].group,
                        (enum ck_kind)kind);
    ck_end();
    ck_begin("dequant_i4", k->tier);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int f16 = 0; f16 < 2; f16++) {
            size_t n = sizes[s].n, group = sizes[s].group;
            uint8_t *codes = ck_buf(0, n / 2);
            uint16_t *scale = ck_buf(1, n / group * 2);
            float *want = ck_buf(2, n * sizeof(*want)), *got = ck_buf(3, n * sizeof(*got));

            for (size_t i = 0; i < n / 2; i++)
                codes[i] = (uint8_t)ck_rand();
            for (size_t i = 0; i < n / group; i++)
                scale[i] = (uint16_t)ck_rand();
            ck_ref()->dequant_i4(want, codes, scale, n, group, f16);
            k->dequant_i4(got, codes, scale, n, group, f16);
            ck_expect(ck_same_f32(want, got, n) && ck_intact(3), "n %zu group %zu", n, group);
        }
    ck_end();
}

/* Values that are not finite are counted, and their group says so by its scale. */
static void
not_finite(const struct moe_kernels *k)
{
    uint16_t x[96], scale[3];
    uint8_t codes[48];
    int8_t wide[96];

    for (int i = 0; i < 96; i++)
        x[i] = 0x3f80;
    x[32] = 0x7f80;     /* infinity */
    x[40] = 0xffc1;     /* NaN */
    x[63] = 0xff80;
    tap_is_int((long long)k->quant_i4_bf16(codes, scale, x, 96, 32), 3, "%s: three of a row",
        k->tier);
    tap_ok(scale[0] == scale[2] && (scale[0] & 0x7fff) < 0x7f80 && scale[1] == 0x7fc0 &&
        codes[16] == 0x88 && codes[31] == 0x88 && codes[15] == codes[32] && codes[15] != 0x88,
        "%s: the group's scale is NaN, its codes 0, its neighbours whole", k->tier);
    tap_is_int((long long)k->quant_i8_bf16(wide, scale, x, 96, 32), 3, "%s: the same in INT8",
        k->tier);
    tap_ok(scale[1] == 0x7fc0 && wide[32] == 0 && wide[63] == 0 && wide[0] == 127,
        "%s: INT8 likewise", k->tier);
}

static void
run(void)
{
    const struct moe_kernels *k;

    golden_tier(ck_ref());
    golden_dequant(ck_ref());
    not_finite(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        golden_tier(k);
        golden_dequant(k);
        not_finite(k);
        same_tier(k);
    }
}

const struct ck_check check_groupq = { "groupq", run, NULL };
