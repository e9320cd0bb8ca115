/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns finding of filters, and those over numbers and values of any kind. Those
 * over text and lists are in files of their own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_filter.h"
#include "common/engine/template_items.h"
#include "common/engine/template_number.h"
#include "common/engine/template_print.h"
#include "common/engine/template_space.h"
#include "common/engine/template_string.h"

#define FILTER(name) \
    name(struct moe_trun *r, struct moe_tval *a, const struct moe_targs *args, struct moe_tval *out)

int
moe_template_filter_int(struct moe_trun *r, const struct moe_tval *v, int64_t fallback,
    int64_t *out)
{
    *out = fallback;
    if (v->kind == MOE_T_MISSING || v->kind == MOE_T_NONE)
        return 0;
    if (v->kind != MOE_T_INT && v->kind != MOE_T_BOOL)
        return moe_template_value_fail(r, "'%s' object cannot be interpreted as an integer",
            moe_template_value_type(v));
    *out = v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
    return 0;
}

bool
moe_template_filter_given(const struct moe_tval *v)
{
    return v->kind != MOE_T_MISSING && v->kind != MOE_T_NONE;
}

/* What Jinja uses as a string without making it one. */
int
moe_template_filter_need_str(struct moe_trun *r, const struct moe_tval *v)
{
    if (v->kind == MOE_T_STR)
        return 0;
    if (v->kind == MOE_T_UNDEFINED)
        return moe_template_value_fail(r, "%.*s", (int)v->u.why->n, v->u.why->p);
    return moe_template_value_fail(r, "a string is expected, not %s",
        moe_template_value_type(v));
}

/* ---- Numbers --------------------------------------------------------------------- */

/* float() of text: no hexadecimal, underscores between digits. */
static bool
read_float(const struct moe_tstr *s, double *out)
{
    const char *p = moe_template_space_skip(s->p, s->p + s->n);
    const char *end = moe_template_space_rstrip(p, s->p + s->n);
    char text[512], *stop;
    size_t n = 0;

    for (; p < end && n + 1 < sizeof(text); p++) {
        if (*p == '_' && n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9' && p + 1 < end &&
            p[1] >= '0' && p[1] <= '9')
            continue;
        if (*p == '\0' || *p == 'x' || *p == 'X' || *p == '(' || *p == '_')
            return false;
        text[n++] = *p;
    }
    text[n] = '\0';
    if (n == 0 || p < end || moe_template_space_is((unsigned char)text[0]))
        return false;
    *out = strtod(text, &stop);
    return *stop == '\0';
}

static bool
to_float(const struct moe_tval *v, double *out)
{
    if (v->kind == MOE_T_STR)
        return read_float(v->u.s, out);
    *out = moe_template_number_real(v);
    return moe_template_value_is_number(v);
}

static int
FILTER(do_float)
{
    double f = 0;

    (void)args;
    if (a[0].kind == MOE_T_UNDEFINED)
        return moe_template_filter_need_str(r, &a[0]);
    if (to_float(&a[0], &f))
        *out = moe_template_value_float(f);
    else
        *out = a[1].kind == MOE_T_MISSING ? moe_template_value_float(0) : a[1];
    return 0;
}

/* int(text, base): a prefix of that base may stand before the digits. */
static int
read_int(struct moe_trun *r, const struct moe_tstr *s, int64_t base, bool *ok,
    struct moe_tval *out)
{
    const char *p = moe_template_space_skip(s->p, s->p + s->n);
    const char *end = moe_template_space_rstrip(p, s->p + s->n);
    const char *d = p + (p < end && (*p == '-' || *p == '+'));
    char kind = end - d > 2 && *d == '0' ? (char)(d[1] | 0x20) : '\0', text[64];
    int of = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    int n;

