/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as files (moe-plan(5)): which expert each slot of each device holds, layer by layer. */
#ifndef MOE_SHARD_PLANFILE_H
#define MOE_SHARD_PLANFILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define SHARD_PLANFILE_MAX_DEVICES 65536

struct shard_planfile {
    size_t layers, experts, devices, nodes, slots;
    uint32_t *id;               /* [layers] ascending */
    uint32_t *room;             /* [devices] slots; sum is slots */
    uint32_t *slot;             /* [layers][slots] experts, device by device */
};

/* As JSON; made_for: names of what it was planned for, NULL-terminated. */
int shard_planfile_write(const struct shard_planfile *p, const char *const *made_for,
    struct moe_buf *b, struct moe_err *e);

/* path "-": stdin. Every expert has a slot in every layer. Errors: MOE_EFORMAT and reading's. */
int shard_planfile_read(const char *path, struct shard_planfile *out, struct moe_err *e);

/* Layers `id`, n of them ascending; expert x on device x modulo devices. Errors: MOE_ENOMEM. */
int shard_planfile_naive(size_t experts, size_t devices, size_t nodes, const uint32_t *id,
    size_t n, struct shard_planfile *out, struct moe_err *e);
/* Which of the layers has number `id`, or p->layers. */
size_t shard_planfile_layer(const struct shard_planfile *p, uint32_t id);
void shard_planfile_fini(struct shard_planfile *p);

#endif
