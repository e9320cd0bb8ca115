/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GGUF version 3: header, metadata and tensor list read with every rule of the
 * reference reader, and written. Strings are pointer and length. Format: ggml
 * docs/gguf.md and src/gguf.cpp.
 */
#ifndef MOE_FORMATS_GGUF_H
#define MOE_FORMATS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_GGUF_MAX_HEADER ((uint64_t)1 << 30)     /* bytes before the data */
#define MOE_GGUF_MAX_DIMS 4
#define MOE_GGUF_MAX_NAME 63

enum moe_gguf_kind {    /* metadata value types, by their number in the file */
    MOE_GGUF_U8, MOE_GGUF_I8, MOE_GGUF_U16, MOE_GGUF_I16, MOE_GGUF_U32, MOE_GGUF_I32,
    MOE_GGUF_F32, MOE_GGUF_BOOL, MOE_GGUF_STRING, MOE_GGUF_ARRAY,
    MOE_GGUF_U64, MOE_GGUF_I64, MOE_GGUF_F64
};

enum moe_ggml {         /* tensor types, by their number in the file */
    MOE_GGML_F32 = 0, MOE_GGML_F16 = 1, MOE_GGML_Q4_0 = 2, MOE_GGML_Q8_0 = 8,
    MOE_GGML_Q4_K = 12, MOE_GGML_Q6_K = 14, MOE_GGML_I8 = 24, MOE_GGML_I16 = 25,
    MOE_GGML_I32 = 26, MOE_GGML_I64 = 27, MOE_GGML_F64 = 28, MOE_GGML_BF16 = 30,
    MOE_GGML_MXFP4 = 39
};

/* Elements and bytes of a block; false when the type is not known here. */
bool moe_gguf_block(uint32_t type, uint64_t *elements, uint64_t *bytes);
const char *moe_gguf_type_name(uint32_t type);       /* "Q4_0", "type 99" never: NULL if unknown */

struct moe_gguf_kv {
    const char *key;            /* NUL-terminated copy */
    enum moe_gguf_kind kind;    /* of the value, or of an array's elements */
    bool array;
    uint64_t n;                 /* elements of an array, else 1 */
    const unsigned char *raw;   /* the bytes as in the file, borrowed from the gguf */
    size_t raw_len;
};

struct moe_gguf_tensor {
    const char *name;
    uint32_t type;              /* enum moe_ggml, or a number not known here */
    int n_dims;
    uint64_t ne[MOE_GGUF_MAX_DIMS];     /* ne[0] = row length; unused are 1 */
    uint64_t offset;            /* from the start of the data */
    uint64_t bytes;
};

struct moe_gguf;

/* p, n: at least the whole header of a file of file_len bytes; copied. */
int moe_gguf_parse(const void *p, size_t n, uint64_t file_len, const char *name,
    struct moe_gguf **out, struct moe_err *e);
int moe_gguf_fd(int fd, const char *name, struct moe_gguf **out, struct moe_err *e);
void moe_gguf_free(struct moe_gguf *g);

size_t moe_gguf_kvs(const struct moe_gguf *g);
const struct moe_gguf_kv *moe_gguf_kv(const struct moe_gguf *g, size_t i);
const struct moe_gguf_kv *moe_gguf_find_kv(const struct moe_gguf *g, const char *key);
size_t moe_gguf_n(const struct moe_gguf *g);
const struct moe_gguf_tensor *moe_gguf_at(const struct moe_gguf *g, size_t i);
const struct moe_gguf_tensor *moe_gguf_find(const struct moe_gguf *g, const char *name);
uint64_t moe_gguf_data_at(const struct moe_gguf *g);
uint64_t moe_gguf_alignment(const struct moe_gguf *g);

/* Typed reading of a value; false on another kind. Integers of any width fit _int. */
bool moe_gguf_int(const struct moe_gguf_kv *kv, int64_t *v);
bool moe_gguf_real(const struct moe_gguf_kv *kv, double *v);
bool moe_gguf_bool(const struct moe_gguf_kv *kv, bool *v);
bool moe_gguf_str(const struct moe_gguf_kv *kv, const char **p, size_t *n);
/* Walk an array of strings: *at starts at 0. */
bool moe_gguf_str_next(const struct moe_gguf_kv *kv, size_t *at, const char **p, size_t *n);

/* Writing: collect keys and tensors, then emit the header padded to the data. */
struct moe_gguf_writer;
struct moe_gguf_writer *moe_gguf_writer_new(void);
void moe_gguf_writer_free(struct moe_gguf_writer *w);
void moe_gguf_put_int(struct moe_gguf_writer *w, const char *key, enum moe_gguf_kind kind, int64_t v);
void moe_gguf_put_real(struct moe_gguf_writer *w, const char *key, enum moe_gguf_kind kind, double v);
void moe_gguf_put_bool(struct moe_gguf_writer *w, const char *key, bool v);
void moe_gguf_put_str(struct moe_gguf_writer *w, const char *key, const char *p, size_t n);
/* Raw array: n elements of kind, raw bytes as in the file. */
void moe_gguf_put_array(struct moe_gguf_writer *w, const char *key, enum moe_gguf_kind kind,
    uint64_t n, const void *raw, size_t raw_len);
void moe_gguf_put_tensor(struct moe_gguf_writer *w, const char *name, uint32_t type,
    int n_dims, const uint64_t *ne);
/* Errors: MOE_ENOMEM (any put before), MOE_EFORMAT (duplicate, name too long, row not whole blocks). */
int moe_gguf_emit(struct moe_gguf_writer *w, struct moe_buf *b, struct moe_err *e);
/* After emit: offset of tensor i from the start of the data, and all data bytes with padding. */
uint64_t moe_gguf_writer_offset(const struct moe_gguf_writer *w, size_t i);
uint64_t moe_gguf_writer_data(const struct moe_gguf_writer *w);

#endif
