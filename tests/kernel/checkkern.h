/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The check program of the kernels: every variant of an operation against its
 * reference, and the reference against a plain computation in double.
 *
 * A check is a file check_STEM.c that defines `const struct ck_check
 * check_STEM`, and a line in checkkern.c's table. Its run() makes one TAP line
 * an operation and tier:
 *
 *     ck_begin("dot_f32", k->tier);
 *     for (...) ck_expect(same, "n %zu, %s", n, ck_kind_name(kind));
 *     ck_end();
 */
#ifndef TESTS_KERNEL_CHECKKERN_H
#define TESTS_KERNEL_CHECKKERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

struct ck_check {
    const char *name;           /* the stem, for the program's arguments */
    void (*run)(void);
    void (*bench)(void);        /* NULL: nothing to measure */
};

/* The reference table; the i-th table above it that this machine has, or NULL. */
const struct moe_kernels *ck_ref(void);
const struct moe_kernels *ck_tier(size_t i);

/*
 * Slot s (of CK_SLOTS) as a buffer of n bytes (up to CK_BYTES): it ends at an
 * unreadable page, so that reading or writing past it ends the program, and
 * starts behind guard bytes. Filled with a pattern. A multiple of 64 bytes is
 * aligned to 64, n floats to 4 only. ck_intact: the bytes before are untouched.
 */
#define CK_SLOTS 12
#define CK_BYTES ((size_t)8 << 20)
void *ck_buf(int s, size_t n);
bool ck_intact(int s);

/* Kinds of numbers. */
enum ck_kind {
    CK_RANDOM,                  /* even in (-1, 1) */
    CK_EQUAL,                   /* all the same */
    CK_EXTREME,                 /* the largest, the smallest, subnormal, both zeros */
    CK_SPECIAL,                 /* random, some of them NaN and infinities */
    CK_KINDS
};
const char *ck_kind_name(enum ck_kind kind);
uint32_t ck_rand(void);
void ck_f32(float *x, size_t n, enum ck_kind kind);
void ck_bf16(uint16_t *x, size_t n, enum ck_kind kind);
void ck_f16(uint16_t *x, size_t n, enum ck_kind kind);

/* Bits equal, or both NaN. */
bool ck_same_f32(const float *a, const float *b, size_t n);

/* One TAP line of many cases; the first few that fail are printed. */
void ck_begin(const char *op, const char *tier);
bool ck_expect(bool yes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ck_end(void);

#endif
