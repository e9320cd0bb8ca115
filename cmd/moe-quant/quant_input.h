/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix of the source as it is stored, in any encoding the suite reads, and
 * its rows as float: of one expert of a stack, of one half of gate and up, of
 * what is stored turned over. Only the rows that are asked for are read, so
 * memory does not grow with the matrix. Threads share an input; each has a
 * scratch of its own.
 */
#ifndef CMD_QUANT_INPUT_H
#define CMD_QUANT_INPUT_H

#include "cmd/moe-quant/quant_scheme.h"
#include "common/formats/naming.h"
#include "common/formats/qparts.h"
#include "common/formats/source.h"

struct quant_input {
    struct moe_qmat m;          /* as stored; its pointers are not set */
    struct { size_t src; uint64_t at, len; } data, scale, zero, g_idx; /* src SIZE_MAX: none */
    bool transposed;            /* stored [in, out] */
    uint64_t first, step;       /* row r is stored as row (column) first + step * r */
    uint64_t rows, cols;        /* of what comes out */
};

struct quant_scratch { void *p[5]; size_t cap[5]; };

void quant_input_scratch_fini(struct quant_scratch *w);

/* Room for n bytes in slot i, or NULL; what it held is lost. */
void *quant_input_scratch(struct quant_scratch *w, int i, size_t n);

/*
 * Find the weight of module in s; expert as in moe_qparts_find(). The parts'
 * names go to used(ctx, tensor of s). A few bytes are read (shape, divisor).
 */
int quant_input_find(struct moe_source *s, const struct moe_qscheme *scheme, const char *module,
    int64_t expert, struct quant_input *in, void (*used)(void *ctx, size_t tensor), void *ctx,
    struct moe_err *e);

/* Turn over, or take every step-th row from first: after quant_input_find(). */
void quant_input_view(struct quant_input *in, bool transposed, uint64_t first, uint64_t step,
    uint64_t rows);

/* Whether rows lie as plain bytes one after another, so that they can be copied and streamed. */
bool quant_input_direct(const struct quant_input *in);

/* Rows that are best read together, so that nothing is read twice. */
uint64_t quant_input_strip(const struct quant_input *in);

/* Rows [row, row + n) to x [n][cols]. Errors: MOE_EIO, MOE_EFORMAT, MOE_ENOMEM. */
int quant_input_rows(struct moe_source *s, const struct quant_input *in, const char *name,
    uint64_t row, uint64_t n, struct quant_scratch *w, float *x, struct moe_err *e);

/*
 * Whether the codes of scheme t can be those of the source, scale by scale; sets
 * t->scale to the type of its scales.
 */
bool quant_input_same_grid(const struct quant_input *in, struct quant_scheme *t);

/*
 * The scales and zero points of the rows last read with w, as t stores them.
 * Only if quant_input_same_grid(), and rows begin and end with quant_input_strip().
 */
void quant_input_scales(const struct quant_input *in, const struct quant_scheme *t, uint64_t row,
    uint64_t n, const struct quant_scratch *w, unsigned char *scale, int8_t *zero);

#endif
