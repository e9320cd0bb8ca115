/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what series.h says. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/num.h"
#include "common/system/series.h"

#define LARGEST 1e300

struct csv {
    const char *p, *end, *name;
    size_t line, began;         /* of the row that is read */
    char field[MOE_SERIES_MAX_FIELD + 1];
    size_t len;
    bool last;                  /* the field ended its row */
};

static int
fail(const struct csv *c, int code, const char *what, struct moe_err *e)
{
    return moe_err_set(e, code, "%s:%zu: %s", c->name, c->began, what);
}

/* ---- Fields ----------------------------------------------------------------------------- */

static int
put(struct csv *c, char byte, struct moe_err *e)
{
    if (c->len == MOE_SERIES_MAX_FIELD)
        return fail(c, MOE_ELIMIT, "a field is too long", e);
    if (byte == '\0')
        return fail(c, MOE_EFORMAT, "a NUL in a text", e);
    c->line += byte == '\n';
    c->field[c->len++] = byte;
    return 0;
}

/* What stands between quotes; a doubled one is one. */
static int
quoted(struct csv *c, struct moe_err *e)
{
    int rc = 0;

    for (c->p++; rc == 0; c->p++) {
        if (c->p == c->end)
            return fail(c, MOE_EFORMAT, "a quote does not end", e);
        if (*c->p == '"') {
            if (c->p + 1 == c->end || c->p[1] != '"') {
                c->p++;
                return 0;
            }
            c->p++;
        }
        rc = put(c, *c->p, e);
    }
    return rc;
}

static int
next_field(struct csv *c, struct moe_err *e)
{
    int rc = 0;

    c->len = 0;
    if (c->p < c->end && *c->p == '"')
        rc = quoted(c, e);
    else
        while (rc == 0 && c->p < c->end && *c->p != ',' && *c->p != '\n' && *c->p != '\r')
            rc = *c->p == '"' ? fail(c, MOE_EFORMAT, "a quote within a field", e) :
                put(c, *c->p++, e);
    if (rc != 0)
        return rc;
    c->field[c->len] = '\0';
    c->last = c->p == c->end || *c->p != ',';
    if (c->p == c->end)
        return 0;
    if (*c->p == '\r' && (++c->p == c->end || *c->p != '\n'))
        return fail(c, MOE_EFORMAT, "a carriage return within a row", e);
    if (*c->p != ',' && *c->p != '\n')
        return fail(c, MOE_EFORMAT, "text behind a quote", e);
    c->line += *c->p++ == '\n';
    return 0;
}

/* Whether there is a row; empty lines are none. */
static bool
next_row(struct csv *c)
{
    for (; c->p < c->end && (*c->p == '\n' || (*c->p == '\r' && c->p + 1 < c->end &&
        c->p[1] == '\n')); c->p++)
        c->line += *c->p == '\n';
    c->began = c->line;
    return c->p < c->end;
}

/* ---- Values ----------------------------------------------------------------------------- */

/* Two digits and so on, within limits. */
static bool
digits(const char **p, int n, int lo, int hi, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        *out = *out * 10 + (**p - '0');
    }
    return *out >= lo && *out <= hi;
}

static bool
mark(const char **p, const char *any)
{
    return **p != '\0' && strchr(any, *(*p)++) != NULL;
}

/* Days since 1970 of a date of the Gregorian calendar; a year begins in March here. */
static double
days(int year, int month, int day)
{
    int y = month > 2 ? year : year - 1, m = (month + 9) % 12;

    return 365.0 * y + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

/* RFC 3339: 2026-12-01T12:00:00.5+01:00; a blank may stand for the T. */
static bool
instant(const char *p, double *t)
{
    int year, month, day, hour, minute, second, oh = 0, om = 0;
    double fraction = 0, unit = 0.1, sign;

    if (!digits(&p, 4, 1, 9999, &year) || !mark(&p, "-") || !digits(&p, 2, 1, 12, &month) ||
        !mark(&p, "-") || !digits(&p, 2, 1, 31, &day) || !mark(&p, "Tt ") ||
        !digits(&p, 2, 0, 23, &hour) || !mark(&p, ":") || !digits(&p, 2, 0, 59, &minute) ||
        !mark(&p, ":") || !digits(&p, 2, 0, 60, &second))
        return false;
    if (*p == '.') {
        if (*++p < '0' || *p > '9')
            return false;
        for (; *p >= '0' && *p <= '9'; p++, unit /= 10)
            fraction += unit * (*p - '0');
    }
    sign = *p == '-' ? -1 : 1;
    if (!mark(&p, "Zz+-"))
        return false;
    if (p[-1] == '+' || p[-1] == '-') {
        if (!digits(&p, 2, 0, 23, &oh) || !mark(&p, ":") || !digits(&p, 2, 0, 59, &om))
            return false;
    }
    *t = days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second + fraction -
        sign * (oh * 3600 + om * 60);
    return *p == '\0';
}

static bool
number(const char *s, double *v)
{
    static const struct { const char *word; double v; } words[] = { { "nan", NAN },
        { "inf", INFINITY }, { "+inf", INFINITY }, { "-inf", -INFINITY },
        { "infinity", INFINITY }, { "-infinity", -INFINITY } };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(s, words[i].word) == 0) {
            *v = words[i].v;
            return true;
        }
    }
    return moe_num_real(s, -LARGEST, LARGEST, "", v, NULL) == 0;
}

