/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of devices, what they compute and what goes over the links between them, as SVG 1.1. */
#ifndef MOE_SHARD_PICTURE_H
#define MOE_SHARD_PICTURE_H

#include <stddef.h>

#include "cmd/moe-shard/shard_wire.h"
#include "common/base/buf.h"
#include "common/base/err.h"

/*
 * Devices on a ring, as large as their load [devices] is beside the mean; a line between each two
 * that bytes [devices][devices] went between, as wide as these are beside the most. Names come with
 * the wires. Errors: MOE_ENOMEM.
 */
int shard_picture_svg(const struct shard_wire *w, const double *load, const double *bytes,
    struct moe_buf *b, struct moe_err *e);

#endif
