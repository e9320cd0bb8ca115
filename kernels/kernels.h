/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of operations. One stem an operation; all variants side by side
 * under one suffix each (OP_ref.c, OP_avx2.c, OP_avx512.c); moe_kernels() fills
 * the table once, ref first, then tier by tier as the processor and MOE_CPU
 * (ref, avx2, avx512) allow. Kernels allocate nothing, start no thread, cannot
 * fail, and check nothing: the caller has.
 *
 * One result: every variant of an operation gives the bits of its reference,
 * sums included. A dot product of length n runs in 16 lanes: lane l takes the
 * elements l, l + 16, ... in order with one fused multiply-add each, and the
 * lanes are summed as a tree (l with l + 8, then + 4, + 2, + 1). A result never
 * depends on how many rows are computed together or by which thread. The one
 * exception is the payload of a NaN: where the reference gives NaN, a variant
 * gives NaN.
 *
 * Arrays may have any alignment unless said; in and out do not overlap unless
 * said. Sizes are elements. bf16 and f16 are bit patterns.
 */
#ifndef MOE_KERNELS_H
#define MOE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define MOE_CHAINS 192

/* What packed blocks (moe-packed(5)) hold. */
enum {
    MOE_CODES_I4,       /* u4 = q + 8 */
    MOE_CODES_I8,       /* u8 = q + 128 */
    MOE_CODES_E2M1,     /* sign and one of 0 1 2 3 4 6 8 12: twice the value of E2M1 */
    MOE_CODES_E4M3      /* none of them NaN; the scale is multiplied by 256, the value by 1/256 */
};
enum { MOE_SCALE_BF16, MOE_SCALE_F16, MOE_SCALE_F32 };

struct moe_blocks {
    int codes, scale;
    int zeros;          /* a zero point a group: q is less by it; I4 and I8 */
    size_t head;        /* bytes before the first step of a block */
    size_t cols, group; /* 32, 64, 128; divides cols */
};

struct moe_kernels {
    const char *tier;   /* "ref", "avx2", "avx512" */

    /*
     * Matrix products: out[j * ldo + r] = sum_k w[r][k] * x[j * ldx + k],
     * r < rows, j < n, k < cols. w row-major.
     */
    void (*gemm_f32)(float *out, size_t ldo, const float *w, const float *x, size_t ldx,
        size_t rows, size_t cols, size_t n);
    void (*gemm_bf16)(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx,
        size_t rows, size_t cols, size_t n);
    void (*gemm_f16)(float *out, size_t ldo, const uint16_t *w, const float *x, size_t ldx,
        size_t rows, size_t cols, size_t n);

    /*
     * Packed blocks of 16 rows, one after another and 64-byte aligned.
     * out[j * ldo + 16 b + r], b < blocks, all 16 rows of a block are written.
     *
     * gemm_packed: float activations. Within a group
     *   s = fma(q[k], x[k], s) for k ascending, s from 0; acc = fma(s, scale, acc)
     * for groups ascending, acc from 0; q the code's value, zero point taken off.
     */
    void (*gemm_packed)(float *out, size_t ldo, const void *w, size_t blocks,
        const struct moe_blocks *f, const float *x, size_t ldx, size_t n);

    /*
     * gemm_packedq, for I4, I8 and E2M1: activations as int8 with one scale a
     * group of the same size (quant_act_i8). Within a group the sum of q * xq is
     * an exact integer s;
     *   acc = fma((float)s, scale * xscale, acc) for groups ascending.
     * xq [n][cols], xs [n][cols / group], xsum [n][cols / group] (sum of xq).
     */
    void (*gemm_packedq)(float *out, size_t ldo, const void *w, size_t blocks,
        const struct moe_blocks *f, const int8_t *xq, const float *xs, const int32_t *xsum,
        size_t n);

