/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the numbering of ranks and who holds which layer and expert.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/num.h"
#include "common/formats/grid.h"

int
moe_grid_check(const struct moe_grid *g, struct moe_err *e)
{
    uint64_t n;

    if (!moe_num_mul((uint64_t)g->tp * g->ep, g->pp, &n) || n < 1 || n > MOE_GRID_MAX)
        return moe_err_set(e, MOE_EUNSUP, "%" PRIu32 " x %" PRIu32 " x %" PRIu32 " ranks, not 1 to"
            " %d", g->tp, g->ep, g->pp, MOE_GRID_MAX);
    if (g->pp > 1 && g->layers < g->pp)
        return moe_err_set(e, MOE_EUNSUP, "%" PRIu64 " layers are fewer than %" PRIu32 " stages",
            g->layers, g->pp);
    if (g->ep > 1 && g->experts < g->ep && g->deal != MOE_GRID_MAP)
        return moe_err_set(e, MOE_EUNSUP, "%" PRIu64 " experts are fewer than %" PRIu32
            " expert-parallel ranks", g->experts, g->ep);
    return 0;
}

void
moe_grid_fini(struct moe_grid *g)
{
    free(g->owner);
    g->owner = NULL;
}

uint32_t
moe_grid_ranks(const struct moe_grid *g)
{
    return g->tp * g->ep * g->pp;
}

uint32_t
moe_grid_rank(const struct moe_grid *g, uint32_t pp, uint32_t ep, uint32_t tp)
{
    return (pp * g->ep + ep) * g->tp + tp;
}

/* Which of `parts` holds item i of n: n / parts each, the first n % parts one more. */
static uint64_t
part_of(uint64_t i, uint64_t n, uint64_t parts)
{
    uint64_t each = n / parts, more = n % parts, big = more * (each + 1);

    return i < big ? i / (each + 1) : more + (i - big) / each;
}

bool
moe_grid_holds(const struct moe_grid *g, uint64_t layer, uint64_t expert, uint32_t ep)
{
    if (g->ep == 1)
        return true;
    if (expert >= g->experts)
        return false;
    switch (g->deal) {
    case MOE_GRID_LINEAR: return part_of(expert, g->experts, g->ep) == ep;
    case MOE_GRID_ROUND_ROBIN: return expert % g->ep == ep;
    default: break;
    }
    if (layer >= g->layers)
        layer = g->layers - 1;
    return g->owner[(layer * g->experts + expert) * g->ep + ep] != 0;
}

uint32_t
moe_grid_stage(const struct moe_grid *g, uint64_t layer)
{
    if (g->pp == 1)
        return 0;
    return layer >= g->layers ? g->pp - 1 : (uint32_t)part_of(layer, g->layers, g->pp);
}
