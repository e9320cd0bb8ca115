/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the printed forms of values.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"
#include "common/engine/template_compare.h"
#include "common/engine/template_print.h"

static int
put(struct moe_tbuf *b, const char *text)
{
    return moe_template_value_add(b, text, strlen(text), false);
}

/* ---- Numbers --------------------------------------------------------------------- */

void
moe_template_print_float(char *text, double f)
{
    char digits[32];
    long exp;
    int n = 1;

    if (isnan(f) || isinf(f)) {
        (void)snprintf(text, 32, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    for (;; n++) {
        (void)snprintf(digits, sizeof(digits), "%.*e", n - 1, f);
        if (n == 17 || strtod(digits, NULL) == f)
            break;
    }
    exp = strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exp < -4 || exp >= 16)
        /* C prints at least two digits of the exponent, as Python does. */
        (void)snprintf(text, 32, "%s", digits);
    else
        (void)snprintf(text, 32, "%.*f", n - 1 > exp ? n - 1 - (int)exp : 1, f);
}

static int
put_number(struct moe_tbuf *b, const struct moe_tval *v)
{
    char text[32];

    if (v->kind == MOE_T_BIG)
        return put(b, v->u.big);
    if (v->kind == MOE_T_FLOAT)
        moe_template_print_float(text, v->u.f);
    else
        (void)snprintf(text, sizeof(text), "%lld", (long long)v->u.i);
    return put(b, text);
}

/* ---- repr ------------------------------------------------------------------------ */

/* What Python escapes: all but letters, marks, numbers, punctuation, symbols and the space. */
static bool
printable(uint32_t c)
{
    const char *cat;

    if (c < 0x7f)
        return c >= 0x20;
    cat = utf8proc_category_string((utf8proc_int32_t)c);
    return cat[0] != 'C' && cat[0] != 'Z';
}

static void
escape(char *to, size_t n, uint32_t c, char quote)
{
    if (c == '\\' || c == (unsigned char)quote)
        (void)snprintf(to, n, "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        (void)snprintf(to, n, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (c < 0x100)
        (void)snprintf(to, n, "\\x%02x", (unsigned)c);
    else if (c < 0x10000)
        (void)snprintf(to, n, "\\u%04x", (unsigned)c);
    else
        (void)snprintf(to, n, "\\U%08x", (unsigned)c);
}

static int
quoted(struct moe_tbuf *b, const struct moe_tstr *s)
{
    char quote = s->n > 0 && memchr(s->p, '\'', s->n) != NULL && memchr(s->p, '"', s->n) == NULL
        ? '"' : '\'';
    bool outside = moe_template_value_outside(s);
    size_t run = 0, k;
    int rc = moe_template_value_add(b, &quote, 1, false);

    for (size_t at = 0; rc == 0 && at < s->n; at += k) {
        uint32_t c = 0;
        char text[12];

        k = moe_utf8_get(s->p + at, s->n - at, &c);
        if (printable(c) && c != '\\' && c != (unsigned char)quote)
            continue;
        escape(text, sizeof(text), c, quote);
        if ((rc = moe_template_value_add(b, s->p + run, at - run, outside)) == 0)
            rc = moe_template_value_add(b, text, strlen(text), outside);
        run = at + k;
    }
    if (rc == 0)
        rc = moe_template_value_add(b, s->p + run, s->n - run, outside);
    return rc != 0 ? rc : moe_template_value_add(b, &quote, 1, false);
}

/* n values with ", " between. */
static int
row(struct moe_tbuf *b, const struct moe_tval *v, size_t n)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (i > 0)
            rc = put(b, ", ");
        if (rc == 0)
            rc = moe_template_print_repr(b, v[i]);
    }
    return rc;
}

static int
print_dict(struct moe_tbuf *b, const struct moe_tdict *d)
{
    int rc = put(b, "{");

    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        if ((i > 0 && (rc = put(b, ", ")) != 0) ||
            (rc = moe_template_print_repr(b, d->k[i])) != 0 || (rc = put(b, ": ")) != 0)
            break;
        rc = moe_template_print_repr(b, d->v[i]);
    }
    return rc != 0 ? rc : put(b, "}");
}

static int
print_view(struct moe_tbuf *b, const struct moe_tview *view)
{
    const struct moe_tdict *d = view->d;
    int rc;

    if ((rc = put(b, "dict_")) != 0 || (rc = put(b, view->what)) != 0 || (rc = put(b, "([")) != 0)
        return rc;
    if (view->what[0] != 'i')
        rc = row(b, view->what[0] == 'k' ? d->k : d->v, d->n);
    for (size_t i = 0; view->what[0] == 'i' && rc == 0 && i < d->n; i++) {
        struct moe_tval pair[2] = { d->k[i], d->v[i] };

        if ((rc = put(b, i > 0 ? ", (" : "(")) == 0 && (rc = row(b, pair, 2)) == 0)
            rc = put(b, ")");
    }
    return rc != 0 ? rc : put(b, "])");
}

