/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece of the work: some rows of one matrix, or some bytes of a copied
 * tensor. Pieces do not depend on the number of threads, so nothing that is
 * summed over them does. Threads work on different tiles, each with a desk.
 */
#ifndef CMD_QUANT_TILE_H
#define CMD_QUANT_TILE_H

#include "cmd/moe-quant/quant_encode.h"
#include "cmd/moe-quant/quant_plan.h"

#define QUANT_TILE_BYTES ((size_t)64 << 10) /* of input, but at least a strip of rows */
#define QUANT_TILE_VALUES ((uint64_t)32 << 10)

/* Bytes that any tile of a plan needs. */
struct quant_tile_caps { size_t in, data, scale, zero, values, cols; };

struct quant_tile {
    const struct quant_plan_item *item;
    uint64_t at;                /* copied: bytes from the start of the item */
    size_t len;                 /* bytes of input: in `in`, if they are plain */
    uint64_t row, rows;         /* of a matrix */
    bool last;                  /* of the item */
    unsigned char *in;
    unsigned char *data, *scale;
    int8_t *zero;
    size_t bad;                 /* values that are NaN or infinite */
    size_t first_bad;           /* index of the first, within the tile */
    struct quant_stats stats;
    int rc;
    struct moe_err err;
};

/* What a thread works with. */
struct quant_desk { float *x, *y, *h, *adjusted, *work; struct quant_scratch scratch, lora; };

/* Rows of a tile of x. */
uint64_t quant_tile_rows(const struct quant_plan_item *x);

/* Raise c to what item x needs. */
void quant_tile_need(struct quant_tile_caps *c, const struct quant_plan_item *x);

int quant_tile_init(struct quant_tile *t, const struct quant_tile_caps *c, struct moe_err *e);
void quant_tile_fini(struct quant_tile *t);
int quant_tile_desk(struct quant_desk *d, const struct quant_tile_caps *c, bool measure,
    struct moe_err *e);
void quant_tile_desk_fini(struct quant_desk *d);

/*
 * Encode t's rows: from t->in if the input is direct, else from s. measure: the
 * figures of the report. On failure t->rc and t->err say why.
 */
void quant_tile_work(struct quant_tile *t, struct moe_source *s, const struct quant_plan *p,
    bool measure, struct quant_desk *d);

/* The rows as float in d->x; the number of values that are NaN or infinite. */
int quant_tile_load(struct quant_tile *t, struct moe_source *s, const struct quant_plan *p,
    struct quant_desk *d);

#endif