    /*
     * Activations to int8, per group: xs = max|x| / 127; xq = x * (1 / xs)
     * rounded to nearest even. Where xs is below 2^-126, xs = 0 and xq = 0; a
     * group with NaN or infinity has xs = NaN and xq = 0, so that the results
     * it enters are NaN. n rows of cols, ldx apart; group a multiple of 32.
     */
    void (*quant_act_i8)(int8_t *xq, float *xs, int32_t *xsum, const float *x, size_t ldx,
        size_t cols, size_t group, size_t n);

    float (*dot_f32)(const float *a, const float *b, size_t n);

    /* out[i] = a * x[i] + out[i], one fma each. */
    void (*axpy_f32)(float *out, const float *x, float a, size_t n);

    /*
     * A step of an exponential average that is held as hi + lo, in double:
     * e = hi + lo; e = fma(w, x - e, e); hi = (float)e; lo = (float)(e - hi).
     * 0 <= w <= 1. Returns how many of x are NaN or infinite.
     */
    size_t (*ema_f32)(float *hi, float *lo, const float *x, double w, size_t n);

    /*
     * Weighted sums of rows, as attention takes them of values:
     * out[j * ldo + d] = fma(p[j * ldp + t], v[t * dim + d], out[j * ldo + d])
     * for t ascending; t < rows, d < dim, j < n.
     */
    void (*wsum_f32)(float *out, size_t ldo, const float *v, const float *p, size_t ldp,
        size_t rows, size_t dim, size_t n);

    /*
     * x[i] = fma(x[i], a, b), `steps` times, for MOE_CHAINS chains that do not
     * wait for each other: as fast as the processor multiplies and adds at all.
     */
    void (*chains_f32)(float *x, float a, float b, size_t steps);

    /*
     * RMSNorm: y = x * rsqrt(mean(x^2) + eps) * w. mean by the 16-lane sum in
     * float; 1 / sqrtf(), not an estimate; (x * r) * w. out may be x.
     */
    void (*rmsnorm_f32)(float *out, const float *x, const float *w, size_t n, float eps);

    /*
     * Rotate pairs of a head of `dim` in place: half-split (i, i + dim/2), or
     * interleaved (2i, 2i + 1). c, s [dim / 2].
     *   a' = a c - b s; b' = b c + a s, as fma(a, c, -(b s)) and fma(b, c, a s).
     */
    void (*rope_half)(float *x, const float *c, const float *s, size_t dim);
    void (*rope_pair)(float *x, const float *c, const float *s, size_t dim);

    /*
     * x = exp(x - max) / sum, in place, n >= 1; exp by moe's own polynomial
     * (kernels/exp.h: the same bits in each tier), sum in 16 lanes.
     */
    void (*softmax_f32)(float *x, size_t n);

    /* out[i] = silu(g[i]) * u[i], silu(x) = x / (1 + exp(-x)). out may be g. */
    void (*silu_mul_f32)(float *out, const float *g, const float *u, size_t n);

    /*
     * The same from packed blocks, 16 gate rows beside their 16 up rows:
     * out[16 b + i] = silu(gu[32 b + i]) * gu[32 b + 16 + i], b < blocks.
     */
    void (*silu_mul_16)(float *out, const float *gu, size_t blocks);

    /*
     * Indices of the k largest of x[0..n), largest first; of equal values the
     * lower index first; NaN sorts below everything. k <= n.
     */
    void (*topk_f32)(uint32_t *idx, const float *x, size_t n, size_t k);

    /* Conversions of n elements; to f16, bf16 and e4m3 as in formats/dtype.h. */
    void (*bf16_f32)(float *out, const uint16_t *x, size_t n);
    void (*f16_f32)(float *out, const uint16_t *x, size_t n);
    void (*e4m3_f32)(float *out, const uint8_t *x, size_t n);
    void (*f32_bf16)(uint16_t *out, const float *x, size_t n);
    void (*f32_f16)(uint16_t *out, const float *x, size_t n);
    void (*f32_e4m3)(uint8_t *out, const float *x, size_t n);

