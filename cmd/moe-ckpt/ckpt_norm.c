/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what ckpt_norm.h says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_norm.h"

struct named { const char *name; size_t i; };

static int
compare(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int
add_tensor(struct ckpt_peers *p, size_t k, size_t base, size_t i, double *x, double *y,
    double *sum, struct moe_err *e)
{
    uint64_t count = ckpt_peers_count(ckpt_peers_at(p, k, i));
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < count;) {
        size_t n = count - at < MOE_BLEND_PIECE ? (size_t)(count - at) : MOE_BLEND_PIECE;

        if (base != SIZE_MAX)
            rc = ckpt_peers_read(p, base, i, at, n, y, e);
        if (rc == 0 && (rc = ckpt_peers_read(p, k, i, at, n, x, e)) == 0) {
            for (size_t j = 0; base != SIZE_MAX && j < n; j++)
                x[j] -= y[j];
            *sum += moe_blend_squares(x, n);
        }
        at += n;
    }
    return rc;
}

int
ckpt_norm(struct ckpt_peers *p, size_t k, size_t base, double *x, double *y, double *norm,
    struct moe_err *e)
{
    struct named *order = calloc(p->tensors, sizeof(*order));
    double sum = 0;
    int rc = 0;

    if (order == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < p->tensors; i++)
        order[i] = (struct named){ ckpt_peers_at(p, k, i)->name, i };
    qsort(order, p->tensors, sizeof(*order), compare);
    for (size_t i = 0; rc == 0 && i < p->tensors; i++) {
        if (moe_blend_takes(ckpt_peers_at(p, k, order[i].i)->dtype))
            rc = add_tensor(p, k, base, order[i].i, x, y, &sum, e);
    }
    free(order);
    *norm = sqrt(sum);
    if (rc == 0 && !isfinite(*norm))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: its norm is no number", moe_source_path(p->s[k]));
    return rc;
}
