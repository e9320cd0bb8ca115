/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GGUF version 3: header, metadata and tensor list, read with every rule of the
 * reference reader. Names and values belong to the moe_gguf. Writing is in
 * ggufw.h. Format: ggml docs/gguf.md and src/gguf.cpp.
 */
#ifndef MOE_FORMATS_GGUF_H
#define MOE_FORMATS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/ggml.h"
#include "common/formats/ggufkv.h"

#define MOE_GGUF_MAX_HEADER ((uint64_t)1 << 30)     /* bytes before the data */
#define MOE_GGUF_MAX_NAME 63                        /* bytes of a tensor's name */
#define MOE_GGUF_MAX_KEY 65535
#define MOE_GGUF_MIN_ALIGN 8
#define MOE_GGUF_MAX_ALIGN ((uint64_t)1 << 20)
#define MOE_GGUF_ALIGN 32                           /* without general.alignment */
#define MOE_GGUF_ALIGN_KEY "general.alignment"

struct moe_gguf_tensor {
    const char *name;           /* NUL-terminated, not empty */
    uint32_t type;              /* a type that moe_ggml_block() knows */
    int n_dims;
    uint64_t ne[MOE_GGML_DIMS];     /* ne[0] = row length; unused are 1 */
    uint64_t offset;            /* from the start of the data */
    uint64_t bytes;
};

struct moe_gguf;

/*
 * p, n: at least the whole header of a file of file_len bytes; copied. On
 * failure *out is NULL. Errors: MOE_EFORMAT, MOE_EUNSUP (version, tensor type),
 * MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_gguf_parse(const void *p, size_t n, uint64_t file_len, const char *name,
    struct moe_gguf **out, struct moe_err *e);

/* Read the header of an open regular file; fd stays the caller's. Also MOE_EIO. */
int moe_gguf_fd(int fd, const char *name, struct moe_gguf **out, struct moe_err *e);
void moe_gguf_free(struct moe_gguf *g);

/* Keys and tensors in the order of the file; _find_kv and _find give NULL if there is none. */
size_t moe_gguf_kvs(const struct moe_gguf *g);
const struct moe_gguf_kv *moe_gguf_kv(const struct moe_gguf *g, size_t i);
const struct moe_gguf_kv *moe_gguf_find_kv(const struct moe_gguf *g, const char *key);
size_t moe_gguf_n(const struct moe_gguf *g);
const struct moe_gguf_tensor *moe_gguf_at(const struct moe_gguf *g, size_t i);
const struct moe_gguf_tensor *moe_gguf_find(const struct moe_gguf *g, const char *name);

/* Where the data starts in the file, and its bytes with the padding after each tensor. */
uint64_t moe_gguf_data_at(const struct moe_gguf *g);
uint64_t moe_gguf_data_len(const struct moe_gguf *g);
uint64_t moe_gguf_alignment(const struct moe_gguf *g);

#endif
