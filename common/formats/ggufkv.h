/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One key and value of GGUF metadata. A struct moe_gguf_kv belongs to the
 * moe_gguf it comes from, or to whoever filled it.
 */
#ifndef MOE_FORMATS_GGUFKV_H
#define MOE_FORMATS_GGUFKV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum moe_gguf_kind {    /* value types, by their number in the file */
    MOE_GGUF_U8, MOE_GGUF_I8, MOE_GGUF_U16, MOE_GGUF_I16, MOE_GGUF_U32, MOE_GGUF_I32,
    MOE_GGUF_F32, MOE_GGUF_BOOL, MOE_GGUF_STRING, MOE_GGUF_ARRAY,
    MOE_GGUF_U64, MOE_GGUF_I64, MOE_GGUF_F64,
    MOE_GGUF_KIND_N
};

struct moe_gguf_kv {
    const char *key;            /* NUL-terminated */
    enum moe_gguf_kind kind;    /* of the value, or of an array's elements; never ARRAY */
    bool array;
    uint64_t n;                 /* elements of an array, else 1 */
    const unsigned char *raw;   /* the value's bytes as in the file, strings with their length */
    size_t raw_len;
};

/* Bytes of one value; 0 for strings and arrays. Names are those of gguf-py: "UINT32". */
size_t moe_ggufkv_size(enum moe_gguf_kind k);
const char *moe_ggufkv_kind_name(enum moe_gguf_kind k);

/* A single value; false on another kind. Integers of any width fit _int. */
bool moe_ggufkv_int(const struct moe_gguf_kv *kv, int64_t *v);
bool moe_ggufkv_real(const struct moe_gguf_kv *kv, double *v);
bool moe_ggufkv_bool(const struct moe_gguf_kv *kv, bool *v);
bool moe_ggufkv_str(const struct moe_gguf_kv *kv, const char **p, size_t *n);

/* Element i of an array of integers or reals, or the single value for i = 0. */
bool moe_ggufkv_int_at(const struct moe_gguf_kv *kv, uint64_t i, int64_t *v);
bool moe_ggufkv_real_at(const struct moe_gguf_kv *kv, uint64_t i, double *v);

/* Walk an array of strings: *at starts at 0; false past the last. */
bool moe_ggufkv_str_next(const struct moe_gguf_kv *kv, size_t *at, const char **p, size_t *n);

#endif