    /*
     * Group quantisation of n values (n = cols of one row, group divides n) to
     * INT4, symmetric, as compressed-tensors does it with F32 division:
     * scale = bf16(absmax / 7.5), or 2^-7 when that is 0; q = clamp(rint(x /
     * scale), -8, 7). codes: n / 2 bytes, even element in the low nibble, as
     * u4 = q + 8 (eight to a little-endian word: pack-quantized's own order).
     * The group is even. Returns the number of values that are NaN or infinite;
     * their group then has scale NaN and codes q = 0.
     * quant_i4_f16: weights and scales in F16 (zero scale 2^-10).
     */
    size_t (*quant_i4_bf16)(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n,
        size_t group);
    size_t (*quant_i4_f16)(uint8_t *codes, uint16_t *scale, const uint16_t *x, size_t n,
        size_t group);
    size_t (*quant_i4_f32)(uint8_t *codes, uint16_t *scale, const float *x, size_t n,
        size_t group);      /* scales BF16 */
    /*
     * The same to INT8 codes (int8), scale = bf16(absmax / 127.5); group = n
     * for one scale a row.
     */
    size_t (*quant_i8_bf16)(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n,
        size_t group);
    size_t (*quant_i8_f16)(int8_t *codes, uint16_t *scale, const uint16_t *x, size_t n,
        size_t group);
    size_t (*quant_i8_f32)(int8_t *codes, uint16_t *scale, const float *x, size_t n,
        size_t group);

    /* out = (u4 - 8) * scale; codes and scales as above. f16: type of the scales. */
    void (*dequant_i4)(float *out, const uint8_t *codes, const uint16_t *scale, size_t n,
        size_t group, int f16);

    /*
     * Error sums of a reconstruction: s[0] += sum x^2, s[1] += sum (x - y)^2 in
     * double over 16 lanes, s[2] = max(s[2], max |x - y|).
     */
    void (*err_f32)(double s[3], const float *x, const float *y, size_t n);

    /*
     * Grids with a given scale (not 0, finite; x finite). range_f32: mm = the
     * smallest and largest of x and 0; returns how many are NaN or infinite
     * (mm then means nothing). codes_int: q = clamp(x / scale + zero, lo, hi)
     * to nearest even, lo >= -128, hi <= 127 whole. codes_e2m1: a code a byte,
     * sign << 3 | index, ties to the even index, a negative value that becomes
     * 0 keeps its sign.
     */
    size_t (*range_f32)(float mm[2], const float *x, size_t n);
    void (*codes_int)(int8_t *q, const float *x, size_t n, float scale, float zero, float lo,
        float hi);
    void (*codes_e2m1)(uint8_t *q, const float *x, size_t n, float scale);

    /*
     * The error a scale would give: sum of h (x - q scale)^2 in 16 lanes of
     * float, q from x * (1 / scale); h NULL: all 1. For searches.
     */
    float (*err_int)(const float *x, const float *h, size_t n, float scale, float lo, float hi);
    float (*err_e2m1)(const float *x, const float *h, size_t n, float scale);

    /*
     * SHA-256 compression (FIPS 180-4, section 6.2.2) over `blocks` 64-byte
     * blocks of one stream, and of two independent streams of equal length
     * interleaved. NULL when the processor has no SHA extensions: OpenSSL's
     * EVP is used then, and is the reference of the tests.
     */
    void (*sha256_x1)(uint32_t state[8], const void *p, size_t blocks);
    void (*sha256_x2)(uint32_t a[8], const void *pa, uint32_t b[8], const void *pb,
        size_t blocks);

    /* Exclusive or of n words: a checksum that rolls, and memory's plain reader. */
    uint64_t (*xor_u64)(const uint64_t *x, size_t n);

    /* CRC32C (Castagnoli) of n bytes, continuing from crc; RFC 3720 B.4. */
    uint32_t (*crc32c)(uint32_t crc, const void *p, size_t n);
};

/* The table for this processor; filled on the first call, any thread. */
const struct moe_kernels *moe_kernels(void);

/* The table of a tier by name, or NULL if the processor lacks it: for tests. */
const struct moe_kernels *moe_kernels_tier(const char *tier);

#endif
