/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs appear atomically (REQUIREMENTS C4): written under a temporary name
 * in the destination's directory, fsynced, renamed, the directory fsynced. An
 * output that is not committed leaves nothing behind. `-` is stdout, which
 * cannot be taken back. Whole directories are in outdir.h.
 *
 * A destination that is a link stays one: its target is replaced, in the
 * target's directory; a link to nothing is refused. A device or a named pipe is
 * written as it is, like stdout. A replaced file keeps its permissions.
 *
 * A SIGKILL can leave a temporary ".NAME.XXXXXX.part"; the next run of the same
 * output removes those that no live process holds a lock on.
 */
#ifndef MOE_BASE_OUT_H
#define MOE_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_out;         /* one file, or stdout */

/*
 * Begin file path ("-": stdout). An existing file is MOE_EEXIST unless force,
 * which replaces it on commit; a directory always is. size_hint > 0: reserve
 * that many bytes first, so that a full disk fails before any work. Errors:
 * MOE_EIO, MOE_EEXIST, MOE_ENOMEM, MOE_ESTOP.
 */
int moe_out_open(const char *path, bool force, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/*
 * Append n bytes (buffered in large aligned pieces); one thread at a time. After
 * a failure all later calls, the commit too, fail. Errors: MOE_EIO, MOE_ESTOP.
 */
int moe_out_write(struct moe_out *o, const void *p, size_t n, struct moe_err *e);

/*
 * Write n bytes at an offset of a regular file (MOE_EIO for a stream); threads
 * may, also beside an append. Errors: MOE_EIO, MOE_ESTOP.
 */
int moe_out_pwrite(struct moe_out *o, const void *p, size_t n, uint64_t at,
    struct moe_err *e);

/* Write out what was appended, and wait until it is on disk. Errors: MOE_EIO, MOE_ESTOP. */
int moe_out_sync(struct moe_out *o, struct moe_err *e);

/* Bytes appended so far. */
uint64_t moe_out_pos(const struct moe_out *o);

/* Whether it is stdout, a pipe or a device, where pwrite is impossible. */
bool moe_out_is_stream(const struct moe_out *o);

/*
 * Flush, fsync, rename, fsync the directory; frees o in every case. On failure
 * the destination is untouched, unless the message says that it "is there".
 * Errors: MOE_EIO, MOE_EEXIST, MOE_ESTOP.
 */
int moe_out_commit(struct moe_out *o, struct moe_err *e);

/* Throw away; frees o. NULL is allowed. */
void moe_out_abort(struct moe_out *o);

#include "common/base/outdir.h"

#endif
