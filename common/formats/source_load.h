/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of source: what an opened model consists of, and its opening. Only
 * source.c and source_load.c may include this.
 */
#ifndef MOE_FORMATS_SOURCE_LOAD_H
#define MOE_FORMATS_SOURCE_LOAD_H

#include <sys/types.h>

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/formats/source.h"

struct moe_source_file {
    const char *name;           /* relative to the directory, or the path itself */
    int fd;                     /* -1 = opened for each read */
    dev_t dev;
    ino_t ino;
    uint64_t size, data_at;
    struct moe_safet *safet;
    struct moe_map map;
};

struct moe_source_entry { const struct moe_tensor *t; size_t file; };

struct moe_source {
    char *path;
    int dir;                    /* descriptor of the directory, or -1 */
    struct moe_source_file *files;
    size_t n_files, cap_files;
    struct moe_source_entry *entries;
    size_t n;
    size_t *by_name;
    uint64_t bytes;
    struct moe_gguf *gguf;
    struct moe_tensor *gguf_tensors;
    struct moe_stream *stream;
    size_t stream_i;            /* of a stream: tensor and offset that come next */
    uint64_t stream_at;
    struct moe_config config;   /* tree NULL = none */
    const char **aux;
    size_t n_aux;
    struct moe_arena arena;
};

/* Open s->path ("stdin" when pipe) into the cleared s; on failure s holds what to close. */
int moe_source_load(struct moe_source *s, bool pipe, struct moe_err *e);

/* A descriptor of f again, >= 0. Errors: MOE_EFORMAT if it is another file now. */
int moe_source_load_again(const struct moe_source *s, const struct moe_source_file *f,
    struct moe_err *e);

#endif
