/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model to write: a directory (shards and index), one .safetensors file, or
 * "-". The list of tensors is known before any data, so headers go out first
 * and sizes are exact; data follows tensor by tensor in that order. Nothing
 * appears before moe_sink_commit() (C4), except on stdout.
 */
#ifndef MOE_FORMATS_SINK_H
#define MOE_FORMATS_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/safet.h"

#define MOE_SINK_INDEX "model.safetensors.index.json"
#define MOE_SINK_NAME 64

struct moe_sink_plan {
    const struct moe_tensor *tensors;   /* [n]; begin and end are ignored, given by order */
    size_t n;
    const char *const *meta;            /* as moe_safet_write() */
    uint64_t shard_bytes;               /* new shard when tensor data would pass it; 0 = one
                                         * file, which stdout and .safetensors always are */
    size_t align;                       /* of the data, >= 8 */
    const size_t *first;                /* [files] the first tensor of each, ascending from 0;
                                         * NULL: as shard_bytes says */
    size_t files;
};

/* Sizes before writing: files, their exact sizes, index size (0 if one shard). */
struct moe_sink_size {
    size_t files;
    uint64_t *bytes;        /* [files], freed by moe_sink_size_fini() */
    uint64_t index_bytes;
    uint64_t total;         /* of all of them */
};

int moe_sink_size(const struct moe_sink_plan *p, struct moe_sink_size *out, struct moe_err *e);
void moe_sink_size_fini(struct moe_sink_size *s);

/* Name of file k of n in a directory. */
void moe_sink_name(size_t k, size_t n, char name[MOE_SINK_NAME]);

struct moe_sink;

/*
 * path "-" : stdout; ending in ".safetensors": one file; else a directory with
 * model.safetensors, or model-00001-of-000NN.safetensors and
 * model.safetensors.index.json. plan's arrays must outlive the sink.
 */
int moe_sink_open(const char *path, bool force, const struct moe_sink_plan *plan,
    struct moe_sink **out, struct moe_err *e);

/*
 * The same for a directory that may be gone on with: it is written to PATH.part,
 * which stays when the sink is aborted. The first `done` bytes of the data, all
 * shards counted, are there from before; moe_sink_write() goes on behind them.
 * Errors: also MOE_EUNSUP (no directory), MOE_EFORMAT (bytes are missing).
 */
int moe_sink_keep(const char *path, bool force, const struct moe_sink_plan *plan, uint64_t done,
    struct moe_sink **out, struct moe_err *e);

/* Wait until what moe_sink_write() was given is on disk. */
int moe_sink_sync(struct moe_sink *s, struct moe_err *e);

/* The next n bytes of the data, in order of the plan; may cross tensors. One thread. */
int moe_sink_write(struct moe_sink *s, const void *p, size_t n, struct moe_err *e);

/*
 * n bytes at offset at of tensor i, each byte once, in any order, threads may
 * (not on stdout: MOE_EUNSUP). A sink is filled by one of the two, not by both.
 */
int moe_sink_pwrite(struct moe_sink *s, size_t i, uint64_t at, const void *p, size_t n,
    struct moe_err *e);

bool moe_sink_is_stream(const struct moe_sink *s);

/* Another file of a directory (config.json); silently dropped when not a directory. */
int moe_sink_aux(struct moe_sink *s, const char *name, const void *p, size_t n, struct moe_err *e);

/* Checks that all data has come, then makes it appear; frees s in every case. */
int moe_sink_commit(struct moe_sink *s, struct moe_err *e);
void moe_sink_abort(struct moe_sink *s);

#endif