static int
print_range(struct moe_tbuf *b, const struct moe_trange *g)
{
    char text[96];

    if (g->step == 1)
        (void)snprintf(text, sizeof(text), "range(%lld, %lld)", (long long)g->start,
            (long long)g->stop);
    else
        (void)snprintf(text, sizeof(text), "range(%lld, %lld, %lld)", (long long)g->start,
            (long long)g->stop, (long long)g->step);
    return put(b, text);
}

static int
print_container(struct moe_tbuf *b, const struct moe_tval *v)
{
    int rc;

    if (v->kind == MOE_T_DICT)
        return print_dict(b, v->u.d);
    if (v->kind == MOE_T_VIEW)
        return print_view(b, v->u.view);
    if (v->kind == MOE_T_NAMESPACE) {
        if ((rc = put(b, "<Namespace ")) == 0 && (rc = print_dict(b, v->u.d)) == 0)
            rc = put(b, ">");
        return rc;
    }
    if ((rc = put(b, v->kind == MOE_T_LIST ? "[" : "(")) != 0 ||
        (rc = row(b, v->u.l->v, v->u.l->n)) != 0)
        return rc;
    if (v->kind == MOE_T_LIST)
        return put(b, "]");
    return put(b, v->u.l->n == 1 ? ",)" : ")");
}

int
moe_template_print_repr(struct moe_tbuf *b, struct moe_tval v)
{
    char text[64];
    int rc;

    if ((rc = moe_template_value_step(b->r, 1)) != 0)
        return rc;
    switch (v.kind) {
    case MOE_T_UNDEFINED:
    case MOE_T_MISSING:
        return put(b, "Undefined");
    case MOE_T_NONE:
        return put(b, "None");
    case MOE_T_BOOL:
        return put(b, v.u.b ? "True" : "False");
    case MOE_T_INT:
    case MOE_T_BIG:
    case MOE_T_FLOAT:
        return put_number(b, &v);
    case MOE_T_STR:
        return quoted(b, v.u.s);
    case MOE_T_RANGE:
        return print_range(b, v.u.r);
    case MOE_T_LIST:
    case MOE_T_TUPLE:
    case MOE_T_DICT:
    case MOE_T_VIEW:
    case MOE_T_NAMESPACE:
        if ((rc = moe_template_value_deeper(b->r)) != 0)
            return rc;
        rc = print_container(b, &v);
        b->r->depth--;
        return rc;
    default:
        (void)snprintf(text, sizeof(text), "<%s object>", moe_template_value_type(&v));
        return put(b, text);
    }
}

int
moe_template_print_str(struct moe_tbuf *b, struct moe_tval v)
{
    if (v.kind == MOE_T_STR)
        return moe_template_value_add_str(b, v.u.s);
    return v.kind == MOE_T_UNDEFINED ? 0 : moe_template_print_repr(b, v);
}

