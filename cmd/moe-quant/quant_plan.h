/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What will be done to each tensor of a model, and every byte of what will be
 * written but the data: decided before anything is read or written.
 */
#ifndef CMD_QUANT_PLAN_H
#define CMD_QUANT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/naming.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

#define QUANT_PLAN_MAX_LAYERS 100000
#define QUANT_PLAN_MAX_ROW ((uint64_t)16 << 20)     /* bytes of one row */
#define QUANT_PLAN_MAX_SCALES ((uint64_t)64 << 20)  /* bytes of scales of one matrix, in memory */
#define QUANT_PLAN_BIG ((uint64_t)1 << 20)  /* bytes a tensor that nothing knows may not have */
#define QUANT_PLAN_SHARD UINT64_C(5000000000)

struct quant_plan_options {
    int bits;                   /* 4 or 8 */
    uint64_t group;             /* 32, 64, 128; 0 = the largest that divides */
};

/* A tensor that is kept, or one matrix that is quantised (a stack gives several). */
struct quant_plan_item {
    size_t src;                 /* tensor of the source */
    uint64_t at, len;           /* bytes of it */
    bool quantised;
    uint64_t rows, cols;        /* of the matrix */
    uint64_t group;
    enum moe_dtype dtype;       /* of the source */
    const char *name;           /* kept: the tensor's; else the matrix's without ".weight" */
    enum moe_role role;
    enum moe_proj proj;
    int layer, expert;
    size_t out;                 /* first of its 1 or 3 tensors in the output */
};

struct quant_plan {
    struct quant_plan_options opt;
    struct quant_plan_item *items;
    size_t n, cap;
    struct moe_tensor *out;     /* in the order of their data */
    size_t n_out;
    uint64_t *layer_group;      /* [layers]: of the experts of each layer, 0 = none */
    size_t layers;
    struct moe_buf config;      /* text of the new config.json; empty = there is none */
    const char *meta[3];
    struct moe_sink_plan sink;
    struct moe_arena arena;
};

/*
 * Decide. dst is as for moe_sink_open(). p may hold something on failure too:
 * quant_plan_free() it. Errors: MOE_EUNSUP (already quantised, nothing loads
 * it), MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM.
 */
int quant_plan_make(struct moe_source *s, const char *dst, struct quant_plan_options opt,
    struct quant_plan *p, struct moe_err *e);
void quant_plan_free(struct quant_plan *p);

/* Bytes an item becomes. */
uint64_t quant_plan_bytes(const struct quant_plan *p, const struct quant_plan_item *t);

/* Whether a path names a directory as an output. */
bool quant_plan_is_dir(const char *dst);

#endif
