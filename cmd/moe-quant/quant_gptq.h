/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPTQ (Frantar et al., arXiv 2210.17323): columns are rounded one by one, those
 * that move the output most first, and what is lost is made good in the columns
 * still to come. Scales stay those of the values before ("static groups"), so that
 * the order leaves no trace in what is stored.
 */
#ifndef MOE_QUANT_GPTQ_H
#define MOE_QUANT_GPTQ_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-quant/quant_encode.h"
#include "common/base/err.h"

#define QUANT_GPTQ_DAMP 0.01    /* of the mean of the diagonal, added to it */

/* What adjusting needs of a matrix's inputs. */
struct quant_gptq {
    size_t cols;
    const uint32_t *order;      /* [cols] columns, the largest moment first */
    const float *u;             /* [cols][cols] upper: inverse of the moments = U^T U, in order */
};

/* Bytes of work space for so many columns. */
uint64_t quant_gptq_space(size_t cols);

/*
 * From the sums of products of inputs, h [cols][cols] (upper triangle, not zero), U into u
 * [cols][cols] and the order. Errors: MOE_ENOMEM, MOE_EFORMAT (sums that are no numbers).
 */
int quant_gptq_factor(const float *h, size_t cols, float *u, uint32_t *order, struct moe_err *e);

/*
 * Rows [w->rows][w->cols] x, whose scales and zero points w has already, to the values whose
 * plain rounding gives the codes. x in w is not looked at; work: [cols] floats a row.
 */
void quant_gptq_adjust(const struct quant_gptq *g, const struct quant_encode *w, float *x,
    float *work);

#endif
