/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forward stream over a descriptor with a buffer of its own; works on pipes.
 * Interrupted and short reads are continued; an early end is an error that
 * names the offset. A stream belongs to one thread.
 */
#ifndef MOE_BASE_STREAM_H
#define MOE_BASE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_stream;

#define MOE_STREAM_PIECE ((size_t)8 << 20)

/*
 * fd stays the caller's; reading starts at its position. direct: try O_DIRECT
 * (for files read once that are larger than memory); falls back silently.
 * Sequential advice is given. name is borrowed. Errors: MOE_ENOMEM.
 */
int moe_stream_open(int fd, const char *name, bool direct, struct moe_stream **out,
    struct moe_err *e);

/* Exactly n bytes. Errors: MOE_EIO, MOE_EFORMAT (ends early). */
int moe_stream_get(struct moe_stream *s, void *p, size_t n, struct moe_err *e);

/*
 * The next bytes without a copy: *p and *n (at most MOE_STREAM_PIECE, at least
 * 1) stay valid until the next call; *n = 0 at the end. Errors: MOE_EIO.
 */
int moe_stream_next(struct moe_stream *s, const void **p, size_t *n, struct moe_err *e);

/* Bytes handed out so far. */
uint64_t moe_stream_pos(const struct moe_stream *s);

/* NULL is allowed. The descriptor's position and O_DIRECT flag are unspecified after. */
void moe_stream_close(struct moe_stream *s);

#endif
