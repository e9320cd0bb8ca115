/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the counting and printing of TAP lines for the C tests.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

static int n_run, n_bad;

static bool
line(bool yes, const char *fmt, va_list ap)
{
    n_run++;
    if (!yes)
        n_bad++;
    printf("%sok %d - ", yes ? "" : "not ", n_run);
    vprintf(fmt, ap);
    putchar('\n');
    return yes;
}

bool
tap_ok(bool yes, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    line(yes, fmt, ap);
    va_end(ap);
    return yes;
}

bool
tap_is_int(long long got, long long want, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    line(got == want, fmt, ap);
    va_end(ap);
    if (got != want)
        printf("#  got %lld, want %lld\n", got, want);
    return got == want;
}

bool
tap_is_str(const char *got, const char *want, const char *fmt, ...)
{
    bool yes = got != NULL && strcmp(got, want) == 0;
    va_list ap;

    va_start(ap, fmt);
    line(yes, fmt, ap);
    va_end(ap);
    if (!yes)
        printf("#  got '%s'\n# want '%s'\n", got == NULL ? "(null)" : got, want);
    return yes;
}

bool
tap_is_mem(const void *got, const void *want, size_t n, const char *fmt, ...)
{
    const unsigned char *g = got, *w = want;
    size_t at = 0;
    va_list ap;

    while (at < n && g[at] == w[at])
        at++;
    va_start(ap, fmt);
    line(at == n, fmt, ap);
    va_end(ap);
    if (at < n)
        printf("#  byte %zu of %zu: got %02x, want %02x\n", at, n, g[at], w[at]);
    return at == n;
}

void
tap_diag(const char *fmt, ...)
{
    va_list ap;

    printf("# ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void
tap_skip(const char *why)
{
    n_run++;
    printf("ok %d # SKIP %s\n", n_run, why);
}

int
tap_done(void)
{
    printf("1..%d\n", n_run);
    return n_bad > 0;
}
