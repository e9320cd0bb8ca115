/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the compiling of a schema: rules of conjunctions, one after the other,
 * so that nothing here is recursive but what the schema nests.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/engine/schema_parts.h"
#include "common/engine/spell.h"

#define SLOTS 65536
#define NONE UINT32_MAX
#define MAX_BLANKS 20

int
moe_schema_spend(struct moe_schema_build *b, size_t work)
{
    if ((b->work += work) > MOE_SCHEMA_MAX_WORK)
        return moe_err_set(b->e, MOE_ELIMIT, "too much to work out");
    return b->g->failed.code != 0 ? moe_err_set(b->e, b->g->failed.code, "%s", b->g->failed.text)
        : 0;
}

int
moe_schema_regex(struct moe_schema_build *b, const char *p, size_t n,
    const struct moe_pattern **out)
{
    struct moe_pattern *t;
    int rc;

    for (size_t i = 0; i < b->n_patterns; i++) {
        if (b->pattern[i].n == n && (n == 0 || memcmp(b->pattern[i].text, p, n) == 0)) {
            *out = b->pattern[i].t;
            return 0;
        }
    }
    if ((rc = moe_schema_spend(b, 1000)) != 0)
        return rc;
    if (b->n_patterns == b->cap_patterns) {
        size_t cap = b->cap_patterns == 0 ? 16 : 2 * b->cap_patterns;
        struct moe_schema_pattern *q = realloc(b->pattern, cap * sizeof(*q));

        if (q == NULL)
            return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
        b->pattern = q;
        b->cap_patterns = cap;
    }
    if ((rc = moe_pattern_compile(p, n, &t, b->e)) != 0)
        return rc;
    b->pattern[b->n_patterns++] = (struct moe_schema_pattern){ p, n, t };
    *out = t;
    return 0;
}

/* ---- Rules ----------------------------------------------------------------------- */

static int
by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(const json_t *const *)a, y = (uintptr_t)*(const json_t *const *)b;

    return x < y ? -1 : x > y;
}

/* In order, each once, without those that always hold. */
static int
canonical(struct moe_schema_build *b, const json_t *const *s, size_t n,
    struct moe_schema_list *out)
{
    size_t k = 0;

    out->s = moe_arena_get(&b->arena, (n + 1) * sizeof(*out->s));
    if (out->s == NULL)
        return moe_err_set(b->e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        if (!json_is_true(s[i]) && !(json_is_object(s[i]) && json_object_size(s[i]) == 0))
            out->s[k++] = s[i];
    }
    qsort(out->s, k, sizeof(*out->s), by_address);
    out->n = 0;
    for (size_t i = 0; i < k; i++) {
        if (out->n == 0 || out->s[out->n - 1] != out->s[i])
            out->s[out->n++] = out->s[i];
    }
    return moe_schema_spend(b, n + 8);
}

