/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An importance matrix of llama.cpp: mean squares of what each matrix was
 * multiplied with, column by column, expert by expert. Two forms are read: the
 * older .dat, and GGUF. Values stay in the file; only their places and means
 * are kept. Threads may read.
 */
#ifndef CMD_QUANT_IMATRIX_H
#define CMD_QUANT_IMATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/naming.h"

#define QUANT_IMATRIX_MAX_ENTRIES 1000000
#define QUANT_IMATRIX_MAX_EXPERTS 65536
#define QUANT_IMATRIX_MAX_NAME 512

struct quant_imatrix;

/* Errors: MOE_EIO, MOE_EFORMAT (also values that are negative or no numbers), MOE_ENOMEM. */
int quant_imatrix_open(const char *path, struct quant_imatrix **out, struct moe_err *e);
void quant_imatrix_close(struct quant_imatrix *m);

/* Weights of a matrix: where they are, and what makes their mean 1. */
struct quant_weights { size_t entry; uint64_t at; float times; };

enum quant_imatrix_found { QUANT_IMATRIX_NONE, QUANT_IMATRIX_HERE, QUANT_IMATRIX_DEAD };

/*
 * The weights of a matrix of `cols` columns; gate and up have the same input
 * and stand in for each other. DEAD: the expert saw nothing. Errors:
 * MOE_EFORMAT (another number of columns).
 */
int quant_imatrix_find(const struct quant_imatrix *m, enum moe_role role, enum moe_proj proj,
    int layer, int expert, uint64_t cols, struct quant_weights *w,
    enum quant_imatrix_found *found, struct moe_err *e);

/* The cols weights. */
int quant_imatrix_read(const struct quant_imatrix *m, const struct quant_weights *w,
    uint64_t cols, float *h, struct moe_err *e);

#endif
