/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading in large pieces: whole small files, exact ranges of a descriptor,
 * and a forward stream that also works on pipes. Interrupted and short reads
 * are continued; an early end is an error that names the offset.
 */
#ifndef MOE_BASE_READ_H
#define MOE_BASE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

/*
 * Read all of path ("-": stdin) into b, at most limit bytes.
 * Errors: MOE_ENOENT, MOE_EIO, MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_read_file(const char *path, size_t limit, struct moe_buf *b, struct moe_err *e);

/* The same from descriptor fd, name for messages. */
int moe_read_fd(int fd, const char *name, size_t limit, struct moe_buf *b, struct moe_err *e);

/* Exactly n bytes at an offset; threads may. Errors: MOE_EIO, MOE_EFORMAT (ends early). */
int moe_read_at(int fd, const char *name, void *p, size_t n, uint64_t at, struct moe_err *e);

/* A forward stream over a descriptor with a buffer of its own. */
struct moe_stream;

/*
 * fd stays the caller's. direct: try O_DIRECT (for files read once that are
 * larger than memory); falls back silently. Sequential advice is given.
 */
int moe_stream_open(int fd, const char *name, bool direct, struct moe_stream **out,
    struct moe_err *e);

/* Exactly n bytes. Errors: MOE_EIO, MOE_EFORMAT (ends early). */
int moe_stream_get(struct moe_stream *s, void *p, size_t n, struct moe_err *e);

/*
 * The next bytes without a copy: *p and *n (at most 8 MiB, at least 1) stay
 * valid until the next call; *n = 0 at the end.
 */
int moe_stream_next(struct moe_stream *s, const void **p, size_t *n, struct moe_err *e);

/* Bytes handed out so far. */
uint64_t moe_stream_pos(const struct moe_stream *s);
void moe_stream_close(struct moe_stream *s);

#endif
