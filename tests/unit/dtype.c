/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: names, sizes, and every conversion against ml_dtypes and numpy. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/formats/dtype.h"
#include "tests/golden.h"
#include "tests/tap.h"

static struct golden_tensors golden;

static const void *
tensor(const char *prefix, const char *name, size_t *n)
{
    struct golden_tensor t;
    char key[64];

    snprintf(key, sizeof(key), "%s%s", prefix, name);
    golden_find(&golden, key, true, &t);
    *n = (size_t)t.shape[0];
    return t.p;
}

/* Equal bits, but any NaN is as good as another. */
static size_t
differ(const float *got, const float *want, size_t n)
{
    size_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(want[i]) ? !isnan(got[i]) : memcmp(&got[i], &want[i], 4) != 0)
            bad++;
    }
    return bad;
}

static void
check_decode(enum moe_dtype t, unsigned bits)
{
    uint8_t codes[256] = { 0 };
    float got[256];
    size_t n;
    const float *want = tensor("decode_", moe_dtype_name(t), &n);

    for (unsigned i = 0; i < n; i++) {
        unsigned at = i * bits;
        unsigned v = i << at % 8;

        codes[at / 8] |= (uint8_t)v;
        if (v > 255)
            codes[at / 8 + 1] |= (uint8_t)(v >> 8);
    }
    tap_is_int((long long)n, 1LL << bits, "%s: all codes", moe_dtype_name(t));
    tap_ok(moe_dtype_to_f32(t, codes, n, got), "%s: decodes", moe_dtype_name(t));
    tap_is_int((long long)differ(got, want, n), 0, "%s: equals ml_dtypes", moe_dtype_name(t));
}

static void
check_encode(const float *x, size_t n)
{
    size_t m, bad[5] = { 0 };
    const uint8_t *e4 = tensor("encode_", "F8_E4M3", &m);
    const uint8_t *e5 = tensor("encode_", "F8_E5M2", &m);
    const uint8_t *f4 = tensor("encode_", "F4", &m);
    const uint16_t *h = tensor("encode_", "F16", &m);
    const uint16_t *b = tensor("encode_", "BF16", &m);

    for (size_t i = 0; i < n; i++) {
        bad[0] += moe_dtype_f32_e4m3(x[i]) != e4[i];
        bad[1] += moe_dtype_f32_e5m2(x[i]) != e5[i];
        bad[2] += moe_dtype_f32_f4(x[i]) != f4[i];
        bad[3] += moe_dtype_f32_f16(x[i]) != h[i];
        bad[4] += moe_dtype_f32_bf16(x[i]) != b[i];
    }
    tap_ok(n > 1500, "inputs to encode");
    tap_is_int((long long)bad[0], 0, "to E4M3");
    tap_is_int((long long)bad[1], 0, "to E5M2");
    tap_is_int((long long)bad[2], 0, "to F4");
    tap_is_int((long long)bad[3], 0, "to F16");
    tap_is_int((long long)bad[4], 0, "to BF16");
}

static void
check_f16(void)
{
    size_t n, bad = 0, back = 0;
    const float *want = tensor("decode_", "F16", &n);

    for (size_t i = 0; i < n; i++) {
        uint16_t code = (uint16_t)(7 * i);
        float got = moe_dtype_f16_f32(code);

        bad += differ(&got, &want[i], 1);
        back += !isnan(got) && moe_dtype_f32_f16(got) != code;
    }
    tap_is_int((long long)bad, 0, "F16 decodes as numpy");
    tap_is_int((long long)back, 0, "F16 goes there and back");
}

static void
check_names(void)
{
    enum moe_dtype t;
    size_t bad = 0;

    for (int i = 0; i < MOE_DTYPE_N; i++) {
        const char *s = moe_dtype_name((enum moe_dtype)i);

        bad += !moe_dtype_find(s, strlen(s), &t) || t != (enum moe_dtype)i;
    }
    tap_is_int((long long)bad, 0, "every name is found again");
    tap_ok(!moe_dtype_find("bf16", 4, &t), "case matters");
    tap_ok(!moe_dtype_find("BF1", 3, &t) && !moe_dtype_find("BF160", 5, &t), "length matters");
    tap_is_int(moe_dtype_bits(MOE_F6_E3M2), 6, "bits of F6");
    tap_is_int(moe_dtype_bits(MOE_C64), 64, "bits of C64");
    tap_ok(moe_dtype_is_float(MOE_F8_E8M0) && !moe_dtype_is_float(MOE_C64) &&
        !moe_dtype_is_float(MOE_I8), "what is a float");
}

static void
check_special(void)
{
    float v, f[2] = { NAN, 1 };
    double d[2] = { 1.0 + 0x1p-25, -INFINITY };

    tap_is_int(moe_dtype_f32_e4m3(-NAN), 0x7f, "NaN to E4M3");
    tap_is_int(moe_dtype_f32_e5m2(NAN), 0x7f, "NaN to E5M2");
    tap_ok(isnan(moe_dtype_f16_f32(moe_dtype_f32_f16(NAN))), "NaN to F16 and back");
    tap_ok(isnan(moe_dtype_bf16_f32(moe_dtype_f32_bf16(NAN))), "NaN to BF16 and back");
    memcpy(&v, &(uint32_t){ 0x7f800001 }, 4);
    tap_ok(isnan(moe_dtype_bf16_f32(moe_dtype_f32_bf16(v))), "a NaN of low bits stays one");
    tap_ok(moe_dtype_to_f32(MOE_F64, d, 2, f) && f[0] == 1 && f[1] == -INFINITY, "F64");
    tap_ok(moe_dtype_to_f32(MOE_F32, (float[]){ 3, 4 }, 2, f) && f[1] == 4, "F32");
    tap_ok(moe_dtype_to_f32(MOE_BF16, (uint16_t[]){ 0x3f80, 0xc000 }, 2, f) && f[1] == -2, "BF16");
    tap_ok(moe_dtype_to_f32(MOE_F16, (uint16_t[]){ 0x3c00, 0xc000 }, 2, f) && f[1] == -2, "F16");
    tap_ok(!moe_dtype_to_f32(MOE_I32, d, 1, f), "I32 is no float");
}

int
main(void)
{
    size_t n;
    const float *x;

    golden = golden_tensors("dtype/golden.safetensors");
    check_names();
    for (int t = MOE_F4; t <= MOE_F8_E5M2FNUZ; t++) {
        if (moe_dtype_is_float((enum moe_dtype)t))
            check_decode((enum moe_dtype)t, moe_dtype_bits((enum moe_dtype)t));
    }
    check_f16();
    x = tensor("", "x", &n);
    check_encode(x, n);
    check_special();
    return tap_done();
}
