/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that hold the same tensors, to be worked on side by side: averages,
 * deltas. Tensors are matched by name; pieces of them are read as double.
 */
#ifndef CMD_CKPT_PEERS_H
#define CMD_CKPT_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/blend.h"
#include "common/formats/sink.h"
#include "common/formats/source.h"

#define CKPT_PEERS_MAX 4096
#define CKPT_PEERS_MAX_AUX ((size_t)64 << 20)

struct ckpt_peers {
    struct moe_source **s;      /* [n] */
    size_t n;
    size_t lead;                /* whose order counts: the one that is a stream, else the first */
    size_t tensors;
    size_t **at;                /* [n][tensors]: tensor i in each of them */
    unsigned char *raw;         /* one piece */
};

/*
 * Open models that have the same tensors: names, shapes, and types if `typed`.
 * Errors: those of moe_source_open(), MOE_EFORMAT (they differ; no tensors),
 * MOE_EUNSUP (GGUF; two streams). p may hold something on failure too.
 */
int ckpt_peers_open(char **paths, size_t n, bool typed, struct ckpt_peers *p, struct moe_err *e);
void ckpt_peers_fini(struct ckpt_peers *p);

/* Tensor i of model k. */
const struct moe_tensor *ckpt_peers_at(const struct ckpt_peers *p, size_t k, size_t i);

/* Elements of a tensor of an opened model. */
uint64_t ckpt_peers_count(const struct moe_tensor *t);

/* n <= MOE_BLEND_PIECE elements of tensor i of model k from element at on: their bytes, in raw. */
int ckpt_peers_raw(struct ckpt_peers *p, size_t k, size_t i, uint64_t at, size_t n,
    struct moe_err *e);

/* The same as double. Errors: also MOE_EFORMAT (NaN or infinity). */
int ckpt_peers_read(struct ckpt_peers *p, size_t k, size_t i, uint64_t at, size_t n, double *out,
    struct moe_err *e);

/* The files beside the weights of a model, to an output. */
int ckpt_peers_beside(const struct moe_source *s, struct moe_sink *to, struct moe_err *e);

#endif
