/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a split model remembers of the whole: moe-cut.json (see moe-cut(5)) and
 * the headers of the original files, so that merging gives back every byte, and
 * a digest a tensor, so that it can be proved.
 */
#ifndef MOE_SHARD_SET_H
#define MOE_SHARD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_ranks.h"
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/out.h"
#include "common/formats/config.h"
#include "common/formats/cut.h"
#include "common/formats/grid.h"
#include "common/formats/safet.h"
#include "common/trust/digest.h"

#define SHARD_SET_FILE "moe-cut.json"
#define SHARD_SET_INDEX "model.safetensors.index.json"

struct shard_set_file {
    const char *name;           /* of the original, in its directory */
    char *head;                 /* everything before the data */
    size_t head_len;
    uint64_t data;              /* bytes of data */
    struct moe_safet *safet;    /* of head, once read back */
};

struct shard_set {
    struct moe_grid grid;
    enum moe_cut_spread spread;
    enum shard_ranks_layout layout;
    bool directory;             /* the original was one; else a single file */
    bool index;                 /* it had an index */
    struct shard_set_file *files;
    size_t n_files;
    const char **aux;           /* names of the files beside the weights */
    size_t n_aux;
    const struct moe_tensor **t;    /* all tensors: files in order, within by offset */
    size_t *file_of;            /* [n] */
    size_t n;
    unsigned char (*sums)[MOE_DIGEST_LEN];  /* [n] */
    bool *unordered;            /* [n]: a g_idx in no order of groups */
    struct moe_config config;   /* of a set read back; tree NULL = none */
    struct moe_arena arena;
};

void shard_set_fini(struct shard_set *s);

/* Write the record and the originals' headers into d (under source/). */
int shard_set_write(const struct shard_set *s, struct moe_outdir *d, struct moe_err *e);

/* Read a set from directory dirfd; path is its name for messages. */
int shard_set_read(int dirfd, const char *path, struct shard_set *s, struct moe_err *e);

#endif
