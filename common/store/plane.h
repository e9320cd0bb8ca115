/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of bytes that are alike: stored as they are, as one repeated byte, or as
 * a zstd frame of literals, whichever is smallest. The frames are such as any
 * zstd reads; matches are looked for only where they pay, since among the
 * exponents of weights they cost more than they save.
 */
#ifndef MOE_STORE_PLANE_H
#define MOE_STORE_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define MOE_PLANE_HEAD ((size_t)5)      /* method, length */

struct moe_plane;       /* contexts of zstd; one thread */

int moe_plane_new(struct moe_plane **out, struct moe_err *e);
void moe_plane_free(struct moe_plane *c);

/*
 * Append n bytes at p to out, which has room for cap; *len is raised. text:
 * matches may pay. False if they do not fit (n + MOE_PLANE_HEAD always does).
 */
bool moe_plane_put(struct moe_plane *c, const unsigned char *p, size_t n, bool text,
    unsigned char *out, size_t cap, size_t *len);

/*
 * The next run of exactly n bytes, from *p up to end, which is moved on. Errors:
 * MOE_EFORMAT.
 */
int moe_plane_get(struct moe_plane *c, const unsigned char **p, const unsigned char *end,
    unsigned char *out, size_t n, struct moe_err *e);

#endif
