/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a model over a batch of rows from any mixture of sequences: a
 * whole prompt, a piece of one, one token of each of many are the same call.
 * Nothing in a row's arithmetic depends on the other rows, on the order of
 * rows, on the cut of a prompt into steps or on the number of threads.
 *
 * A forward is the working space of one thread of steps; the model is shared.
 */
#ifndef MOE_ENGINE_FORWARD_H
#define MOE_ENGINE_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/engine/kv.h"
#include "common/engine/model.h"
#include "common/engine/rope.h"

#define MOE_FORWARD_ROWS 512    /* rows of a step that pay for themselves */

struct moe_row {
    const struct moe_kv_seq *seq;   /* grown past pos; positions below pos are computed */
    const struct moe_rope *rope;
    uint32_t pos, token;
    bool want;                      /* logits are asked for */
};

/*
 * What goes into a weight matrix: calibration, importance and routing traces
 * all hang here. Called once a matrix and step, on the thread of the step.
 */
struct moe_observed {
    enum moe_weight weight;
    size_t layer;
    size_t expert;          /* of expert weights, else 0 */
    const float *x;         /* [n][ld], width cols: the rows that enter the matrix */
    size_t n, ld, cols;
    const uint32_t *row;    /* [n] which row of the step each one is */
    const float *share;     /* [n] routing weight, or NULL when it is no expert */
};

struct moe_observer {
    void (*fn)(void *ctx, const struct moe_observed *o);
    void *ctx;
};

struct moe_forward;

/* rows: most rows of a step (1..65536). Errors: MOE_ENOMEM, MOE_EUSAGE. */
int moe_forward_new(const struct moe_model *m, size_t rows, enum moe_arith arith,
    struct moe_forward **out, struct moe_err *e);
void moe_forward_free(struct moe_forward *f);

/* Bytes on the device of the working space of so many rows; of the model only numbers are read. */
uint64_t moe_forward_bytes(const struct moe_model *m, size_t rows);

const struct moe_model *moe_forward_model(const struct moe_forward *f);
size_t moe_forward_rows(const struct moe_forward *f);

/* o is borrowed; NULL: none. Gate and up of one expert are told apart, with the same x. */
void moe_forward_observe(struct moe_forward *f, const struct moe_observer *o);

/*
 * A gate of noise (arXiv 1611.01144): scores of experts become (score + g) /
 * temperature, g drawn from a standard Gumbel distribution by seed, layer,
 * position, token and expert, before the family's router sees them. temperature
 * 0 = no noise, the default.
 */
struct moe_forward_gate { double temperature; uint64_t seed; };

/* temperature 0, or 1e-3 to 1e3. Errors: MOE_EUSAGE. */
int moe_forward_noise(struct moe_forward *f, struct moe_forward_gate g, struct moe_err *e);

/* Logits [vocab] of row i of the step; a negative result ends the step with it. */
typedef int moe_forward_fn(void *ctx, size_t i, const float *logits, struct moe_err *e);

/*
 * Compute n rows: keys and values go to their sequences, logits of the wanted
 * rows to fn in order of the rows. Rows of one sequence stand in ascending
 * order of position. fn may be NULL when nothing is wanted. Errors: MOE_EUSAGE
 * (too many rows, token out of the vocabulary), the device's, fn's, MOE_ESTOP.
 */
int moe_forward_step(struct moe_forward *f, const struct moe_row *rows, size_t n,
    moe_forward_fn *fn, void *ctx, struct moe_err *e);

#endif
