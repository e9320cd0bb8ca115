/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a matrix to the bytes of a scheme. Threads work on different rows. */
#ifndef CMD_QUANT_ENCODE_H
#define CMD_QUANT_ENCODE_H

#include "cmd/moe-quant/quant_scheme.h"

/* What a quantisation did to some values. Sums are of squares; xy of products. */
struct quant_stats {
    double xx, yy, ee, max_err;
    double wx, we;              /* xx and ee, weighted */
    uint64_t values, groups, zero_groups, clipped, nan_zeroed;
    float scale_min, scale_max; /* of magnitudes */
};

struct quant_encode {
    const struct quant_scheme *s;
    const float *x;             /* [rows][cols], finite */
    const float *h;             /* [cols]: weights of the squared errors, or NULL */
    uint64_t rows, cols;        /* whole strips, but at the end of the matrix */
    float range;                /* if quant_scheme_needs_range(): the largest magnitude */
    bool given;                 /* scale, zero and global hold what is to be used */
    float global;               /* of NVFP4 */
    unsigned char *data;        /* out: codes as they are stored */
    unsigned char *scale;       /* out: scales as they are stored */
    int8_t *zero;               /* [rows][groups] out, if asym */
    float *y;                   /* [rows][cols] out, if not NULL: the decoded values */
    struct quant_stats stats;   /* added to, if y: groups, clipped, scales */
};

void quant_encode_run(struct quant_encode *w);

/* Bytes of a row of codes, and of one scale. */
size_t quant_encode_row(const struct quant_scheme *s, uint64_t cols);
size_t quant_encode_scale(const struct quant_scheme *s);

/* Scale i, of those chosen or given, as it is multiplied with. */
float quant_encode_scale_at(const struct quant_encode *w, size_t i);

/* The one F32 of NVFP4 for a matrix, or group of matrices, of that magnitude. */
float quant_encode_global(float range);

/* Zero points [rows][groups] packed down the rows, words of `bits`-bit codes. */
void quant_encode_zeros(uint32_t *out, const int8_t *zero, uint64_t rows, uint64_t groups,
    int bits);

/* A stored scale of QUANT_SCALE_FLOAT: rounding, with the epsilon for 0. */
uint16_t quant_encode_round(float scale, enum moe_dtype t);
float quant_encode_widen(uint16_t scale, enum moe_dtype t);

/* x rounded to BF16 or F16, as float. */
float quant_encode_step(float x, enum moe_dtype t);

/* Add b to a, in order. */
void quant_encode_merge(struct quant_stats *a, const struct quant_stats *b);

#endif
