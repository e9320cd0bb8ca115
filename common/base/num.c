/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading numbers from text and checked arithmetic. Does not know options.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
moe_num_add(uint64_t a, uint64_t b, uint64_t *out)
{
    *out = a + b;
    return *out >= a;
}

bool
moe_num_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    *out = a * b;
    return a == 0 || b <= UINT64_MAX / a;
}

bool
moe_num_align(uint64_t n, uint64_t unit, uint64_t *out)
{
    if (!moe_num_add(n, unit - 1, out))
        return false;
    *out &= ~(unit - 1);
    return true;
}

/* Read decimal digits at *s, moving it; false when the value overflows. */
static bool
digits(const char **s, uint64_t *out)
{
    *out = 0;
    for (; is_digit(**s); ++*s)
        if (!moe_num_mul(*out, 10, out) || !moe_num_add(*out, (uint64_t)(**s - '0'), out))
            return false;
    return true;
}

int
moe_num_int(const char *s, int64_t lo, int64_t hi, const char *what, int64_t *out,
    struct moe_err *e)
{
    const char *p = s;
    bool minus = *p == '-', fits;
    uint64_t u;
    int64_t v;

    if (minus)
        p++;
    if (p[0] == '\0' || p[strspn(p, "0123456789")] != '\0')
        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not a whole number", what, s);
    fits = digits(&p, &u) && u <= (uint64_t)INT64_MAX + minus;
    v = !fits ? 0 : minus ? (int64_t)(0 - u) : (int64_t)u;
    if (!fits || v < lo || v > hi) {
        if (hi == INT64_MAX)
            return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is %s", what, s,
                fits ? "too small" : "out of range");
        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not between %lld and %lld", what, s,
            (long long)lo, (long long)hi);
    }
    *out = v;
    return 0;
}

/* Bytes a suffix stands for, or 0. */
static uint64_t
unit_of(const char *s)
{
    static const struct {
        char name[3];
        uint64_t bytes;
    } units[] = {
        { "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 }, { "T", 1000000000000 },
        { "Ki", 1 << 10 }, { "Mi", 1 << 20 }, { "Gi", 1 << 30 }, { "Ti", (uint64_t)1 << 40 },
    };
    size_t n = strlen(s);

    if (n > 0 && s[n - 1] == 'B')
        n--;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (n == strlen(units[i].name) && memcmp(s, units[i].name, n) == 0)
            return units[i].bytes;
    return 0;
}

int
moe_num_size(const char *s, uint64_t lo, uint64_t hi, const char *what, uint64_t *out,
    struct moe_err *e)
{
    const char *p = s, *point = NULL;
    uint64_t whole, unit, part = 0;
    bool fits = is_digit(*p) && digits(&p, &whole);

    if (!is_digit(*s))
        goto form;
    p += strspn(p, "0123456789");
    if (*p == '.') {
        point = p++;
        p += strspn(p, "0123456789");
        if (p == point + 1)
            goto form;
    }
    if ((unit = unit_of(p)) == 0)
        goto form;
    /* From the last digit to the first, flooring at each, is the floor of the whole. */
    if (point != NULL)
        while (--p, p > point)
            if (is_digit(*p))
                part = (part + (uint64_t)(*p - '0') * unit) / 10;
    if (!fits || !moe_num_mul(whole, unit, out) || !moe_num_add(*out, part, out) ||
        *out < lo || *out > hi) {
        char a[32], b[32];

        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not between %s and %s", what, s,
            moe_num_human(a, sizeof(a), lo), moe_num_human(b, sizeof(b), hi));
    }
    return 0;
form:
    return moe_err_set(e, MOE_EUSAGE,
        "%s: '%s' is not a size (a number and perhaps k, M, G, T, Ki, Mi, Gi or Ti)", what, s);
}

int
moe_num_real(const char *s, double lo, double hi, const char *what, double *out,
    struct moe_err *e)
{
    char *end;
    double v;

    if ((*s != '-' && *s != '.' && !is_digit(*s)) || s[strspn(s, "0123456789.eE+-")] != '\0')
        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not a number", what, s);
    v = strtod(s, &end);
    if (*end != '\0')
        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not a number", what, s);
    if (!isfinite(v) || v < lo || v > hi)
        return moe_err_set(e, MOE_EUSAGE, "%s: '%s' is not between %g and %g", what, s, lo, hi);
    *out = v;
    return 0;
}

char *
moe_num_human(char *dst, size_t n, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double v = (double)bytes;
    size_t u = 0;

    /* What would print as 1024.0 belongs to the next unit. */
    for (; u + 1 < sizeof(units) / sizeof(units[0]) && v >= 1023.95; u++)
        v /= 1024;
    if (bytes < 1024)
        (void)snprintf(dst, n, "%u B", (unsigned)bytes);
    else
        (void)snprintf(dst, n, "%.1f %s", v, units[u]);
    return dst;
}
