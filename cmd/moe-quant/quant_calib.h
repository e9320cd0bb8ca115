/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the matrices of a model are multiplied with when it reads a text: the
 * engine runs it, once or in several passes, so that the sums of products of
 * inputs that are held at once stay within the memory allowed; what GPTQ needs of
 * them waits in a file of no name.
 */
#ifndef MOE_QUANT_CALIB_H
#define MOE_QUANT_CALIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-quant/quant_gptq.h"
#include "cmd/moe-quant/quant_plan.h"
#include "common/base/err.h"
#include "common/base/pool.h"

#define QUANT_CALIB_FEW 64      /* tokens below which a matrix is not calibrated */

struct quant_calib_options {
    const char *text;           /* a file */
    uint64_t memory;            /* bytes for sums and their work space */
    uint64_t tokens;            /* of the text that are read at most; 0: all */
    const char *imatrix;        /* write an importance matrix there, or NULL */
    bool factors;               /* what GPTQ needs is kept */
    bool force, quiet;
    int threads;
};

struct quant_calib;

/*
 * model: the directory that the plan is of; every matrix of whole numbers in it is looked at.
 * Errors: the engine's, MOE_ELIMIT (a matrix does not fit in the memory), MOE_EIO, MOE_ENOMEM.
 */
int quant_calib_run(const char *model, const struct quant_plan *p,
    const struct quant_calib_options *o, struct quant_calib **out, struct moe_err *e);
void quant_calib_free(struct quant_calib *c);

/* What an item's rows are adjusted by; false: too few tokens came to it, or it is not of those. */
bool quant_calib_find(const struct quant_calib *c, const struct quant_plan_item *x,
    struct quant_gptq *out);

/* Name on stderr what too few tokens came to; of many, the first. */
void quant_calib_tell(const struct quant_calib *c);

#endif
