/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a better scale of one group. What is returned never has a
 * larger (weighted) error than what was given. n values x, weights h or NULL.
 */
#ifndef CMD_QUANT_SEARCH_H
#define CMD_QUANT_SEARCH_H

#include "cmd/moe-quant/quant_scheme.h"

/* Symmetric whole numbers: the stored scale. mm: smallest and largest value. */
uint16_t quant_search_int(const struct quant_scheme *s, const float *x, const float *h, size_t n,
    const float mm[2], uint16_t scale);

/* The same with a zero point, which is changed with it. */
uint16_t quant_search_asym(const struct quant_scheme *s, const float *x, const float *h,
    size_t n, const float mm[2], uint16_t scale, int *zero);

/* E2M1 with a power of two, and with an E4M3 scale over a divisor. */
uint8_t quant_search_mxfp4(const float *x, const float *h, size_t n, uint8_t scale);
uint8_t quant_search_nvfp4(const struct quant_scheme *s, const float *x, const float *h,
    size_t n, float global, uint8_t scale);

/* The scale and zero point of a range, as compressed-tensors computes them. */
uint16_t quant_search_range(const struct quant_scheme *s, float lo, float hi, int *zero);

#endif
