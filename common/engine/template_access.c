/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns v.name and v[key], in Jinja's order: v.name looks for a method first and
 * for an item then, v[key] the other way round. What the sandbox forbids is an
 * undefined value that says so when it is used.
 */
#include <string.h>

#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_items.h"
#include "common/engine/template_print.h"

static int
misused(struct moe_trun *r, const struct moe_tval *v)
{
    return moe_template_value_fail(r, "%.*s", (int)v->u.why->n, v->u.why->p);
}

/* "'dict object' has no attribute 'x'" */
static int
no_attr(struct moe_trun *r, const struct moe_tval *v, const char *name, struct moe_tval *out)
{
    if (v->kind == MOE_T_NONE)
        return moe_template_value_undefined(r, out, "'None' has no attribute '%s'", name);
    return moe_template_value_undefined(r, out, "'%s object' has no attribute '%s'",
        moe_template_value_type(v), name);
}

/* ---- Attributes of the run's own objects ----------------------------------------------- */

static int
item_or_undefined(struct moe_trun *r, const struct moe_tlist *l, size_t i, bool has,
    const char *what, struct moe_tval *out)
{
    if (has) {
        *out = l->v[i];
        return 0;
    }
    return moe_template_value_undefined(r, out, "there is no %s item", what);
}

static int
loop_attr(struct moe_trun *r, const struct moe_tloop *l, const char *name, bool *has,
    struct moe_tval *out)
{
    int64_t at = (int64_t)l->at, n = (int64_t)l->items->n;
    const struct { const char *name; int64_t v; } numbers[] = {
        { "index", at + 1 }, { "index0", at }, { "revindex", n - at }, { "revindex0", n - at - 1 },
        { "length", n }, { "depth", l->level + 1 }, { "depth0", l->level },
    };

    *has = true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (strcmp(name, numbers[i].name) == 0) {
            *out = moe_template_value_int(numbers[i].v);
            return 0;
        }
    if (strcmp(name, "first") == 0)
        *out = moe_template_value_bool(at == 0);
    else if (strcmp(name, "last") == 0)
        *out = moe_template_value_bool(at + 1 == n);
    else if (strcmp(name, "previtem") == 0)
        return item_or_undefined(r, l->items, l->at - 1, at > 0, "previous", out);
    else if (strcmp(name, "nextitem") == 0)
        return item_or_undefined(r, l->items, l->at + 1, at + 1 < n, "next", out);
    else
        *has = false;
    return 0;
}

static int
macro_attr(struct moe_trun *r, const struct moe_tmacro *m, const char *name, bool *has,
    struct moe_tval *out)
{
    int rc;

    *has = true;
    if (strcmp(name, "name") == 0)
        return moe_template_value_str(r, m->n->name, strlen(m->n->name), false, out);
    if (strcmp(name, "arguments") == 0) {
        rc = moe_template_value_list(r, MOE_T_TUPLE, 0, out);
        for (const struct moe_tnode *p = m->n->list; rc == 0 && p != NULL; p = p->next) {
            struct moe_tval v;

            rc = moe_template_value_str(r, p->name, strlen(p->name), false, &v);
            if (rc == 0)
                rc = moe_template_value_push(r, out->u.l, v);
        }
        return rc;
    }
    if (strcmp(name, "catch_kwargs") == 0)
        *out = moe_template_value_bool(m->n->uses_kwargs);
    else if (strcmp(name, "catch_varargs") == 0)
        *out = moe_template_value_bool(m->n->uses_varargs);
    else if (strcmp(name, "caller") == 0)
        *out = moe_template_value_bool(m->n->uses_caller);
    else
        *has = false;
    return 0;
}

/* Attributes that are neither methods nor items. */
static int
own_attr(struct moe_trun *r, const struct moe_tval *v, const char *name, bool *has,
    struct moe_tval *out)
{
    const struct moe_tval *found;

