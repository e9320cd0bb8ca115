/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns formatting by patterns. C's printf does the numbers, whose conversions
 * are those of Python but for whole numbers beyond 64 bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/utf8.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"
#include "common/engine/template_format.h"
#include "common/engine/template_print.h"
#include "common/engine/template_string.h"

/* ---- "..." % v --------------------------------------------------------------------- */

struct field {
    bool minus, plus, space, zero, sharp;
    int width, precision;       /* -1: none */
    char type;
};

struct percent {
    struct moe_trun *r;
    const char *p, *end;
    struct moe_tval v;
    size_t used;                /* of a tuple's values */
    struct moe_tbuf out;
};

static int
number_of(struct percent *f, int *out)
{
    int v = 0;

    if (f->p == f->end || *f->p < '0' || *f->p > '9')
        return 0;
    for (; f->p < f->end && *f->p >= '0' && *f->p <= '9'; f->p++) {
        v = 10 * v + (*f->p - '0');
        if (v > MOE_TEMPLATE_MAX_FIELD)
            return moe_template_value_limit(f->r, "a field is too wide");
    }
    *out = v;
    return 0;
}

/* What stands after "%" or "%(name)". */
static int
read_field(struct percent *f, struct field *d)
{
    int rc;

    *d = (struct field){ .width = -1, .precision = -1 };
    for (; f->p < f->end; f->p++) {
        if (*f->p == '-')
            d->minus = true;
        else if (*f->p == '+')
            d->plus = true;
        else if (*f->p == ' ')
            d->space = true;
        else if (*f->p == '0')
            d->zero = true;
        else if (*f->p == '#')
            d->sharp = true;
        else
            break;
    }
    if ((rc = number_of(f, &d->width)) != 0)
        return rc;
    if (f->p < f->end && *f->p == '.') {
        f->p++;
        d->precision = 0;
        if ((rc = number_of(f, &d->precision)) != 0)
            return rc;
    }
    while (f->p < f->end && (*f->p == 'l' || *f->p == 'h' || *f->p == 'L'))
        f->p++;
    if (f->p == f->end)
        return moe_template_value_fail(f->r, "incomplete format");
    d->type = *f->p++;
    return 0;
}

/* The value for the next field. */
static int
next_value(struct percent *f, struct moe_tval *out)
{
    if (f->v.kind == MOE_T_TUPLE) {
        if (f->used == f->v.u.l->n)
            return moe_template_value_fail(f->r, "not enough arguments for format string");
        *out = f->v.u.l->v[f->used++];
        return 0;
    }
    if (f->used++ > 0)
        return moe_template_value_fail(f->r, "not enough arguments for format string");
    *out = f->v;
    return 0;
}

static int
named_value(struct percent *f, struct moe_tval *out)
{
    const char *close = memchr(f->p, ')', (size_t)(f->end - f->p));
    const struct moe_tval *found;
    struct moe_tval key;
    int rc;

    if (f->v.kind != MOE_T_DICT)
        return moe_template_value_fail(f->r, "format requires a mapping");
    if (close == NULL)
        return moe_template_value_fail(f->r, "incomplete format key");
    if ((rc = moe_template_value_str(f->r, f->p, (size_t)(close - f->p), false, &key)) != 0 ||
        (rc = moe_template_dict_get(f->r, f->v.u.d, key, &found)) != 0)
        return rc;
    if (found == NULL)
        return moe_template_value_fail(f->r, "no key '%.*s'", (int)(close - f->p), f->p);
    *out = *found;
    f->p = close + 1;
    return 0;
}

static int
put_text(struct percent *f, const struct field *d, struct moe_tval v)
{
    const struct moe_tstr space = { .p = " ", .n = 1, .chars = 1 };
    struct moe_tbuf b;
    int rc;

    if (d->type == 'r') {
        moe_template_value_begin(f->r, &b);
        if ((rc = moe_template_print_repr(&b, v)) != 0 ||
            (rc = moe_template_value_done(&b, &v)) != 0)
            return rc;
    } else if ((rc = moe_template_print_text(f->r, v, &v)) != 0) {
        return rc;
    }
    if (d->precision >= 0 && (size_t)d->precision < moe_template_value_chars(v.u.s) &&
        (rc = moe_template_value_sub(f->r, v.u.s, 0,
            moe_template_value_offset(v.u.s, (size_t)d->precision), &v)) != 0)
        return rc;
    if ((rc = moe_template_string_pad(f->r, v.u.s, d->width, &space, d->minus ? '<' : '>',
        &v)) != 0)
        return rc;
    return moe_template_value_add_str(&f->out, v.u.s);
}

