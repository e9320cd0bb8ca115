/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of safetensors, in the order of the reference library, and
 * exact conversions of single elements. Bulk conversions are kernels.
 */
#ifndef MOE_FORMATS_DTYPE_H
#define MOE_FORMATS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum moe_dtype {
    MOE_BOOL, MOE_F4, MOE_F6_E2M3, MOE_F6_E3M2, MOE_U8, MOE_I8,
    MOE_F8_E5M2, MOE_F8_E4M3, MOE_F8_E8M0, MOE_F8_E4M3FNUZ, MOE_F8_E5M2FNUZ,
    MOE_I16, MOE_U16, MOE_F16, MOE_BF16, MOE_I32, MOE_U32, MOE_F32,
    MOE_C64, MOE_F64, MOE_I64, MOE_U64,
    MOE_DTYPE_N
};

/* "BF16"; never NULL for a valid dtype. */
const char *moe_dtype_name(enum moe_dtype t);

/* Find by name of n bytes; false if there is none (case matters). */
bool moe_dtype_find(const char *name, size_t n, enum moe_dtype *t);

/* Bits of one element: 4, 6, 8 .. 64. */
unsigned moe_dtype_bits(enum moe_dtype t);

/* A type of real numbers (F4 .. F64 without C64). */
bool moe_dtype_is_float(enum moe_dtype t);

/*
 * One element to float, exactly (F64 rounds to nearest even). Encodings:
 * E4M3 is FN (max 448, NaN 7F/FF, no infinity), E5M2 IEEE-like, E8M0 is
 * 2^(e-127) with FF = NaN, F4 is E2M1 (OCP MX v1.0, section 5.3).
 */
float moe_dtype_bf16_f32(uint16_t v);
float moe_dtype_f16_f32(uint16_t v);
float moe_dtype_e4m3_f32(uint8_t v);
float moe_dtype_e5m2_f32(uint8_t v);
float moe_dtype_e8m0_f32(uint8_t v);
float moe_dtype_f4_f32(uint8_t v);        /* low 4 bits */

/*
 * Float to one element, nearest even. BF16 and F16 overflow to infinity as
 * IEEE 754 does; E4M3 and E5M2 saturate at 448 and 57344; NaN stays NaN
 * (E4M3 7F, E5M2 7F); F4 saturates at 6 and has no NaN (0 then). The sign of a
 * zero is kept.
 */
uint16_t moe_dtype_f32_bf16(float v);
uint16_t moe_dtype_f32_f16(float v);
uint8_t moe_dtype_f32_e4m3(float v);
uint8_t moe_dtype_f32_e5m2(float v);
uint8_t moe_dtype_f32_f4(float v);

/*
 * n elements of any float type at p to float. F4 and F6 are packed (F4: even
 * element in the low nibble; F6: 4 elements in 3 bytes, little-endian bits).
 * Reference loop; kernels have the fast ones. False for types that are no floats.
 */
bool moe_dtype_to_f32(enum moe_dtype t, const void *p, size_t n, float *out);

#endif
