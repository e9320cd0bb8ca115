/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name of a module to the tensors of its weight. The tensors decide
 * what is there (a BF16 weight is plain whatever the configuration says); the
 * scheme tells how packed ones are to be read. No data is read: readers of
 * streams plan with this.
 */
#ifndef MOE_FORMATS_QPARTS_H
#define MOE_FORMATS_QPARTS_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"
#include "common/formats/qscheme.h"
#include "common/formats/safet.h"

#define MOE_QPARTS_NAME 1024    /* bytes of a tensor's name: a module's and a suffix */

/* Where tensors come from. */
struct moe_qparts_from {
    void *ctx;
    const char *name;           /* of the model, for messages */
    /* NULL if there is no such tensor. */
    const struct moe_tensor *(*find)(void *ctx, const char *tensor);
    /*
     * Bytes [at, at + len) of a tensor, valid as long as the source. Only
     * qload.h needs it.
     */
    int (*bytes)(void *ctx, const struct moe_tensor *t, uint64_t at, uint64_t len,
        const void **p, struct moe_err *e);
};

struct moe_qpart {
    const struct moe_tensor *t; /* NULL: the encoding has no such part */
    uint64_t at, len;           /* its bytes within the tensor */
};

struct moe_qparts {
    struct moe_qpart data, scale, zero, g_idx, global, shape;
};

/*
 * The tensors of a module's weight, and *m but for its pointers and `global`.
 * expert >= 0: the module is a stack of all experts (one dimension more), and
 * that one is meant. The shape of m is as stored: a transposed stack stays
 * transposed. With one scale a row of packed codes, cols counts the padding of
 * the last word; weight_shape has the true number. Errors: MOE_ENOENT (no
 * weight), MOE_EFORMAT (a part is missing, shapes or configuration disagree),
 * MOE_EUNSUP.
 */
int moe_qparts_find(const struct moe_qscheme *s, const struct moe_qparts_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_qparts *parts,
    struct moe_err *e);

#endif
