/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way moe_beneath_open() takes where the kernel has no openat2, for the
 * tests: the same contract, but no link is followed at all other than that of a
 * Hugging Face cache.
 */
#ifndef MOE_BASE_BENEATH_WALK_H
#define MOE_BASE_BENEATH_WALK_H

#include "common/base/err.h"

int moe_beneath_walk(int dirfd, const char *dir, const char *name, struct moe_err *e);

#endif
