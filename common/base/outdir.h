/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole directory as one output: its files are made in a temporary directory
 * beside the destination, which gets the name on commit (REQUIREMENTS C4). Links,
 * permissions and what a SIGKILL leaves are as in out.h.
 */
#ifndef MOE_BASE_OUTDIR_H
#define MOE_BASE_OUTDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_out;
struct moe_outdir;      /* one directory of files */

/*
 * Begin directory path: files made in it appear together on commit. An existing
 * non-empty directory is MOE_EEXIST unless force, which exchanges the two
 * (renameat2 RENAME_EXCHANGE) and removes the old one with all that is in it;
 * a directory that holds the current one, and anything that is no directory, are
 * refused even then. Errors: MOE_EIO, MOE_EEXIST, MOE_ENOMEM.
 */
int moe_outdir_open(const char *path, bool force, struct moe_outdir **out,
    struct moe_err *e);

/*
 * The same in PATH.part, which is made or found, locked, and left when the
 * directory is aborted: so that the next one can go on. Files in it are begun
 * anew by moe_outdir_file(), or gone on with. Errors: also MOE_EEXIST (another
 * process works on it).
 */
int moe_outdir_keep(const char *path, bool force, struct moe_outdir **out,
    struct moe_err *e);

/*
 * Go on with a file of a kept directory: what lies behind byte `from` is cut
 * off. Errors: also MOE_EFORMAT (it is shorter).
 */
int moe_outdir_again(struct moe_outdir *d, const char *name, uint64_t from, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/*
 * Begin file name in it: one path component, or two, of which the first is a
 * directory that is made when it is not there yet. The file is
 * finished by moe_out_commit() (which only fsyncs; it appears when the directory
 * does) or moe_out_abort(), before the directory is. Several may be open.
 * Errors: MOE_EIO, MOE_EEXIST, MOE_ENOMEM.
 */
int moe_outdir_file(struct moe_outdir *d, const char *name, uint64_t size_hint,
    struct moe_out **out, struct moe_err *e);

/* A whole small file at once. */
int moe_outdir_put(struct moe_outdir *d, const char *name, const void *p,
    size_t n, struct moe_err *e);

/* Frees d in every case; failures as moe_out_commit(). */
int moe_outdir_commit(struct moe_outdir *d, struct moe_err *e);

/* Throw away; frees d. NULL is allowed. */
void moe_outdir_abort(struct moe_outdir *d);

#endif
