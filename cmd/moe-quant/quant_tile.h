/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of the work: some rows of one matrix, or some bytes of a kept tensor.
 * Pieces do not depend on the number of threads, so nothing that is summed
 * over them does. Threads work on different tiles.
 */
#ifndef CMD_QUANT_TILE_H
#define CMD_QUANT_TILE_H

#include "cmd/moe-quant/quant_plan.h"

#define QUANT_TILE_BYTES ((size_t)64 << 10) /* of input, but at least a row */

/* What a quantisation did to some values. Sums are of squares. */
struct quant_tile_stats {
    double xx, ee, max_err;     /* values, errors, largest error */
    uint64_t values, groups, zero_groups, clipped;
    float scale_min, scale_max;
};

struct quant_tile {
    const struct quant_plan_item *item;
    uint64_t at;                /* bytes from the start of the item */
    size_t len;                 /* bytes of input */
    uint64_t row, rows;         /* of a matrix */
    bool last;                  /* of the item */
    unsigned char *in;          /* [cap] */
    uint8_t *codes;             /* [cap / 2] */
    uint16_t *scales;           /* [cap / 64] */
    size_t bad;                 /* values that are NaN or infinite */
    struct quant_tile_stats stats;
    int rc;
    struct moe_err err;
};

/* Memory of a tile for `cap` bytes of input. */
int quant_tile_init(struct quant_tile *t, size_t cap, struct moe_err *e);
void quant_tile_fini(struct quant_tile *t);

/* Bytes of codes and number of scales of a quantised tile. */
size_t quant_tile_codes(const struct quant_tile *t, int bits);
size_t quant_tile_scales(const struct quant_tile *t);

/* Quantise t->in to codes as they are stored, and scales; measure if asked to. */
void quant_tile_work(struct quant_tile *t, int bits, bool measure);

/* Add b to a, in the order of the tiles. */
void quant_tile_merge(struct quant_tile_stats *a, const struct quant_tile_stats *b);

/* Index of the first value of t that is NaN or infinite, within the tile. */
size_t quant_tile_first_bad(const struct quant_tile *t);

#endif
