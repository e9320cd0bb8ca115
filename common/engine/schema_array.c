/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns arrays: how many items there are so far and, where some must be of a
 * kind, how many of those.
 */
#include <string.h>

#include "common/engine/schema_parts.h"

/* The places before an item, by items and items of the kind so far; both stop counting. */
struct grid {
    size_t min, max, items;     /* items: the most that are counted */
    size_t kinds;               /* items of the kind that are needed */
    uint32_t *at;               /* [(items + 1) * (kinds + 1)] */
};

/* Schemas of item i, `more` for one of the kind. */
static int
item_rule(struct moe_schema_build *b, const struct moe_schema_list *flat, size_t i,
    const json_t *kind, uint32_t *rule)
{
    const json_t **s = moe_arena_get(&b->arena, (flat->n + 1) * sizeof(*s));
    size_t n = 0;

    if (s == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    for (size_t k = 0; k < flat->n; k++) {
        const json_t *prefix = json_object_get(flat->s[k], "prefixItems");
        const json_t *items = json_object_get(flat->s[k], "items");

        if (i < json_array_size(prefix))
            s[n++] = json_array_get(prefix, i);
        else if (items != NULL)
            s[n++] = items;
    }
    if (kind != NULL)
        s[n++] = kind;
    return moe_schema_rule(b, s, n, rule);
}

/* From state from over one item with its comma and blanks. */
static void
item(struct moe_schema_build *b, bool first, uint32_t rule, uint32_t from, uint32_t to)
{
    uint32_t at = first ? from : moe_grammar_text(b->g, from, ",", 1);
    uint32_t value = moe_grammar_state(b->g);

    moe_grammar_call(b->g, at, b->blank, value);
    moe_grammar_call(b->g, value, rule, to);
}

static int
set_grid(struct moe_schema_build *b, const struct moe_schema_list *flat, struct grid *g,
    const json_t **kind)
{
    size_t prefix = 0;

    *kind = NULL;
    g->min = moe_schema_value_most(flat, "minItems", 0);
    g->max = moe_schema_value_least(flat, "maxItems", SIZE_MAX);
    for (size_t k = 0; k < flat->n; k++) {
        const json_t *contains = json_object_get(flat->s[k], "contains");
        size_t n = json_array_size(json_object_get(flat->s[k], "prefixItems"));
        const struct moe_schema_list one = { &flat->s[k], 1 };

        prefix = n > prefix ? n : prefix;
        if (contains == NULL)
            continue;
        if (*kind != NULL)
            return moe_err_set(b->e, MOE_EUNSUP, "contains of several schemas at once");
        g->kinds = moe_schema_value_most(&one, "minContains", 1);
        *kind = g->kinds > 0 ? contains : NULL;
    }
    g->items = g->max != SIZE_MAX ? g->max : g->min > prefix ? g->min : prefix;
    g->items = g->items < 1 ? 1 : g->items;
    if (g->items > MOE_SCHEMA_MAX_GRID || g->kinds > MOE_SCHEMA_MAX_GRID
        || (g->items + 1) * (g->kinds + 1) > MOE_SCHEMA_MAX_GRID)
        return moe_err_set(b->e, MOE_ELIMIT, "arrays of more than %d counts",
            MOE_SCHEMA_MAX_GRID);
    g->at = moe_arena_get(&b->arena, (g->items + 1) * (g->kinds + 1) * sizeof(*g->at));
    return g->at == NULL ? moe_err_set(b->e, MOE_ENOMEM, "out of memory")
        : moe_schema_spend(b, 10 * (g->items + 1) * (g->kinds + 1));
}

int
moe_schema_array(struct moe_schema_build *b, const struct moe_schema_list *flat, uint32_t from,
    uint32_t to)
{
    struct grid g = { 0 };
    const json_t *kind;
    uint32_t end, rule, special = 0;
    int rc = set_grid(b, flat, &g, &kind);

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < (g.items + 1) * (g.kinds + 1); i++)
        g.at[i] = moe_grammar_state(b->g);
    end = moe_grammar_state(b->g);
    moe_grammar_bytes(b->g, from, '[', '[', g.at[0]);
    moe_grammar_bytes(b->g, end, ']', ']', to);
    for (size_t i = 0; i <= g.items; i++) {
        size_t next = i < g.items ? i + 1 : i;

        if ((rc = item_rule(b, flat, i, NULL, &rule)) != 0
            || (kind != NULL && (rc = item_rule(b, flat, i, kind, &special)) != 0))
            return rc;
        for (size_t k = 0; k <= g.kinds; k++) {
            uint32_t at = g.at[i * (g.kinds + 1) + k];

            if (i >= g.min && k == g.kinds && i <= g.max)
                moe_grammar_call(b->g, at, b->blank, end);
            if (i >= g.max)
                continue;
            item(b, i == 0, rule, at, g.at[next * (g.kinds + 1) + k]);
            if (k < g.kinds)
                item(b, i == 0, special, at, g.at[next * (g.kinds + 1) + k + 1]);
        }
    }
    return 0;
}
