/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of one file, safetensors or GGUF alike: names, types, shapes, and
 * where their bytes lie.
 */
#ifndef MOE_VERIFY_BOX_H
#define MOE_VERIFY_BOX_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/stream.h"

struct verify_tensor {
    const char *name;           /* without NUL inside, not empty */
    const char *type;           /* "BF16", "Q4_0" */
    const uint64_t *dims;       /* [rank], in the file's order */
    int rank;
    uint64_t at, len;           /* bytes in the file */
};

struct verify_box {
    struct verify_tensor *t;    /* [n] in order of data */
    size_t n;
    size_t *by_name;            /* indices of t, for verify_box_find() */
    struct moe_safet *safet;    /* one of these owns names and dims */
    struct moe_gguf *gguf;
};

#define VERIFY_BOX_INIT { NULL, 0, NULL, NULL, NULL }

/*
 * Read the header of an open regular file: GGUF if it begins so, else
 * safetensors. fd stays the caller's. Errors: those of the two readers, and
 * MOE_EUNSUP for a name that a list cannot hold.
 */
int verify_box_open(struct verify_box *b, int fd, const char *name, struct moe_err *e);

/* Read the header of a safetensors stream, which then stands at the data. */
int verify_box_stream(struct verify_box *b, struct moe_stream *s, const char *name,
    struct moe_err *e);

void verify_box_close(struct verify_box *b);

/* By name; NULL if there is none. */
const struct verify_tensor *verify_box_find(const struct verify_box *b, const char *name);

/* Append the shape as a list has it: "[64,512]". */
void verify_box_shape(struct moe_buf *b, const struct verify_tensor *t);

#endif
