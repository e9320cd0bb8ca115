/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of an average of weights: a model of F32 whose tensors have a
 * residual beside them, and how it came about in its metadata (moe-ema(5)).
 */
#ifndef CMD_CKPT_AVERAGE_H
#define CMD_CKPT_AVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/dtype.h"
#include "common/formats/source.h"

#define CKPT_AVERAGE_MAX_COUNT (INT64_C(1) << 53)

/* What the average begins with: the first model, zero, or the first and small decays. */
enum ckpt_average_bias { CKPT_AVERAGE_FIRST, CKPT_AVERAGE_ZERO, CKPT_AVERAGE_WARMUP };

struct ckpt_average {
    double decay;
    enum ckpt_average_bias bias;
    int64_t count;              /* updates so far; -1: nothing is there yet */
};

/* The name of a bias, and the opposite; false if there is none. */
const char *ckpt_average_bias_name(enum ckpt_average_bias bias);
bool ckpt_average_bias_find(const char *name, enum ckpt_average_bias *bias);

/* What the metadata of a state says. Errors: MOE_EFORMAT. */
int ckpt_average_read(const struct moe_source *s, struct ckpt_average *a, struct moe_err *e);

/* The weight of the next model, 1 - decay or more; counts it. */
double ckpt_average_step(struct ckpt_average *a);

/* What the sum is divided by: below 1 as long as an average that began with zero is short. */
double ckpt_average_divisor(const struct ckpt_average *a);

/*
 * The residual of tensor i of a state and the type its models have it in.
 * *residual is SIZE_MAX for a tensor that is not averaged, and for a residual
 * itself *own becomes false. Errors: MOE_EFORMAT (not as states are).
 */
int ckpt_average_residual(const struct moe_source *s, size_t i, size_t *residual,
    enum moe_dtype *type, bool *own, struct moe_err *e);

/* The name of the residual of a tensor; to be freed; NULL: no memory. */
char *ckpt_average_name(const char *tensor, enum moe_dtype type);

/* Whether a name is kept for states. */
bool ckpt_average_reserved(const char *tensor);

#endif