/* ---- Rows ------------------------------------------------------------------------------- */

/* The header: how many columns, and which are the two. */
static int
header(struct csv *c, const char *time, const char *value, size_t col[3], struct moe_err *e)
{
    const char *names[] = { time, value };
    int rc;

    col[0] = col[1] = SIZE_MAX;
    col[2] = 0;
    if (!next_row(c))
        return fail(c, MOE_EFORMAT, "no header", e);
    do {
        if ((rc = next_field(c, e)) != 0)
            return rc;
        if (col[2] == MOE_SERIES_MAX_COLUMNS)
            return fail(c, MOE_ELIMIT, "too many columns", e);
        for (int k = 0; k < 2; k++) {
            if (strcmp(c->field, names[k]) != 0)
                continue;
            if (col[k] != SIZE_MAX)
                return moe_err_set(e, MOE_EFORMAT, "%s:%zu: two columns %s", c->name, c->began,
                    names[k]);
            col[k] = col[2];
        }
        col[2]++;
    } while (!c->last);
    for (int k = 0; k < 2; k++) {
        if (col[k] == SIZE_MAX)
            return moe_err_set(e, MOE_EFORMAT, "%s:%zu: no column %s", c->name, c->began,
                names[k]);
    }
    return 0;
}

static int
row(struct csv *c, const size_t col[3], struct moe_series *s, struct moe_err *e)
{
    bool there = true;
    double t = 0, v = 0;
    size_t n = 0;
    int rc;

    do {
        if ((rc = next_field(c, e)) != 0)
            return rc;
        if (n == col[0] && !(number(c->field, &t) && isfinite(t)) && !instant(c->field, &t))
            return fail(c, MOE_EFORMAT, "the time is neither seconds nor a date", e);
        if (n == col[1] && c->len == 0)
            there = false;
        else if (n == col[1] && !number(c->field, &v))
            return fail(c, MOE_EFORMAT, "the value is no number", e);
        n++;
    } while (!c->last);
    if (n != col[2])
        return fail(c, MOE_EFORMAT, "not as many fields as the header", e);
    if (!there)
        return 0;
    if (s->n > 0 && !(t > s->t[s->n - 1]))
        return fail(c, MOE_EFORMAT, "the time is not after the one before", e);
    s->t[s->n] = t;
    s->v[s->n++] = v;
    return 0;
}

int
moe_series_csv(const char *p, size_t n, const char *name, const char *time, const char *value,
    struct moe_series *out, struct moe_err *e)
{
    struct csv c = { .p = p, .end = p + n, .name = name, .line = 1, .began = 1 };
    size_t col[3] = { 0 }, most = 1;
    int rc;

    *out = (struct moe_series)MOE_SERIES_INIT;
    if (n > MOE_SERIES_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: too large", name);
    for (size_t i = 0; i < n; i++)
        most += p[i] == '\n';
    out->t = malloc(most * sizeof(double));
    out->v = malloc(most * sizeof(double));
    if (out->t == NULL || out->v == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    else
        rc = header(&c, time, value, col, e);
    while (rc == 0 && next_row(&c))
        rc = row(&c, col, out, e);
    if (rc == 0 && out->n == 0)
        rc = fail(&c, MOE_EFORMAT, "no samples", e);
    if (rc != 0)
        moe_series_fini(out);
    return rc;
}

void
moe_series_fini(struct moe_series *s)
{
    free(s->t);
    free(s->v);
    *s = (struct moe_series)MOE_SERIES_INIT;
}

/* ---- The window ------------------------------------------------------------------------- */

void
moe_series_window(const struct moe_series *s, double seconds, struct moe_series_window *w)
{
    double from = s->t[s->n - 1] - seconds, before = fmax(from, s->t[0]);
    double mt = 0, mv = 0, tt = 0, tv = 0, rest = 0;
    size_t first = s->n;

    *w = (struct moe_series_window){ .span = s->t[s->n - 1] - s->t[0] };
    while (first > 0 && s->t[first - 1] >= from)
        first--;
    w->n = s->n - first;
    for (size_t i = first; i < s->n; i++) {
        mt += (s->t[i] - from) / (double)w->n;
        mv += s->v[i] / (double)w->n;
        w->gap = fmax(w->gap, s->t[i] - before);
        before = s->t[i];
    }
    for (size_t i = first; i < s->n; i++) {
        double t = s->t[i] - from - mt;

        tt += t * t;
        tv += t * (s->v[i] - mv);
    }
    w->mean = mv;
    w->slope = tt > 0 ? tv / tt : 0;
    for (size_t i = first; i < s->n; i++) {
        double r = s->v[i] - mv - w->slope * (s->t[i] - from - mt);

        rest += r * r / (double)w->n;
    }
    w->jitter = isfinite(rest) ? sqrt(rest) : INFINITY;
}
