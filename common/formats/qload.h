/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of a module to its weight: which tensors hold it, in which
 * encoding, and the struct moe_qmat over their bytes. The tensors decide what
 * is there (a BF16 weight is plain whatever the configuration says); the scheme
 * tells how packed ones are to be read.
 */
#ifndef MOE_FORMATS_QLOAD_H
#define MOE_FORMATS_QLOAD_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"
#include "common/formats/qscheme.h"
#include "common/formats/safet.h"
#include "common/formats/source.h"

/* Where tensors come from. */
struct moe_qload_from {
    void *ctx;
    const char *name;           /* of the model, for messages */
    /* NULL if there is no such tensor. */
    const struct moe_tensor *(*find)(void *ctx, const char *tensor);
    /* Bytes [at, at + len) of a tensor, valid as long as the source; NULL when only parts are asked. */
    int (*bytes)(void *ctx, const struct moe_tensor *t, uint64_t at, uint64_t len,
        const void **p, struct moe_err *e);
};

struct moe_qload_part {
    const struct moe_tensor *t; /* NULL: the encoding has no such part */
    uint64_t at, len;           /* its bytes within the tensor */
};

struct moe_qload_parts {
    struct moe_qload_part data, scale, zero, g_idx, global, shape;
};

/*
 * The tensors of a module's weight, and *m but for its pointers and `global`,
 * without reading any data. expert >= 0: the module is a stack of all experts
 * (one dimension more), and that one is meant. Two-dimensional shapes are
 * [rows][cols] of m as stored: a transposed stack stays transposed. With a
 * ragged row of packed codes and one scale a row, cols counts the padding until
 * moe_qload_qmat() has seen weight_shape. Errors: MOE_ENOENT (no weight),
 * MOE_EFORMAT (a part is missing, shapes disagree), MOE_EUNSUP.
 */
int moe_qload_parts(const struct moe_qscheme *s, const struct moe_qload_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_qload_parts *parts,
    struct moe_err *e);

/* The same with bytes, and checked: m can be decoded. */
int moe_qload_qmat(const struct moe_qscheme *s, const struct moe_qload_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_err *e);

/*
 * The same from a source, mapped (files only); in a GGUF file the module is a
 * tensor's name without ".weight". m lives as long as src.
 */
int moe_qload_source(const struct moe_qscheme *s, struct moe_source *src, const char *module,
    int64_t expert, struct moe_qmat *m, struct moe_err *e);

#endif
