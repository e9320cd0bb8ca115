/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns finding of methods, and those of lists, dicts, loops and cyclers. Those of
 * strings are in template_method_text.c.
 */
#include <string.h>

#include "common/engine/template_compare.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_method.h"

#define METHOD(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

/* ---- Lists and dicts ------------------------------------------------------------------ */

static int
METHOD(list_index)
{
    bool same = false;
    int rc = 0;

    (void)args;
    for (size_t i = 0; rc == 0 && i < a->u.l->n; i++) {
        if ((rc = moe_template_value_step(r, 1)) == 0)
            rc = moe_template_compare_equal(r, a->u.l->v[i], a[1], &same);
        if (rc == 0 && same) {
            *out = moe_template_value_int((int64_t)i);
            return 0;
        }
    }
    return rc != 0 ? rc : moe_template_value_fail(r, "the value is not in list");
}

static int
METHOD(list_count)
{
    int64_t n = 0;
    bool same = false;
    int rc = 0;

    (void)args;
    for (size_t i = 0; rc == 0 && i < a->u.l->n; i++) {
        if ((rc = moe_template_value_step(r, 1)) == 0)
            rc = moe_template_compare_equal(r, a->u.l->v[i], a[1], &same);
        n += rc == 0 && same;
    }
    *out = moe_template_value_int(n);
    return rc;
}

/* Values do not change: a copy is the value. */
static int
METHOD(copy)
{
    (void)r;
    (void)args;
    *out = a[0];
    return 0;
}

static int
METHOD(dict_get)
{
    const struct moe_tval *v;
    int rc = moe_template_dict_get(r, a->u.d, a[1], &v);

    (void)args;
    *out = v != NULL ? *v : a[2].kind != MOE_T_MISSING ? a[2] : moe_template_value_none();
    return rc;
}

static int
view(struct moe_trun *r, const struct moe_tval *d, const char *what, struct moe_tval *out)
{
    struct moe_tview *v = moe_template_value_alloc(r, 1, sizeof(*v));

    if (v == NULL)
        return MOE_T_FAILED;
    *v = (struct moe_tview){ d->u.d, what };
    *out = (struct moe_tval){ .kind = MOE_T_VIEW, .u.view = v };
    return 0;
}

static int METHOD(dict_keys) { (void)args; return view(r, a, "keys", out); }
static int METHOD(dict_values) { (void)args; return view(r, a, "values", out); }
static int METHOD(dict_items) { (void)args; return view(r, a, "items", out); }

/* ---- Loops and cyclers ---------------------------------------------------------------- */

static int
METHOD(loop_cycle)
{
    if (args->n == 0)
        return moe_template_value_fail(r, "no items for cycling given");
    *out = args->pos[a->u.loop->at % args->n];
    return 0;
}

static int
METHOD(loop_changed)
{
    struct moe_tloop *l = a->u.loop;
    struct moe_tval now;
    bool same = false;
    int rc = moe_template_value_list(r, MOE_T_TUPLE, 0, &now);

    for (size_t i = 0; rc == 0 && i < args->n; i++)
        rc = moe_template_value_push(r, now.u.l, args->pos[i]);
    if (rc == 0 && l->changed.kind != MOE_T_MISSING)
        rc = moe_template_compare_equal(r, l->changed, now, &same);
    if (rc == 0 && !same)
        l->changed = now;
    *out = moe_template_value_bool(!same);
    return rc;
}

static int
METHOD(cycler_next)
{
    struct moe_tcycler *c = a->u.cycler;

    (void)r;
    (void)args;
    *out = c->l->v[c->at];
    c->at = (c->at + 1) % c->l->n;
    return 0;
}

static int
METHOD(cycler_reset)
{
    (void)r;
    (void)args;
    a->u.cycler->at = 0;
    *out = moe_template_value_none();
    return 0;
}

/* ---- The tables -------------------------------------------------------------------- */

static const struct moe_tfunction LIST[] = {
    { "index", 2, "self value", list_index }, { "count", 2, "self value", list_count },
    { "copy", 1, "self", copy }, { NULL, 0, NULL, NULL },
};

static const struct moe_tfunction TUPLE[] = {
    { "index", 2, "self value", list_index }, { "count", 2, "self value", list_count },
    { NULL, 0, NULL, NULL },
};

static const struct moe_tfunction DICT[] = {
    { "get", 2, "self key default", dict_get }, { "keys", 1, "self", dict_keys },
    { "values", 1, "self", dict_values }, { "items", 1, "self", dict_items },
    { "copy", 1, "self", copy }, { NULL, 0, NULL, NULL },
};

static const struct moe_tfunction LOOP[] = {
    { "cycle", 1, "*", loop_cycle }, { "changed", 1, "*", loop_changed },
    { NULL, 0, NULL, NULL },
};

static const struct moe_tfunction CYCLER[] = {
    { "next", 1, "self", cycler_next }, { "reset", 1, "self", cycler_reset },
    { NULL, 0, NULL, NULL },
};

const struct moe_tfunction *
moe_template_method(enum moe_tkind kind, const char *name)
{
    static const struct moe_tfunction *const tables[] = {
        [MOE_T_STR] = moe_template_method_text, [MOE_T_LIST] = LIST,
        [MOE_T_TUPLE] = TUPLE, [MOE_T_DICT] = DICT, [MOE_T_LOOP] = LOOP,
        [MOE_T_CYCLER] = CYCLER };
    const struct moe_tfunction *f = (size_t)kind < sizeof(tables) / sizeof(*tables)
        ? tables[kind] : NULL;

    for (; f != NULL && f->name != NULL; f++)
        if (strcmp(name, f->name) == 0)
            return f;
    return NULL;
}

bool
moe_template_method_changes(enum moe_tkind kind, const char *name)
{
    static const char *const list[] = { "append", "clear", "pop", "reverse", "insert", "sort",
        "extend", "remove", NULL };
    static const char *const dict[] = { "clear", "pop", "popitem", "setdefault", "update", NULL };
    const char *const *p = kind == MOE_T_LIST ? list : kind == MOE_T_DICT ? dict : NULL;

    for (; p != NULL && *p != NULL; p++)
        if (strcmp(name, *p) == 0)
            return true;
    return false;
}