    *ok = false;
    if (base != 0 && (base < 2 || base > 36))
        return 0;
    if (of == 0 || (base != 0 && base != of))
        return moe_template_number_parse(r, p, (size_t)(end - p), base == 0 ? 10 : (int)base, ok,
            out);
    if (end - d > (ptrdiff_t)sizeof(text) - 2)
        return 0;
    n = snprintf(text, sizeof(text), "%s%.*s", *p == '-' ? "-" : "", (int)(end - d - 2), d + 2);
    return moe_template_number_parse(r, text, (size_t)n, of, ok, out);
}

static int
FILTER(do_int)
{
    int64_t base;
    double f = 0;
    bool ok = false;
    int rc = moe_template_filter_int(r, &a[2], 10, &base);

    (void)args;
    if (rc == 0 && a[0].kind == MOE_T_UNDEFINED)
        rc = moe_template_filter_need_str(r, &a[0]);
    if (rc != 0)
        return rc;
    if (a[0].kind == MOE_T_INT || a[0].kind == MOE_T_BIG) {
        *out = a[0];
        return 0;
    }
    if (a[0].kind == MOE_T_STR && ((rc = read_int(r, a[0].u.s, base, &ok, out)) != 0 || ok))
        return rc;
    if (to_float(&a[0], &f) && isfinite(f))
        return moe_template_number_whole(r, f, out);
    *out = a[1].kind == MOE_T_MISSING ? moe_template_value_int(0) : a[1];
    return 0;
}

static int
FILTER(do_abs)
{
    (void)args;
    if (!moe_template_value_is_number(&a[0]))
        return moe_template_value_fail(r, "bad operand type for abs(): '%s'",
            moe_template_value_type(&a[0]));
    if (moe_template_number_order(a[0], moe_template_value_int(0)) == -1 ||
        (a[0].kind == MOE_T_FLOAT && signbit(a[0].u.f)))
        return moe_template_number_negate(r, a[0], out);
    *out = a[0].kind == MOE_T_BOOL ? moe_template_value_int(a[0].u.b) : a[0];
    return 0;
}

/* round() to p places, halves to even as printed digits round. */
static int
round_common(struct moe_trun *r, struct moe_tval v, int64_t p, struct moe_tval *out)
{
    char text[512];
    double scale;

    if (v.kind != MOE_T_FLOAT) {
        if (p >= 0) {
            *out = v.kind == MOE_T_BOOL ? moe_template_value_int(v.u.b) : v;
            return 0;
        }
        scale = pow(10, (double)-p);
        return moe_template_number_whole(r,
            nearbyint(moe_template_number_real(&v) / scale) * scale, out);
    }
    if (!isfinite(v.u.f) || p > 300) {
        *out = v;
        return 0;
    }
    if (p < 0) {
        scale = pow(10, (double)-p);
        *out = moe_template_value_float(nearbyint(v.u.f / scale) * scale);
        return 0;
    }
    (void)snprintf(text, sizeof(text), "%.*f", (int)(p > 150 ? 150 : p), v.u.f);
    *out = moe_template_value_float(strtod(text, NULL));
    return 0;
}

static int
FILTER(do_round)
{
    double f, scale;
    int64_t p;
    int rc;

    (void)args;
    if ((rc = moe_template_filter_int(r, &a[1], 0, &p)) != 0)
        return rc;
    if (!moe_template_value_is_number(&a[0]))
        return moe_template_value_fail(r, "type %s doesn't define __round__ method",
            moe_template_value_type(&a[0]));
    if (p < -300)
        return moe_template_value_fail(r, "so few digits are not supported");
    if (!moe_template_filter_given(&a[2]) || moe_template_value_is_text(&a[2], "common"))
        return round_common(r, a[0], p, out);
    scale = pow(10, (double)(p > 300 ? 300 : p));
    f = moe_template_number_real(&a[0]) * scale;
    if (moe_template_value_is_text(&a[2], "ceil"))
        f = ceil(f);
    else if (moe_template_value_is_text(&a[2], "floor"))
        f = floor(f);
    else
        return moe_template_value_fail(r, "method must be common, ceil or floor");
    *out = moe_template_value_float(f / scale);
    return 0;
}

