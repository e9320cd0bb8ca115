/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each expert of each layer was chosen, from any of
 *   layer TAB expert TAB count           lines, with that heading or without
 *   layer TAB token TAB expert,expert    a routing trace, with that heading
 *   [[...], ...]                         JSON, a list of counts for each layer; or
 *   {"logical_count": ...}               the same, or one such list a step, added up
 *   a GGUF importance matrix             its counts of ffn_*_exps
 */
#ifndef MOE_SHARD_LOAD_H
#define MOE_SHARD_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define SHARD_LOAD_MAX_LAYERS 10000
#define SHARD_LOAD_MAX_EXPERTS 65536
#define SHARD_LOAD_MAX_CELLS ((size_t)1 << 26)      /* layers x experts */
#define SHARD_LOAD_MAX_BYTES ((size_t)1 << 30)      /* of a text */

struct shard_load {
    size_t layers, experts;
    uint32_t *id;               /* [layers] ascending */
    double *count;              /* [layers][experts] finite, >= 0 */
};

/* path "-": stdin. Errors: MOE_EFORMAT with the line, MOE_ELIMIT, MOE_ENOMEM, and reading's. */
int shard_load_read(const char *path, struct shard_load *out, struct moe_err *e);

/* Add the counts of the i-th layer to out [experts], so scaled that their sum is `scale`. */
void shard_load_add(const struct shard_load *l, size_t i, double scale, double *out);
void shard_load_fini(struct shard_load *l);

#endif
