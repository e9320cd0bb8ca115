/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scratch directory for tests that make files: entered by scratch_enter() and
 * removed by scratch_leave().
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Make a new directory and make it the current one; ends the test if it cannot. */
void scratch_enter(void);

/* Remove it with all that is in it. */
void scratch_leave(void);

/* Write text to a new or old file; ends the test if it cannot. */
void scratch_put(const char *path, const char *text);

/* Whether the file holds just this text. */
bool scratch_holds(const char *path, const char *text);

/* How many entries a directory has, hidden ones too; -1: it cannot be read. */
int scratch_count(const char *dir);

#endif
