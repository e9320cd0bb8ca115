/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading whole small files and exact ranges of a descriptor. Interrupted and
 * short reads are continued; an early end is an error that names the offset.
 * Forward streams are in stream.h.
 */
#ifndef MOE_BASE_READ_H
#define MOE_BASE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/stream.h"

/*
 * Read all of path ("-": stdin) into b (what it held is thrown away), at most
 * limit bytes. path is a person's: a named pipe is waited for. Names that come
 * out of files are opened with moe_beneath_open() and read with moe_read_fd().
 * Errors: MOE_ENOENT, MOE_EIO, MOE_ELIMIT, MOE_ENOMEM, MOE_ESTOP.
 */
int moe_read_file(const char *path, size_t limit, struct moe_buf *b, struct moe_err *e);

/* The same from descriptor fd, name for messages. */
int moe_read_fd(int fd, const char *name, size_t limit, struct moe_buf *b, struct moe_err *e);

/*
 * Exactly n bytes at an offset; threads may. Errors: MOE_EIO, MOE_EFORMAT (ends
 * early), MOE_ESTOP.
 */
int moe_read_at(int fd, const char *name, void *p, size_t n, uint64_t at, struct moe_err *e);

#endif