    *has = false;
    switch (v->kind) {
    case MOE_T_LOOP:
        return loop_attr(r, v->u.loop, name, has, out);
    case MOE_T_MACRO:
        return macro_attr(r, v->u.macro, name, has, out);
    case MOE_T_NAMESPACE:
        if ((found = moe_template_dict_named(v->u.d, name)) != NULL) {
            *has = true;
            *out = *found;
        }
        return 0;
    case MOE_T_CYCLER:
        *has = strcmp(name, "current") == 0;
        if (*has)
            *out = v->u.cycler->l->v[v->u.cycler->at];
        return 0;
    default:
        return 0;
    }
}

/* Names that every object has in Python and no template may see. */
static bool
internal(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && memcmp(name, "__", 2) == 0 && memcmp(name + n - 2, "__", 2) == 0;
}

/* getattr(): *has is false when there is no such attribute. */
static int
attribute(struct moe_trun *r, const struct moe_tval *v, const char *name, bool *has,
    struct moe_tval *out)
{
    const struct moe_tfunction *f;
    int rc = own_attr(r, v, name, has, out);

    if (rc != 0 || *has)
        return rc;
    *has = true;
    if (internal(name) || moe_template_method_changes(v->kind, name))
        return moe_template_value_undefined(r, out,
            "access to attribute '%s' of '%s' object is unsafe.", name,
            moe_template_value_type(v));
    if ((f = moe_template_method(v->kind, name)) != NULL) {
        struct moe_tmethod *m = moe_template_value_alloc(r, 1, sizeof(*m));

        if (m == NULL)
            return MOE_T_FAILED;
        *m = (struct moe_tmethod){ *v, f };
        *out = (struct moe_tval){ .kind = MOE_T_METHOD, .u.method = m };
        return 0;
    }
    *has = false;
    return 0;
}

/* ---- Both ------------------------------------------------------------------------ */

int
moe_template_access_attr(struct moe_trun *r, struct moe_tval v, const char *name,
    struct moe_tval *out)
{
    const struct moe_tval *found;
    bool has;
    int rc;

    if (v.kind == MOE_T_UNDEFINED)
        return misused(r, &v);
    if ((rc = attribute(r, &v, name, &has, out)) != 0 || has)
        return rc;
    if (v.kind == MOE_T_DICT && (found = moe_template_dict_named(v.u.d, name)) != NULL) {
        *out = *found;
        return 0;
    }
    return no_attr(r, &v, name, out);
}

/* v[key] in Python; *has is false where that raises. */
static int
item(struct moe_trun *r, const struct moe_tval *v, const struct moe_tval *key, bool *has,
    struct moe_tval *out)
{
    const struct moe_tval *found = NULL;
    int rc;

    *has = false;
    if (v->kind == MOE_T_DICT) {
        if (key->kind == MOE_T_LIST || key->kind == MOE_T_DICT)
            return 0;
        rc = moe_template_dict_get(r, v->u.d, *key, &found);
        *has = found != NULL;
        if (*has)
            *out = *found;
        return rc;
    }
    if (key->kind != MOE_T_INT && key->kind != MOE_T_BOOL)
        return 0;
    return moe_template_items_at(r, *v, key->kind == MOE_T_INT ? key->u.i : key->u.b, has, out);
}

int
moe_template_access_item(struct moe_trun *r, struct moe_tval v, struct moe_tval key,
    struct moe_tval *out)
{
    struct moe_tval text;
    bool has;
    char *name;
    int rc;

    if (v.kind == MOE_T_UNDEFINED)
        return misused(r, &v);
    if ((rc = item(r, &v, &key, &has, out)) != 0 || has)
        return rc;
    if (key.kind != MOE_T_STR) {
        if ((rc = moe_template_print_text(r, key, &text)) != 0)
            return rc;
        return moe_template_value_undefined(r, out, "%s object has no element %.*s",
            moe_template_value_type(&v), (int)(text.u.s->n < 100 ? text.u.s->n : 100),
            text.u.s->p);
    }
    if ((name = moe_template_value_alloc(r, key.u.s->n + 1, 1)) == NULL)
        return MOE_T_FAILED;
    memcpy(name, key.u.s->p, key.u.s->n);
    name[key.u.s->n] = '\0';
    if ((rc = attribute(r, &v, name, &has, out)) != 0 || has)
        return rc;
    return no_attr(r, &v, name, out);
}
