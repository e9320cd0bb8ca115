/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic over the elements of tensors whatever float type they have: to
 * double and back with one rounding, sums of squares in a fixed order, the
 * factor that clips a norm. Bulk work in float is the kernels'.
 */
#ifndef MOE_FORMATS_BLEND_H
#define MOE_FORMATS_BLEND_H

#include <stdbool.h>
#include <stddef.h>

#include "common/formats/dtype.h"

/* Tensors are worked on in pieces of so many elements; sums depend on it. */
#define MOE_BLEND_PIECE ((size_t)1 << 18)

/* F64, F32, BF16 and F16: values that stand for themselves, without a scale beside them. */
bool moe_blend_takes(enum moe_dtype t);

/* n elements to double, exactly. Returns how many are NaN or infinite. */
size_t moe_blend_load(enum moe_dtype t, const void *p, size_t n, double *out);

/*
 * n doubles to elements, each rounded once, to nearest even. Returns how many
 * are NaN or infinite as elements.
 */
size_t moe_blend_store(enum moe_dtype t, const double *x, size_t n, void *out);

/* Sum of squares of one piece in 16 lanes and a tree, as kernels.h has it, without fma. */
double moe_blend_squares(const double *x, size_t n);

/*
 * The factor that takes a gradient of this norm to `most`, as PyTorch's
 * clip_grad_norm_ computes it in float: min(1, (1 / (norm + 1e-6)) * most). A
 * norm that no float holds is clipped in double.
 */
float moe_blend_clip(double norm, double most);

#endif
