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

#include "cmd/moe-quant/quant_imatrix.h"
#include "cmd/moe-quant/quant_input.h"
#include "cmd/moe-quant/quant_lora.h"
#include "cmd/moe-quant/quant_policy.h"
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/naming.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

#define QUANT_PLAN_MAX_LAYERS 100000
#define QUANT_PLAN_MAX_STRIP ((uint64_t)4 << 20)    /* values of rows that belong together */
#define QUANT_PLAN_MAX_SCALES ((uint64_t)64 << 20)  /* bytes of scales of one matrix, in memory */
#define QUANT_PLAN_BIG ((uint64_t)1 << 20)  /* bytes a tensor that nothing knows may not have */
#define QUANT_PLAN_SHARD UINT64_C(5000000000)

struct quant_calib;

struct quant_plan_options {
    struct quant_policy_options policy;
    const char *policy_file, *imatrix_file, *lora_dir;    /* or NULL */
    bool nan_zero;              /* NaN and infinity become 0, counted */
    bool plain;                 /* --dequant: everything comes out plain, nothing is required */
};

/* A tensor that is copied, or one matrix that is written anew (a stack gives several). */
struct quant_plan_item {
    size_t src;                 /* tensor of the source (of the codes) */
    uint64_t len;               /* bytes of it that this takes */
    struct quant_scheme scheme; /* codec NULL: copied */
    bool redeal;                /* codes and scales are the source's own */
    struct quant_input in;      /* unless copied */
    uint64_t rows, cols;        /* of the matrix */
    enum moe_dtype dtype;       /* of the source */
    const char *name;           /* copied: the tensor's; else the matrix's without ".weight" */
    enum moe_role role;
    enum moe_proj proj;
    int layer, expert;
    size_t out;                 /* first of its tensors in the output */
    size_t range;               /* which of plan.ranges, if the scheme needs one */
    enum quant_imatrix_found found; /* HERE: errors are weighted by what follows */
    struct quant_weights weights;
    size_t lora;                /* the pair that is added, from 1; 0: none */
};

struct quant_plan {
    struct quant_plan_options opt;
    struct quant_policy *policy;
    struct quant_imatrix *imatrix;
    struct quant_lora *lora;
    const struct quant_calib *calib;    /* what GPTQ rounds by, or NULL; borrowed */
    struct moe_qscheme *scheme; /* of the source */
    struct quant_plan_item *items;
    size_t n, cap;
    unsigned char *used;        /* [tensors of the source]: enum quant_plan_use */
    struct moe_tensor *out;     /* in the order of their data */
    size_t n_out;
    float *ranges;              /* [n_ranges]: filled by quant_run's first pass */
    size_t n_ranges;
    struct moe_buf config;      /* text of the new config.json; empty = there is none */
    const char *meta[3];
    struct moe_sink_plan sink;
    struct moe_arena arena;
    bool odd_names;             /* of experts that no released loader takes one by one */
};

enum quant_plan_use { QUANT_USE_NONE, QUANT_USE_WRITTEN, QUANT_USE_COPIED, QUANT_USE_DROPPED };

/*
 * Decide. dst is as for moe_sink_open(). p may hold something on failure too:
 * quant_plan_free() it. Errors: MOE_EUNSUP (nothing loads it, nothing is known
 * of it), MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM.
 */
int quant_plan_make(struct moe_source *s, const char *dst, const struct quant_plan_options *opt,
    struct quant_plan *p, struct moe_err *e);
void quant_plan_free(struct quant_plan *p);

/* Bytes an item becomes. */
uint64_t quant_plan_bytes(const struct quant_plan_item *t);

/* Whether it is stored in fewer bits, not only copied or decoded. */
bool quant_plan_quantised(const struct quant_plan_item *t);

/* Tensors of the source with that use. */
size_t quant_plan_count(const struct quant_plan *p, const struct moe_source *s,
    enum quant_plan_use use);

/* Whether a path names a directory as an output. */
bool quant_plan_is_dir(const char *dst);

#endif