/* A number through printf with the same flags; conv is "lld", "f" and so on. */
static int
put_number(struct percent *f, const struct field *d, const char *conv, struct moe_tval v)
{
    char form[48], *text;
    bool real = v.kind == MOE_T_FLOAT;
    size_t room = 400 + (size_t)(d->width > 0 ? d->width : 0) +
        (size_t)(d->precision > 0 ? d->precision : 0);
    int n;

    n = snprintf(form, sizeof(form), "%%%s%s%s%s%s", d->minus ? "-" : "", d->plus ? "+" : "",
        d->space ? " " : "", d->zero ? "0" : "", d->sharp ? "#" : "");
    if (d->width >= 0)
        n += snprintf(form + n, sizeof(form) - (size_t)n, "%d", d->width);
    if (d->precision >= 0)
        n += snprintf(form + n, sizeof(form) - (size_t)n, ".%d", d->precision);
    (void)snprintf(form + n, sizeof(form) - (size_t)n, "%s", conv);
    if ((text = moe_template_value_alloc(f->r, room, 1)) == NULL)
        return MOE_T_FAILED;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = real ? snprintf(text, room, form, v.u.f) : snprintf(text, room, form, (long long)v.u.i);
#pragma GCC diagnostic pop
    if (n < 0 || (size_t)n >= room)
        return moe_template_value_limit(f->r, "a field is too wide");
    return moe_template_value_add(&f->out, text, (size_t)n, false);
}

static int
put_whole(struct percent *f, struct field *d, struct moe_tval v)
{
    char conv[4] = { 'l', 'l', d->type == 'i' || d->type == 'u' ? 'd' : d->type, '\0' };
    int rc;

    if (!moe_template_value_is_number(&v) || (v.kind == MOE_T_FLOAT && d->type != 'd' &&
        d->type != 'i' && d->type != 'u'))
        return moe_template_value_fail(f->r, "%%%c format: a number is required, not %s",
            d->type, moe_template_value_type(&v));
    if (v.kind == MOE_T_BOOL)
        v = moe_template_value_int(v.u.b);
    if (v.kind == MOE_T_FLOAT && (rc = moe_template_number_whole(f->r, v.u.f, &v)) != 0)
        return rc;
    if (v.kind == MOE_T_BIG) {
        if (conv[2] != 'd')
            return moe_template_value_fail(f->r, "%%%c of so large a number is not supported",
                d->type);
        d->precision = -1;
        return put_text(f, d, v);
    }
    if (conv[2] == 'd' || v.u.i >= 0)
        return put_number(f, d, conv, v);
    return moe_template_value_fail(f->r, "%%%c of a negative number is not supported", d->type);
}

static int
put_field(struct percent *f, struct field *d, struct moe_tval v)
{
    char conv[2] = { d->type, '\0' }, utf8[4];

    switch (d->type) {
    case 's':
    case 'r':
        return put_text(f, d, v);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        return put_whole(f, d, v);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (!moe_template_value_is_number(&v))
            return moe_template_value_fail(f->r, "must be real number, not %s",
                moe_template_value_type(&v));
        return put_number(f, d, conv, moe_template_value_float(moe_template_number_real(&v)));
    case 'c':
        if (v.kind == MOE_T_INT && v.u.i >= 0 && v.u.i <= 0x10ffff &&
            moe_utf8_put(utf8, (uint32_t)v.u.i) > 0) {
            struct moe_tbuf b;
            int rc;

            moe_template_value_begin(f->r, &b);
            if ((rc = moe_template_value_add(&b, utf8, moe_utf8_put(utf8, (uint32_t)v.u.i),
                false)) == 0 && (rc = moe_template_value_done(&b, &v)) == 0)
                rc = put_text(f, d, v);
            return rc;
        }
        if (v.kind == MOE_T_STR && moe_template_value_chars(v.u.s) == 1)
            return put_text(f, d, v);
        return moe_template_value_fail(f->r, "%%c requires int or char");
    default:
        return moe_template_value_fail(f->r, "unsupported format character");
    }
}

int
moe_template_format_percent(struct moe_trun *r, const struct moe_tstr *s, struct moe_tval v,
    struct moe_tval *out)
{
    struct percent f = { .r = r, .p = s->p, .end = s->p + s->n, .v = v };
    struct moe_tval one = { 0 };
    struct field d;
    bool rest;
    int rc = 0;

    moe_template_value_begin(r, &f.out);
    while (rc == 0 && f.p < f.end) {
        const char *p = memchr(f.p, '%', (size_t)(f.end - f.p));
        bool outside = moe_template_value_outside(s), named;

        p = p == NULL ? f.end : p;
        if ((rc = moe_template_value_add(&f.out, f.p, (size_t)(p - f.p), outside)) != 0)
            break;
        f.p = p;
        if (p == f.end)
            break;
        f.p++;
        if (f.p < f.end && *f.p == '%') {
            rc = moe_template_value_add(&f.out, f.p++, 1, outside);
            continue;
        }
        named = f.p < f.end && *f.p == '(';
        f.p += named;
        if ((named && (rc = named_value(&f, &one)) != 0) || (rc = read_field(&f, &d)) != 0 ||
            (!named && (rc = next_value(&f, &one)) != 0))
            break;
        rc = put_field(&f, &d, one);
    }
    rest = v.kind == MOE_T_TUPLE ? f.used < v.u.l->n
        : f.used == 0 && v.kind != MOE_T_DICT && v.kind != MOE_T_LIST &&
            v.kind != MOE_T_UNDEFINED;
    if (rc == 0 && rest)
        return moe_template_value_fail(r,
            "not all arguments converted during string formatting");
    return rc != 0 ? rc : moe_template_value_done(&f.out, out);
}

