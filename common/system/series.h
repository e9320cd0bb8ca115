/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A metric over time from CSV (RFC 4180): a header of column names, a row a
 * sample; and how steady it was in a window at its end.
 */
#ifndef MOE_SYSTEM_SERIES_H
#define MOE_SYSTEM_SERIES_H

#include <stddef.h>

#include "common/base/err.h"

#define MOE_SERIES_MAX_BYTES ((size_t)256 << 20)
#define MOE_SERIES_MAX_COLUMNS 4096
#define MOE_SERIES_MAX_FIELD 4096   /* bytes of one field */

struct moe_series {
    double *t;                  /* [n] seconds, ascending */
    double *v;                  /* [n] may be NaN or infinite */
    size_t n;
};

#define MOE_SERIES_INIT { NULL, NULL, 0 }

/*
 * The columns called `time` (seconds, or RFC 3339 with an offset) and `value`
 * (a number, nan, inf, or nothing: the row is passed over). Errors: MOE_EFORMAT
 * "name:line: what" (no such column, two of them, a row of another length, what
 * is no number, times that do not ascend, no samples), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_series_csv(const char *p, size_t n, const char *name, const char *time, const char *value,
    struct moe_series *out, struct moe_err *e);
void moe_series_fini(struct moe_series *s);

struct moe_series_window {
    size_t n;                   /* samples in it */
    double span;                /* seconds of the whole series */
    double gap;                 /* the longest in the window without a sample */
    double mean, slope;         /* of the least-squares line; slope a second */
    double jitter;              /* root mean square of what is left; infinite beside NaN */
};

/* The last `seconds` of a series of one sample at least. */
void moe_series_window(const struct moe_series *s, double seconds, struct moe_series_window *w);

#endif
