/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns binding of arguments to the parameters of built-in functions.
 */
#include <string.h>

#include "common/engine/template_function.h"

/* The next word of a list of parameters. */
static const char *
word(const char *p, size_t *n)
{
    while (*p == ' ')
        p++;
    *n = strcspn(p, " ");
    return *n == 0 ? NULL : p;
}

/* The place of a parameter by name, or -1. */
static int
place(const char *params, const char *name)
{
    size_t n;
    int i = 0;

    for (const char *p = params; (p = word(p, &n)) != NULL; p += n, i++)
        if (strlen(name) == n && memcmp(p, name, n) == 0)
            return i;
    return -1;
}

static int
count(const char *params)
{
    size_t n;
    int i = 0;

    for (const char *p = params; (p = word(p, &n)) != NULL; p += n)
        i++;
    return i;
}

static int
bind(struct moe_trun *r, const struct moe_tfunction *f, const struct moe_tval *self,
    const struct moe_targs *args, struct moe_tval *a)
{
    int n_params = count(f->params), n = 0;

    for (int i = 0; i < MOE_TEMPLATE_MAX_PARAMS; i++)
        a[i] = (struct moe_tval){ .kind = MOE_T_MISSING };
    if (self != NULL)
        a[n++] = *self;
    if (args->n > (size_t)(n_params - n))
        return moe_template_value_fail(r, "%s() takes at most %d arguments", f->name,
            n_params - n);
    for (size_t i = 0; i < args->n; i++)
        a[n++] = args->pos[i];
    for (size_t i = 0; i < args->n_kw; i++) {
        int at = place(f->params, args->kw[i].name);

        if (at < 0)
            return moe_template_value_fail(r, "%s() got an unexpected keyword argument '%s'",
                f->name, args->kw[i].name);
        if (a[at].kind != MOE_T_MISSING)
            return moe_template_value_fail(r, "%s() got multiple values for argument '%s'",
                f->name, args->kw[i].name);
        a[at] = args->kw[i].v;
    }
    for (int i = 0; i < f->need; i++)
        if (a[i].kind == MOE_T_MISSING)
            return moe_template_value_fail(r, "%s() misses an argument", f->name);
    return 0;
}

int
moe_template_function_call(struct moe_trun *r, const struct moe_tfunction *f,
    const struct moe_tval *self, const struct moe_targs *args, struct moe_tval *out)
{
    struct moe_tval a[MOE_TEMPLATE_MAX_PARAMS] = { { .kind = MOE_T_MISSING } };
    int rc;

    if ((rc = moe_template_value_step(r, 1)) != 0)
        return rc;
    if (strcmp(f->params, "*") == 0) {
        if (self != NULL)
            a[0] = *self;
        return f->fn(r, a, args, out);
    }
    if ((rc = bind(r, f, self, args, a)) != 0)
        return rc;
    return f->fn(r, a, args, out);
}