/* ---- "...".format() ------------------------------------------------------------------ */

/* The value of field [p, end): empty, a number or a name. */
static int
brace_value(struct moe_trun *r, const char *p, const char *end, const struct moe_targs *args,
    size_t *automatic, struct moe_tval *out)
{
    size_t n = (size_t)(end - p), i = 0;

    if (n == 0) {
        i = (*automatic)++;
    } else if (*p >= '0' && *p <= '9') {
        for (; p < end; p++) {
            if (*p < '0' || *p > '9' || i > 10000)
                return moe_template_value_fail(r, "this field of format() is not supported");
            i = 10 * i + (size_t)(*p - '0');
        }
    } else {
        for (size_t k = 0; k < args->n_kw; k++)
            if (strlen(args->kw[k].name) == n && memcmp(args->kw[k].name, p, n) == 0) {
                *out = args->kw[k].v;
                return 0;
            }
        return moe_template_value_fail(r, "format() has no argument '%.*s'", (int)n, p);
    }
    if (i >= args->n)
        return moe_template_value_fail(r, "Replacement index %zu out of range for format()", i);
    *out = args->pos[i];
    return 0;
}

/* The next brace, or the end. */
static const char *
next_brace(const char *p, const char *end)
{
    while (p < end && *p != '{' && *p != '}')
        p++;
    return p;
}

int
moe_template_format_braces(struct moe_trun *r, const struct moe_tstr *s,
    const struct moe_targs *args, struct moe_tval *out)
{
    const char *p = s->p, *end = s->p + s->n;
    bool outside = moe_template_value_outside(s);
    size_t automatic = 0;
    struct moe_tval v = { 0 };
    struct moe_tbuf b;
    int rc = 0;

    moe_template_value_begin(r, &b);
    while (rc == 0 && p < end) {
        const char *q = next_brace(p, end);

        if ((rc = moe_template_value_add(&b, p, (size_t)(q - p), outside)) != 0 || q == end)
            break;
        p = q + 1;
        if (p < end && *p == *q) {
            rc = moe_template_value_add(&b, p++, 1, outside);
            continue;
        }
        if (*q == '}' || (q = memchr(p, '}', (size_t)(end - p))) == NULL)
            return moe_template_value_fail(r, "Single '%c' encountered in format string",
                p[-1]);
        if (memchr(p, ':', (size_t)(q - p)) != NULL || memchr(p, '!', (size_t)(q - p)) != NULL)
            return moe_template_value_fail(r, "this field of format() is not supported");
        if ((rc = brace_value(r, p, q, args, &automatic, &v)) == 0)
            rc = moe_template_print_str(&b, v);
        p = q + 1;
    }
    return rc != 0 ? rc : moe_template_value_done(&b, out);
}

/* ---- Time ------------------------------------------------------------------------ */

int
moe_template_format_time(struct moe_trun *r, const struct moe_tstr *s, struct moe_tval *out)
{
    enum { ROOM = 4096 };
    time_t now = (time_t)r->now;
    char form[512], *text;
    struct tm tm;
    size_t n = 0;

    if (gmtime_r(&now, &tm) == NULL)
        return moe_template_value_fail(r, "no such time");
    /* A mark at the end tells an empty result from one that is too long. */
    for (size_t i = 0; i < s->n; i++) {
        if (n + 8 > sizeof(form) || s->p[i] == '\0')
            return moe_template_value_fail(r, "this format of the time is not supported");
        form[n++] = s->p[i];
        if (s->p[i] != '%' || i + 1 == s->n)
            continue;
        i++;
        n -= s->p[i] == 'z' || s->p[i] == 'Z' || s->p[i] == 'f';
        if (s->p[i] == 'f') {
            memcpy(form + n, "000000", 6);
            n += 6;
        } else if (s->p[i] != 'z' && s->p[i] != 'Z') {
            form[n++] = s->p[i];
        }
    }
    form[n++] = '.';
    form[n] = '\0';
    if ((text = moe_template_value_alloc(r, ROOM, 1)) == NULL)
        return MOE_T_FAILED;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = strftime(text, ROOM, form, &tm);
#pragma GCC diagnostic pop
    if (n == 0 || !moe_utf8_valid(text, n))
        return moe_template_value_fail(r, "this format of the time is not supported");
    return moe_template_value_str(r, text, n - 1, false, out);
}
