/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs appear atomically (REQUIREMENTS C4): written under a temporary name
 * in the destination's directory, fsynced, renamed, the directory fsynced. An
 * output that is not committed leaves nothing behind. `-` is stdout, which
 * cannot be taken back. A whole directory is one output as well.
 *
 * A SIGKILL can leave a temporary ".NAME.XXXXXX.part"; the next run of the same
 * output removes those that no live process holds a lock on.
 */
#ifndef MOE_BASE_OUT_H
#define MOE_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

struct moe_out;         /* one file, or stdout */
struct moe_outdir;      /* one directory of files */

/*
 * Begin file path ("-": stdout). An existing file is MOE_EEXIST unless force,
 * which replaces it on commit. size_hint > 0: reserve that many bytes first,
 * so that a full disk fails before any work. Errors: MOE_EIO, MOE_EEXIST,
 * MOE_ENOMEM.
 */
int moe_out_open(const char *path, bool force, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/* Append n bytes (buffered in large aligned pieces). Errors: MOE_EIO. */
int moe_out_write(struct moe_out *o, const void *p, size_t n, struct moe_err *e);

/* Write n bytes at an offset of a regular file (not stdout); threads may. */
int moe_out_pwrite(struct moe_out *o, const void *p, size_t n, uint64_t at,
    struct moe_err *e);

/* Bytes appended so far. */
uint64_t moe_out_pos(const struct moe_out *o);

/* Whether it is a pipe or terminal, where pwrite is impossible. */
bool moe_out_is_stream(const struct moe_out *o);

/*
 * Flush, fsync, rename, fsync the directory; frees o in every case. On failure
 * the destination is untouched.
 */
int moe_out_commit(struct moe_out *o, struct moe_err *e);

/* Throw away; frees o. NULL is allowed. */
void moe_out_abort(struct moe_out *o);

/*
 * Begin directory path: files made in it appear together on commit. An existing
 * non-empty directory is MOE_EEXIST unless force, which exchanges the two
 * (renameat2 RENAME_EXCHANGE) and removes the old one.
 */
int moe_outdir_open(const char *path, bool force, struct moe_outdir **out,
    struct moe_err *e);

/*
 * Begin file name (one path component) in it. The file is finished by
 * moe_out_commit(), which only fsyncs; it appears when the directory does.
 */
int moe_outdir_file(struct moe_outdir *d, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/* A whole small file at once. */
int moe_outdir_put(struct moe_outdir *d, const char *name, const void *p,
    size_t n, struct moe_err *e);

int moe_outdir_commit(struct moe_outdir *d, struct moe_err *e);
void moe_outdir_abort(struct moe_outdir *d);

#endif
