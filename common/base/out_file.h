/* SPDX-License-Identifier: Apache-2.0 */
/* What outdir.c needs of out.c: an output that is a new file of a directory. */
#ifndef MOE_BASE_OUT_FILE_H
#define MOE_BASE_OUT_FILE_H

#include <stdint.h>

#include "common/base/out.h"

/*
 * Begin new file name of directory dirfd (which stays the caller's); dir is the
 * directory's name for messages. Commit only flushes and fsyncs it.
 */
int moe_out_at(int dirfd, const char *dir, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/*
 * Go on with file name of dirfd, or begin it: what lies behind byte `from` is
 * cut off, and appending goes on there. Abort leaves the file. Errors: also
 * MOE_EFORMAT (the file is shorter).
 */
int moe_out_again(int dirfd, const char *dir, const char *name, uint64_t from,
    uint64_t size_hint, struct moe_out **out, struct moe_err *e);

#endif
