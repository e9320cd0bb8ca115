/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people type them, and arithmetic that tells when it overflows.
 */
#ifndef MOE_BASE_NUM_H
#define MOE_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* *out = a op b; false, and *out unspecified, when it does not fit. */
bool moe_num_add(uint64_t a, uint64_t b, uint64_t *out);
bool moe_num_mul(uint64_t a, uint64_t b, uint64_t *out);

/* n rounded up to a multiple of unit (a power of two); false on overflow. */
bool moe_num_align(uint64_t n, uint64_t unit, uint64_t *out);

/*
 * Parse all of s as a whole decimal number in [lo, hi]. No sign but a leading
 * '-', no blanks, no leading "+". what names the value in the message.
 * Errors: MOE_EUSAGE.
 */
int moe_num_int(const char *s, int64_t lo, int64_t hi, const char *what,
    int64_t *out, struct moe_err *e);

/*
 * Parse a size in bytes: a decimal number, perhaps with a fraction, and one of
 * B, k kB M MB G GB T TB (powers of 1000), Ki KiB Mi MiB Gi GiB Ti TiB
 * (powers of 1024). The result is whole bytes, rounded down.
 * Errors: MOE_EUSAGE (form, overflow, outside [lo, hi]).
 */
int moe_num_size(const char *s, uint64_t lo, uint64_t hi, const char *what,
    uint64_t *out, struct moe_err *e);

/* Parse a finite decimal number in [lo, hi]. Errors: MOE_EUSAGE. */
int moe_num_real(const char *s, double lo, double hi, const char *what,
    double *out, struct moe_err *e);

/* Print bytes for people ("14.6 MiB") into dst of n >= 16 bytes; returns dst. */
char *moe_num_human(char *dst, size_t n, uint64_t bytes);

#endif