/* ---- Others ---------------------------------------------------------------------- */

static int
FILTER(do_default)
{
    (void)args;
    if (a[0].kind != MOE_T_UNDEFINED &&
        (!moe_template_value_truth(&a[2]) || moe_template_value_truth(&a[0]))) {
        *out = a[0];
        return 0;
    }
    if (a[1].kind == MOE_T_MISSING)
        return moe_template_value_str(r, "", 0, false, out);
    *out = a[1];
    return 0;
}

/* An attribute only, never an item. */
static int
FILTER(do_attr)
{
    struct moe_tval name, of = a[0];
    char text[128];
    int rc;

    (void)args;
    if ((rc = moe_template_print_text(r, a[1], &name)) != 0)
        return rc;
    if (name.u.s->n >= sizeof(text))
        return moe_template_value_fail(r, "so long a name of an attribute is not supported");
    memcpy(text, name.u.s->p, name.u.s->n);
    text[name.u.s->n] = '\0';
    if (of.kind == MOE_T_DICT && moe_template_method(MOE_T_DICT, text) == NULL)
        return moe_template_value_undefined(r, out, "'dict object' has no attribute '%s'", text);
    return moe_template_access_attr(r, of, text, out);
}

static int
FILTER(do_tojson)
{
    static const struct moe_tstr colon = { .p = ": ", .n = 2 }, comma = { .p = ",", .n = 1 },
        comma_space = { .p = ", ", .n = 2 }, none = { .p = "", .n = 0, .chars = 0 },
        space = { .p = " ", .n = 1, .chars = 1 };
    struct moe_template_json how = { .ascii = moe_template_value_truth(&a[1]),
        .sort = moe_template_value_truth(&a[4]), .lines = moe_template_filter_given(&a[2]) };
    struct moe_tval indent = a[2];
    const struct moe_tlist *l;
    struct moe_tstr empty = none;
    struct moe_tbuf b;
    int64_t n;
    int rc;

    (void)args;
    if (how.lines && indent.kind != MOE_T_STR &&
        ((rc = moe_template_filter_int(r, &a[2], 0, &n)) != 0 ||
            (rc = moe_template_string_pad(r, &empty, n, &space, '<', &indent)) != 0))
        return rc;
    how.indent = how.lines ? indent.u.s : NULL;
    how.comma = how.lines ? &comma : &comma_space;
    how.colon = &colon;
    if (moe_template_filter_given(&a[3])) {
        if ((rc = moe_template_items_all(r, a[3], &l)) != 0)
            return rc;
        if (l->n != 2 || l->v[0].kind != MOE_T_STR || l->v[1].kind != MOE_T_STR)
            return moe_template_value_fail(r, "separators are two strings");
        how.comma = l->v[0].u.s;
        how.colon = l->v[1].u.s;
    }
    moe_template_value_begin(r, &b);
    rc = moe_template_print_json(&b, a[0], &how);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* ---- The table -------------------------------------------------------------------- */

static const struct moe_tfunction FILTERS[] = {
    { "float", 1, "value default", do_float }, { "int", 1, "value default base", do_int },
    { "abs", 1, "x", do_abs }, { "round", 1, "value precision method", do_round },
    { "default", 1, "value default_value boolean", do_default },
    { "d", 1, "value default_value boolean", do_default }, { "attr", 2, "obj name", do_attr },
    { "tojson", 1, "value ensure_ascii indent separators sort_keys", do_tojson },
    { NULL, 0, NULL, NULL },
};

const struct moe_tfunction *
moe_template_filter(const char *name)
{
    const struct moe_tfunction *const tables[] = { FILTERS, moe_template_filter_text,
        moe_template_filter_list, moe_template_filter_sort };

    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        for (const struct moe_tfunction *f = tables[i]; f->name != NULL; f++)
            if (strcmp(name, f->name) == 0)
                return f;
    return NULL;
}
