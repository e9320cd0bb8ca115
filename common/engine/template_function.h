/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in filters, tests, methods and functions as table rows, and binding of
 * arguments to their parameters.
 */
#ifndef MOE_ENGINE_TEMPLATE_FUNCTION_H
#define MOE_ENGINE_TEMPLATE_FUNCTION_H

#include "common/engine/template_value.h"

enum { MOE_TEMPLATE_MAX_PARAMS = 6 };

struct moe_tkeyword { const char *name; struct moe_tval v; };

struct moe_targs {
    struct moe_tval *pos;
    size_t n;
    struct moe_tkeyword *kw;
    size_t n_kw;
};

struct moe_tfunction {
    const char *name;
    int need;               /* parameters that must be given */
    const char *params;     /* their names, "a b c"; "*": anything, fn reads all */
    /* a: bound parameters, MOE_T_MISSING where not given; for "*" all is in args. */
    int (*fn)(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args,
        struct moe_tval *out);
};

struct moe_tmethod { struct moe_tval self; const struct moe_tfunction *fn; };

/* self (NULL: none) is the first parameter. */
int moe_template_function_call(struct moe_trun *r, const struct moe_tfunction *f,
    const struct moe_tval *self, const struct moe_targs *args, struct moe_tval *out);

/* Rows with a name; NULL if there is none. */
const struct moe_tfunction *moe_template_filter(const char *name);
const struct moe_tfunction *moe_template_test(const char *name);
const struct moe_tfunction *moe_template_method(enum moe_tkind kind, const char *name);
const struct moe_tfunction *moe_template_global(const char *name);

/* Methods that would change a list or a dict, which templates may not. */
bool moe_template_method_changes(enum moe_tkind kind, const char *name);

#endif