int
moe_schema_rule(struct moe_schema_build *b, const json_t *const *s, size_t n, uint32_t *rule)
{
    struct moe_schema_list list;
    uint64_t h = 0;
    size_t at;
    int rc;

    if ((rc = canonical(b, s, n, &list)) != 0)
        return rc;
    for (size_t i = 0; i < list.n; i++)
        h = (h ^ (uintptr_t)list.s[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ h >> 31;
    for (at = (h >> 40) % SLOTS; b->slot[at] != NONE; at = (at + 1) % SLOTS) {
        const struct moe_schema_known *k = &b->known[b->slot[at]];

        if (k->list.n == list.n
            && (list.n == 0 || memcmp(k->list.s, list.s, list.n * sizeof(*list.s)) == 0)) {
            *rule = k->rule;
            return 0;
        }
    }
    if (b->n_known == MOE_GRAMMAR_MAX_RULES)
        return moe_err_set(b->e, MOE_ELIMIT, "more than %u rules", MOE_GRAMMAR_MAX_RULES);
    *rule = moe_grammar_rule(b->g);
    b->known[b->n_known] = (struct moe_schema_known){ list, *rule };
    b->slot[at] = (uint32_t)b->n_known++;
    return 0;
}

static int
compile_flat(struct moe_schema_build *b, const struct moe_schema_list *flat, unsigned types,
    void *ctx)
{
    const struct moe_grammar_rule r = b->g->rule[*(const uint32_t *)ctx];

    return moe_schema_value(b, flat, types, r.start, r.end);
}

/* White space: nothing, a blank, or a newline with some blanks. */
static void
add_blank(struct moe_schema_build *b)
{
    struct moe_grammar_rule r;
    uint32_t at;

    b->blank = moe_grammar_rule(b->g);
    if (b->g->failed.code != 0)
        return;
    r = b->g->rule[b->blank];
    moe_grammar_jump(b->g, r.start, r.end);
    moe_grammar_bytes(b->g, r.start, ' ', ' ', r.end);
    at = moe_grammar_text(b->g, r.start, "\n", 1);
    moe_grammar_jump(b->g, at, r.end);
    for (int i = 0; i < MAX_BLANKS; i++) {
        at = moe_grammar_text(b->g, at, " ", 1);
        moe_grammar_jump(b->g, at, r.end);
    }
}

static int
add_any(struct moe_schema_build *b)
{
    struct moe_codeset all = MOE_CODESET_INIT;
    int rc = moe_codeset_add(&all, 0, MOE_CODESET_LAST, b->e);

    b->any = moe_grammar_rule(b->g);
    if (rc == 0 && b->g->failed.code == 0)
        moe_spell_json(b->g, b->g->rule[b->any].start, &all, b->g->rule[b->any].end);
    moe_codeset_fini(&all);
    return rc;
}

static int
compile(struct moe_schema_build *b, const json_t *schema)
{
    uint32_t root;
    int rc;

    if ((rc = moe_schema_check(b, schema)) != 0 || (rc = add_any(b)) != 0)
        return rc;
    add_blank(b);
    if ((rc = moe_schema_rule(b, &schema, 1, &root)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < b->n_known; i++) {
        const struct moe_schema_known k = b->known[i];

        rc = moe_schema_spend(b, 10);
        if (rc == 0)
            rc = moe_schema_flat_get(b, &k.list, compile_flat, (void *)(uintptr_t)&k.rule);
    }
    return rc != 0 ? rc : moe_grammar_finish(b->g, root, b->e);
}

int
moe_schema_compile(const json_t *schema, const char *name, struct moe_grammar **out,
    struct moe_err *e)
{
    struct moe_err own = { 0 };
    struct moe_schema_build b = { .name = name, .root = schema, .arena = MOE_ARENA_INIT,
        .e = &own };
    int rc;

    *out = NULL;
    b.made = json_array();
    b.known = malloc(MOE_GRAMMAR_MAX_RULES * sizeof(*b.known));
    b.slot = malloc(SLOTS * sizeof(*b.slot));
    if ((rc = moe_grammar_new(&b.g, &own)) == 0
        && (b.made == NULL || b.known == NULL || b.slot == NULL))
        rc = moe_err_set(&own, MOE_ENOMEM, "out of memory");
    if (rc == 0) {
        memset(b.slot, 0xFF, SLOTS * sizeof(*b.slot));
        rc = compile(&b, schema);
    }
    if (rc == 0) {
        *out = b.g;
        b.g = NULL;
    } else if (e != NULL) {
        *e = own;
        rc = moe_err_at(e, "%s", name);
    }
    for (size_t i = 0; i < b.n_patterns; i++)
        moe_pattern_free(b.pattern[i].t);
    free(b.pattern);
    free(b.known);
    free(b.slot);
    json_decref(b.made);
    moe_arena_fini(&b.arena);
    moe_grammar_free(b.g);
    return rc;
}

int
moe_schema_parse(const char *p, size_t n, const char *name, struct moe_grammar **out,
    struct moe_err *e)
{
    json_t *schema = NULL;
    int rc;

    *out = NULL;
    if (n > MOE_SCHEMA_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: a schema of more than %zu bytes", name,
            MOE_SCHEMA_MAX_BYTES);
    if ((rc = moe_json_parse(p, n, name, &schema, e)) == 0)
        rc = moe_schema_compile(schema, name, out, e);
    json_decref(schema);
    return rc;
}
