/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file mapped read-only and whole. A file that shrinks while it is mapped
 * raises SIGBUS: the readers of model files compare sizes first and the
 * programs that run for long use moe_read.
 */
#ifndef MOE_BASE_MAP_H
#define MOE_BASE_MAP_H

#include <stddef.h>

#include "common/base/err.h"

struct moe_map {
    const unsigned char *p;     /* NULL for an empty file */
    size_t len;
};

#define MOE_MAP_INIT { NULL, 0 }

/* Map the regular file path, or fd (which stays the caller's; name for messages). */
int moe_map_open(struct moe_map *m, const char *path, struct moe_err *e);
int moe_map_fd(struct moe_map *m, int fd, const char *name, struct moe_err *e);
void moe_map_close(struct moe_map *m);

#endif
