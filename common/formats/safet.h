/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: the header of one file or stream, read by the rules of the
 * reference library (tiling without holes, no trailing bytes, duplicate keys
 * refused, header at most 100,000,000 bytes) and written from a list.
 * Tensors keep the order of the header's text; names and shapes belong to the
 * moe_safet. Format: safetensors README, and src/tensor.rs of version 0.8.
 * Beyond them: at most MOE_SAFET_MAX_RANK dimensions, the text starts with '{',
 * no key of __metadata__ twice; unknown keys of a tensor are skipped.
 */
#ifndef MOE_FORMATS_SAFET_H
#define MOE_FORMATS_SAFET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/dtype.h"

#pragma GCC visibility push(default)

#define MOE_SAFET_MAX_HEADER ((size_t)100000000)
#define MOE_SAFET_MAX_RANK 64

struct moe_tensor {
    const char *name;           /* UTF-8, NUL-terminated */
    size_t name_len;            /* > strlen(name) if a NUL is inside; writers take 0 as strlen */
    enum moe_dtype dtype;
    int rank;                   /* 0 = scalar */
    const uint64_t *shape;      /* [rank] */
    uint64_t begin, end;        /* bytes from the start of the data */
};

struct moe_safet;
struct moe_stream;              /* common/base/stream.h */

/* Parse the JSON of a header; data_len = bytes after it, UINT64_MAX = unknown (a pipe). */
int moe_safet_parse(const char *json, size_t n, uint64_t data_len, const char *name,
    struct moe_safet **out, struct moe_err *e);

/* The length field at the start of a file. Errors: MOE_EFORMAT (over the limit). */
int moe_safet_length(const unsigned char raw[8], const char *name, size_t *n,
    struct moe_err *e);

/* Read and check the header of an open file (fd stays the caller's). */
int moe_safet_fd(int fd, const char *name, struct moe_safet **out, struct moe_err *e);

/* Read the header from a stream, which then stands at the data. */
int moe_safet_stream(struct moe_stream *s, const char *name, struct moe_safet **out,
    struct moe_err *e);

void moe_safet_free(struct moe_safet *s);

size_t moe_safet_n(const struct moe_safet *s);
const struct moe_tensor *moe_safet_at(const struct moe_safet *s, size_t i);

/* By name (binary search); NULL if there is none. */
const struct moe_tensor *moe_safet_find(const struct moe_safet *s, const char *name);

/* Tensors by name, ascending bytes: the k-th. */
const struct moe_tensor *moe_safet_by_name(const struct moe_safet *s, size_t k);

/* Tensors in the order of their data: index of the k-th. */
size_t moe_safet_by_offset(const struct moe_safet *s, size_t k);

/* Offset of the data in the file: 8 + header length. */
uint64_t moe_safet_data_at(const struct moe_safet *s);
uint64_t moe_safet_data_len(const struct moe_safet *s);

struct moe_safet_pair {         /* of __metadata__; NUL-terminated */
    const char *key, *value;
    size_t key_len, value_len;
};

/* __metadata__: value of a key or NULL; the i-th pair of the text, NULL past the last. */
const char *moe_safet_meta(const struct moe_safet *s, const char *key);
const struct moe_safet_pair *moe_safet_meta_at(const struct moe_safet *s, size_t i);

/* Elements of a shape; false on overflow of 64 bits. */
bool moe_safet_count(const struct moe_tensor *t, uint64_t *n);

/* Bytes of a shape and type; false on overflow or a part of a byte. */
bool moe_safet_bytes(enum moe_dtype t, const uint64_t *shape, int rank, uint64_t *n);

/*
 * Append a whole header (length, JSON, padding) to b for n tensors; begin and
 * end are ignored, the data has them in the given order. meta is
 * NULL-terminated key, value, key, value ... or NULL; {"format":"pt"} is added
 * unless given. Padded with spaces so that the data starts at a multiple of
 * align (>= 8). What is written has been read back by moe_safet_parse().
 * Errors: MOE_ENOMEM, MOE_ELIMIT, MOE_EFORMAT (a name twice, no whole bytes ...).
 */
int moe_safet_write(struct moe_buf *b, const struct moe_tensor *t, size_t n,
    const char *const *meta, size_t align, struct moe_err *e);

#pragma GCC visibility pop

#endif
