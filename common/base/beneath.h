/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files whose names come out of other files: only beneath a directory
 * (openat2 RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS; an O_NOFOLLOW walk where
 * the kernel has no openat2). The one link out that is followed is the layout
 * of a Hugging Face cache: snapshots/REV/x -> ../../blobs/HASH of the same
 * repository.
 */
#ifndef MOE_BASE_BENEATH_H
#define MOE_BASE_BENEATH_H

#include "common/base/err.h"

/* Open directory path for use as dirfd; returns the descriptor (>= 0). */
int moe_beneath_dir(const char *path, struct moe_err *e);

/*
 * Open regular file name (relative, may hold "/") beneath dirfd, read-only.
 * dir is the directory's name for messages. Returns the descriptor or a
 * negative MOE_E*: MOE_ENOENT, MOE_EFORMAT (escapes, absolute, not a regular
 * file), MOE_EIO.
 */
int moe_beneath_open(int dirfd, const char *dir, const char *name, struct moe_err *e);

#endif
