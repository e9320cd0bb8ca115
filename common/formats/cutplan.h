/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole model's tensors on a grid of ranks: which stage each belongs to, how
 * it is cut, what each rank gets. Follows from the names, shapes, configuration
 * and grid alone, so that it can be made again from the headers.
 */
#ifndef MOE_FORMATS_CUTPLAN_H
#define MOE_FORMATS_CUTPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/config.h"
#include "common/formats/cut.h"
#include "common/formats/gguf.h"
#include "common/formats/grid.h"
#include "common/formats/scatter.h"

struct moe_cutplan_item {
    const struct moe_tensor *t;
    struct moe_naming naming;
    struct moe_scatter scatter;
    bool first_stage, last_stage, every_stage;  /* else that of its layer */
};

struct moe_cutplan {
    size_t n;
    struct moe_cutplan_item *items;     /* in the order of the tensors given */
    size_t *by_name;                    /* indices, names ascending */
    const struct moe_grid *grid;
};

struct moe_cutplan_in {
    const char *name;                   /* of the model, for messages */
    const struct moe_tensor *const *t;  /* [n]; tensors and names outlive the plan */
    size_t n;
    const struct moe_config *config;    /* NULL: none; then tp must be 1 */
    const struct moe_gguf *gguf;        /* the types of a GGUF file's tensors, or NULL */
    const struct moe_grid *grid;        /* outlives the plan */
    enum moe_cut_spread spread;
    /* Whether the g_idx of tensor i is in no order (act-order); NULL: none is. */
    int (*act_order)(void *ctx, size_t i, uint64_t group, bool *yes, struct moe_err *e);
    void *ctx;
};

/*
 * Errors: MOE_EUNSUP (a tensor that cannot be cut so, no rule for a name),
 * MOE_EFORMAT (shapes against the configuration), MOE_ENOMEM.
 */
int moe_cutplan_make(const struct moe_cutplan_in *in, struct moe_cutplan *out,
    struct moe_err *e);
void moe_cutplan_free(struct moe_cutplan *p);

/* Index of a tensor by name, or SIZE_MAX. */
size_t moe_cutplan_find(const struct moe_cutplan *p, const char *name);

/* Whether stage pp has item i. */
bool moe_cutplan_on_stage(const struct moe_cutplan *p, size_t i, uint32_t pp);

/* Shape and bytes of what rank (pp, ep, tp) has of item i; false: nothing. */
bool moe_cutplan_part(const struct moe_cutplan *p, size_t i, uint32_t pp, uint32_t ep,
    uint32_t tp, uint64_t shape[MOE_SAFET_MAX_RANK], uint64_t *bytes);

#endif
