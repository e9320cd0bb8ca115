/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a range of a regular file ahead of its consumer, in a thread of its
 * own, for work that is bound by one thread: the copy out of the page cache
 * then costs the other processor's time.
 */
#ifndef MOE_TRUST_AHEAD_H
#define MOE_TRUST_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_ahead;

/* len may pass the end of the file. fd stays the caller's. Errors: MOE_ENOMEM. */
int moe_ahead_open(int fd, uint64_t at, uint64_t len, struct moe_ahead **out,
    struct moe_err *e);

/*
 * The next bytes, valid until the next call; *n = 0 at the end of the range or
 * of the file. Errors: MOE_EIO; name is for the message.
 */
int moe_ahead_next(struct moe_ahead *a, const char *name, const unsigned char **p, size_t *n,
    struct moe_err *e);

/* End the thread, wherever it is. NULL is allowed. */
void moe_ahead_close(struct moe_ahead *a);

#endif
