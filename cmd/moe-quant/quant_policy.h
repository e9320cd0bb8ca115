/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which scheme a matrix gets: the rules of a policy file in order, the first
 * that matches, else the default of its role (moe-quant(1), POLICY).
 */
#ifndef CMD_QUANT_POLICY_H
#define CMD_QUANT_POLICY_H

#include "cmd/moe-quant/quant_scheme.h"
#include "common/base/buf.h"
#include "common/formats/naming.h"

#define QUANT_POLICY_MAX_RULES 100000
#define QUANT_POLICY_MAX_REGEX 4096         /* bytes of an expression */
#define QUANT_POLICY_MATCH_LIMIT 100000     /* steps of PCRE2 for one match */
#define QUANT_POLICY_AUTO UINT64_MAX        /* a group: the largest that divides */

struct quant_policy_options {
    const struct quant_codec *format;   /* of routed experts */
    const struct quant_codec *shared;   /* of shared experts; NULL: kept */
    const struct quant_codec *rest;     /* of all other matrices; NULL: kept */
    uint64_t group;                     /* 32, 64, 128, 0 = the row, QUANT_POLICY_AUTO */
    bool asym, both, force_router;
    enum quant_search search;
};

struct quant_policy;

/* path: a YAML file, or NULL for the defaults alone. Errors: as moe_yaml_file(), MOE_EFORMAT. */
int quant_policy_open(const char *path, const struct quant_policy_options *opt,
    struct quant_policy **out, struct moe_err *e);
void quant_policy_free(struct quant_policy *p);

/*
 * The scheme of a module. codec NULL: kept. Errors: MOE_EUNSUP (a rule touches
 * what must not be quantised), MOE_ELIMIT (an expression takes too long).
 */
int quant_policy_find(struct quant_policy *p, const char *module, enum moe_role role,
    struct quant_scheme *out, struct moe_err *e);

/* Whether a rule named it, so that it may be big and of an unknown role. */
bool quant_policy_named(struct quant_policy *p, const char *module, enum moe_role role);

/* After all modules: a rule that matched nothing is MOE_EFORMAT. */
int quant_policy_check(const struct quant_policy *p, struct moe_err *e);

#endif
