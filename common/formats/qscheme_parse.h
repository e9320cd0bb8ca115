/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to qscheme*.c: a scheme while it is being read.
 */
#ifndef MOE_FORMATS_QSCHEME_PARSE_H
#define MOE_FORMATS_QSCHEME_PARSE_H

#include "common/base/json.h"
#include "common/formats/qscheme.h"
#include "common/formats/qscheme_pattern.h"

#define MOE_QSCHEME_PLAIN ((size_t)-1)      /* in place of a rule's index: not quantised */
#define MOE_QSCHEME_MAX_GROUP ((int64_t)1 << 30)
#define MOE_QSCHEME_WHERE 256

struct moe_qscheme {
    int method;                             /* index of the method's name */
    struct moe_qrule *rules;
    size_t n_rules;
    struct moe_qscheme_patterns *targets;   /* value: index of a rule, or MOE_QSCHEME_PLAIN */
    struct moe_qscheme_patterns *ignored;   /* win over targets */
};

/* The member key of at, o; where holds the words that lead there, for messages. */
struct moe_json_at moe_qscheme_below(struct moe_json_at at, const json_t *o, const char *key,
    char where[MOE_QSCHEME_WHERE]);

/* "at.key: value is not read", MOE_EUNSUP. */
int moe_qscheme_unsup(struct moe_json_at at, const char *key, const char *value, struct moe_err *e);

/* One more rule; its index in *i. */
int moe_qscheme_add(struct moe_qscheme *s, const struct moe_qrule *r, size_t *i, struct moe_err *e);

/* A number of columns, or -1 for the whole row (then 0). */
int moe_qscheme_group(struct moe_json_at at, const char *key, bool must, uint64_t *group,
    struct moe_err *e);

/* Two whole numbers, as block_structure and weight_block_size have them: block_rows and group. */
int moe_qscheme_block(struct moe_json_at at, const char *key, struct moe_qrule *r,
    bool *found, struct moe_err *e);

/* A list of strings, or nothing, added as patterns that all have one value. */
int moe_qscheme_names(struct moe_json_at at, const char *key, bool must,
    enum moe_qscheme_kind kind, size_t value, struct moe_qscheme_patterns *p, struct moe_err *e);

int moe_qscheme_ct(struct moe_qscheme *s, struct moe_json_at at, struct moe_err *e);

#endif
