/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TAP for the C tests: each check prints "ok" or "not ok" with its words, and
 * tap_done() prints the plan and returns main's exit status.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>

bool tap_ok(bool yes, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
bool tap_is_int(long long got, long long want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* got may be NULL (shown as such and never equal). */
bool tap_is_str(const char *got, const char *want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool tap_is_mem(const void *got, const void *want, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void tap_diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_skip(const char *why);
int tap_done(void);

#endif
