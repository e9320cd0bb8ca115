/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What splitting and joining GGUF files share. Parts are those of llama.cpp's
 * gguf-split: NAME-00001-of-00003.gguf with all metadata in the first part and
 * the keys split.no, split.count and split.tensors.count in each. The first also
 * has moe.sha256, the digest of the whole file.
 */
#ifndef MOE_SHARD_GGUF_H
#define MOE_SHARD_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_pack.h"
#include "common/base/err.h"
#include "common/base/out.h"
#include "common/base/progress.h"
#include "common/formats/ggufw.h"
#include "common/trust/digest.h"

#define SHARD_GGUF_MAX_PARTS 65535
#define SHARD_GGUF_NAME 512     /* of a part */
#define SHARD_GGUF_NO "split.no"
#define SHARD_GGUF_COUNT "split.count"
#define SHARD_GGUF_TENSORS "split.tensors.count"
#define SHARD_GGUF_SUM "moe.sha256"

struct shard_gguf_part {
    int fd;                     /* of a part that is read; -1: none */
    struct moe_gguf *g;
    size_t first, n;            /* tensors of a part that is written */
};

struct shard_gguf_job {
    const struct shard_pack_options *o;
    const char *path;
    struct shard_gguf_part *part;   /* [n] */
    size_t n;
    unsigned char *piece;
    struct moe_digest sum;      /* of the whole */
    struct moe_progress progress;
    struct moe_err *e;
};

/* Room for so many parts; freed, and what is open closed, by the second. Errors: MOE_ENOMEM. */
int shard_gguf_new(struct shard_gguf_job *j, size_t parts);
void shard_gguf_free(struct shard_gguf_job *j);

/* A whole number among a file's keys; false: it is not there. */
bool shard_gguf_number(const struct moe_gguf *g, const char *key, int64_t *v);

/* Whether a key is one of those above. */
bool shard_gguf_is_ours(const char *key);

/* n bytes of fd from `at`, to `to` (NULL: nowhere) and, if summed, to the digest. */
int shard_gguf_copy(struct shard_gguf_job *j, int fd, const char *name, uint64_t at, uint64_t n,
    struct moe_out *to, bool summed);

/* n zeros, likewise. */
int shard_gguf_pad(struct shard_gguf_job *j, uint64_t n, struct moe_out *to, bool summed);

/* n tensors of g, from `first` on, to a header. */
void shard_gguf_add(struct moe_ggufw *w, const struct moe_gguf *g, size_t first, size_t n);

#endif