int
moe_template_print_text(struct moe_trun *r, struct moe_tval v, struct moe_tval *out)
{
    struct moe_tbuf b;
    int rc;

    if (v.kind == MOE_T_STR) {
        *out = v;
        return 0;
    }
    moe_template_value_begin(r, &b);
    rc = moe_template_print_str(&b, v);
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* ---- JSON ------------------------------------------------------------------------ */

static void
json_escape(char *to, size_t n, uint32_t c)
{
    static const char from[] = "\"\\\n\r\t\f\b", name[] = "\"\\nrtfb";
    const char *at = c == 0 || c > 0x7f ? NULL : strchr(from, (int)c);

    if (at != NULL)
        (void)snprintf(to, n, "\\%c", name[at - from]);
    else if (c < 0x10000)
        (void)snprintf(to, n, "\\u%04x", (unsigned)c);
    else
        (void)snprintf(to, n, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
            (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
}

static int
quoted_json(struct moe_tbuf *b, const struct moe_tstr *s, bool ascii)
{
    bool outside = moe_template_value_outside(s);
    size_t run = 0, k;
    int rc = put(b, "\"");

    for (size_t at = 0; rc == 0 && at < s->n; at += k) {
        uint32_t c = 0;
        char text[16];

        k = moe_utf8_get(s->p + at, s->n - at, &c);
        if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || !ascii))
            continue;
        json_escape(text, sizeof(text), c);
        if ((rc = moe_template_value_add(b, s->p + run, at - run, outside)) == 0)
            rc = moe_template_value_add(b, text, strlen(text), outside);
        run = at + k;
    }
    if (rc == 0)
        rc = moe_template_value_add(b, s->p + run, s->n - run, outside);
    return rc != 0 ? rc : put(b, "\"");
}

/* A scalar, as it stands as a value, or in quotes as a key. */
static int
json_scalar(struct moe_tbuf *b, const struct moe_tval *v)
{
    if (v->kind == MOE_T_NONE)
        return put(b, "null");
    if (v->kind == MOE_T_BOOL)
        return put(b, v->u.b ? "true" : "false");
    if (v->kind == MOE_T_FLOAT && isnan(v->u.f))
        return put(b, "NaN");
    if (v->kind == MOE_T_FLOAT && isinf(v->u.f))
        return put(b, v->u.f < 0 ? "-Infinity" : "Infinity");
    return put_number(b, v);
}

static int
json_key(struct moe_tbuf *b, const struct moe_tval *k, const struct moe_template_json *how)
{
    int rc;

    if (k->kind == MOE_T_STR)
        return quoted_json(b, k->u.s, how->ascii);
    if (k->kind != MOE_T_NONE && !moe_template_value_is_number(k))
        return moe_template_value_fail(b->r,
            "keys must be str, int, float, bool or None, not %s", moe_template_value_type(k));
    if ((rc = put(b, "\"")) == 0 && (rc = json_scalar(b, k)) == 0)
        rc = put(b, "\"");
    return rc;
}

/* A new line and the indent of a level. */
static int
json_line(struct moe_tbuf *b, const struct moe_template_json *how, int level)
{
    int rc = how->lines ? put(b, "\n") : 0;

    for (int i = 0; rc == 0 && how->indent != NULL && i < level; i++)
        rc = moe_template_value_add_str(b, how->indent);
    return rc;
}

static int json_value(struct moe_tbuf *b, struct moe_tval v, const struct moe_template_json *how,
    int level);

static int
json_list(struct moe_tbuf *b, const struct moe_tlist *l, const struct moe_template_json *how,
    int level)
{
    int rc;

    if (l->n == 0)
        return put(b, "[]");
    rc = put(b, "[");
    for (size_t i = 0; rc == 0 && i < l->n; i++) {
        if (i > 0)
            rc = moe_template_value_add_str(b, how->comma);
        if (rc == 0 && (rc = json_line(b, how, level + 1)) == 0)
            rc = json_value(b, l->v[i], how, level + 1);
    }
    if (rc == 0 && (rc = json_line(b, how, level)) == 0)
        rc = put(b, "]");
    return rc;
}

static int
json_dict(struct moe_tbuf *b, const struct moe_tdict *d, const struct moe_template_json *how,
    int level)
{
    size_t *place;
    int rc = 0;

    if (d->n == 0)
        return put(b, "{}");
    if ((place = moe_template_value_alloc(b->r, d->n, sizeof(*place))) == NULL)
        return MOE_T_FAILED;
    for (size_t i = 0; i < d->n; i++)
        place[i] = i;
    if (how->sort)
        rc = moe_template_compare_sort(b->r, d->k, place, d->n, false);
    if (rc == 0)
        rc = put(b, "{");
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        if (i > 0)
            rc = moe_template_value_add_str(b, how->comma);
        if (rc != 0 || (rc = json_line(b, how, level + 1)) != 0 ||
            (rc = json_key(b, &d->k[place[i]], how)) != 0 ||
            (rc = moe_template_value_add_str(b, how->colon)) != 0)
            break;
        rc = json_value(b, d->v[place[i]], how, level + 1);
    }
    if (rc == 0 && (rc = json_line(b, how, level)) == 0)
        rc = put(b, "}");
    return rc;
}

static int
json_value(struct moe_tbuf *b, struct moe_tval v, const struct moe_template_json *how, int level)
{
    int rc;

    if ((rc = moe_template_value_step(b->r, 1)) != 0)
        return rc;
    if (v.kind == MOE_T_STR)
        return quoted_json(b, v.u.s, how->ascii);
    if (v.kind == MOE_T_NONE || moe_template_value_is_number(&v))
        return json_scalar(b, &v);
    if (v.kind != MOE_T_LIST && v.kind != MOE_T_TUPLE && v.kind != MOE_T_DICT)
        return moe_template_value_fail(b->r, "Object of type %s is not JSON serializable",
            moe_template_value_type(&v));
    if ((rc = moe_template_value_deeper(b->r)) != 0)
        return rc;
    rc = v.kind == MOE_T_DICT ? json_dict(b, v.u.d, how, level) : json_list(b, v.u.l, how, level);
    b->r->depth--;
    return rc;
}

int
moe_template_print_json(struct moe_tbuf *b, struct moe_tval v,
    const struct moe_template_json *how)
{
    return json_value(b, v, how, 0);
}
