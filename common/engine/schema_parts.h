/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the compiler of JSON Schema share; private to schema*.c. A
 * conjunction is a set of schemas that all hold, in ascending order of their
 * addresses; each gets one rule. It is taken apart into flat ones, in which no
 * schema has anything left that refers, combines or chooses.
 */
#ifndef MOE_ENGINE_SCHEMA_PARTS_H
#define MOE_ENGINE_SCHEMA_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/engine/grammar.h"
#include "common/engine/numberset.h"
#include "common/engine/pattern.h"
#include "common/engine/schema.h"
#include "common/engine/stringset.h"

enum {
    MOE_SCHEMA_NULL = 1, MOE_SCHEMA_BOOL = 2, MOE_SCHEMA_INT = 4, MOE_SCHEMA_FRACTION = 8,
    MOE_SCHEMA_STRING = 16, MOE_SCHEMA_ARRAY = 32, MOE_SCHEMA_OBJECT = 64, MOE_SCHEMA_ALL = 127
};

/* Keys that only schemas made here have. */
#define MOE_SCHEMA_NO_MULTIPLE " no multiple of"
#define MOE_SCHEMA_WITHOUT " without"

struct moe_schema_list { const json_t **s; size_t n; };

struct moe_schema_known { struct moe_schema_list list; uint32_t rule; };
struct moe_schema_pattern { const char *text; size_t n; struct moe_pattern *t; };

struct moe_schema_build {
    struct moe_grammar *g;
    const char *name;
    const json_t *root;
    struct moe_arena arena;
    json_t *made;               /* array: keeps schemas made here */
    struct moe_schema_known *known;     /* [n_known] rules, compiled in this order */
    size_t n_known;
    uint32_t *slot;             /* by hash, into known */
    struct moe_schema_pattern *pattern;
    size_t n_patterns, cap_patterns;
    uint32_t any, blank;        /* rules: one character of a string; white space */
    size_t work;
    struct moe_err *e;
};

/* Take note of work; MOE_ELIMIT when it is too much. */
int moe_schema_spend(struct moe_schema_build *b, size_t work);

/* The rule of a conjunction (any order, doubles allowed). */
int moe_schema_rule(struct moe_schema_build *b, const json_t *const *s, size_t n, uint32_t *rule);

/* A compiled pattern, kept. */
int moe_schema_regex(struct moe_schema_build *b, const char *p, size_t n,
    const struct moe_pattern **out);

/* ---- schema_check.c ---- */

/* Whether every keyword of a schema and those within has the form it must have. */
int moe_schema_check(struct moe_schema_build *b, const json_t *s);

/* ---- schema_flat.c ---- */

typedef int moe_schema_flat_fn(struct moe_schema_build *b, const struct moe_schema_list *flat,
    unsigned types, void *ctx);

/* Call fn for each flat conjunction that together make up list. */
int moe_schema_flat_get(struct moe_schema_build *b, const struct moe_schema_list *list,
    moe_schema_flat_fn *fn, void *ctx);

/* Types that a schema's own type, const and enum allow; of a value. */
unsigned moe_schema_flat_types(const json_t *s);
unsigned moe_schema_flat_type(const json_t *v);

/* ---- schema_not.c ---- */

/* A schema that holds where s does not; borrowed from b->made. Errors: MOE_EUNSUP. */
int moe_schema_not(struct moe_schema_build *b, const json_t *s, int depth, const json_t **out);

/* What a $ref refers to. Errors: MOE_EFORMAT, MOE_EUNSUP. */
int moe_schema_not_refer(struct moe_schema_build *b, const json_t *ref, const json_t **out);

/* Keep a schema made here; NULL is no memory. */
int moe_schema_not_keep(struct moe_schema_build *b, json_t *v, const json_t **out);

/* ---- schema_value.c ---- */

/* Values of a flat conjunction from state from to state to. */
int moe_schema_value(struct moe_schema_build *b, const struct moe_schema_list *flat,
    unsigned types, uint32_t from, uint32_t to);

/* Numbers as bounds. */
int moe_schema_value_decimal(struct moe_schema_build *b, const json_t *v, struct moe_decimal *out);

/* What strings of a flat conjunction must be; without and n_without in the arena. */
int moe_schema_value_strings(struct moe_schema_build *b, const struct moe_schema_list *flat,
    struct moe_stringset *s);

/* The largest of a keyword's values in the list, or the smallest; fallback without any. */
size_t moe_schema_value_most(const struct moe_schema_list *flat, const char *key, size_t fallback);
size_t moe_schema_value_least(const struct moe_schema_list *flat, const char *key, size_t fallback);

/* ---- schema_array.c, schema_object.c ---- */

int moe_schema_array(struct moe_schema_build *b, const struct moe_schema_list *flat,
    uint32_t from, uint32_t to);
int moe_schema_object(struct moe_schema_build *b, const struct moe_schema_list *flat,
    uint32_t from, uint32_t to);

#endif
