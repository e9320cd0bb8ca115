/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the values of GGUF metadata: kinds, and typed reading of bytes that
 * gguf.c has checked.
 */
#include <string.h>

#include "common/formats/ggufkv.h"

static const struct kind {
    uint8_t size;
    const char *name;
} kinds[MOE_GGUF_KIND_N] = {
    { 1, "UINT8" }, { 1, "INT8" }, { 2, "UINT16" }, { 2, "INT16" }, { 4, "UINT32" },
    { 4, "INT32" }, { 4, "FLOAT32" }, { 1, "BOOL" }, { 0, "STRING" }, { 0, "ARRAY" },
    { 8, "UINT64" }, { 8, "INT64" }, { 8, "FLOAT64" },
};

static uint64_t
load(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

size_t
moe_ggufkv_size(enum moe_gguf_kind k)
{
    return kinds[k].size;
}

const char *
moe_ggufkv_kind_name(enum moe_gguf_kind k)
{
    return kinds[k].name;
}

bool
moe_ggufkv_int_at(const struct moe_gguf_kv *kv, uint64_t i, int64_t *v)
{
    size_t size = kinds[kv->kind].size;
    uint64_t u;

    if (i >= kv->n)
        return false;
    switch (kv->kind) {
    case MOE_GGUF_U8: case MOE_GGUF_U16: case MOE_GGUF_U32: case MOE_GGUF_U64:
        u = load(kv->raw + i * size, size);
        *v = (int64_t)u;
        return u <= INT64_MAX;
    case MOE_GGUF_I8:
        *v = (int8_t)kv->raw[i];
        return true;
    case MOE_GGUF_I16:
        *v = (int16_t)load(kv->raw + i * size, size);
        return true;
    case MOE_GGUF_I32:
        *v = (int32_t)load(kv->raw + i * size, size);
        return true;
    case MOE_GGUF_I64:
        *v = (int64_t)load(kv->raw + i * size, size);
        return true;
    default:
        return false;
    }
}

bool
moe_ggufkv_real_at(const struct moe_gguf_kv *kv, uint64_t i, double *v)
{
    size_t size = kinds[kv->kind].size;
    uint64_t bits;
    uint32_t bits32;
    float f;

    if (i >= kv->n || (kv->kind != MOE_GGUF_F32 && kv->kind != MOE_GGUF_F64))
        return false;
    bits = load(kv->raw + i * size, size);
    if (kv->kind == MOE_GGUF_F64) {
        memcpy(v, &bits, sizeof(*v));
        return true;
    }
    bits32 = (uint32_t)bits;
    memcpy(&f, &bits32, sizeof(f));
    *v = f;
    return true;
}

bool
moe_ggufkv_int(const struct moe_gguf_kv *kv, int64_t *v)
{
    return !kv->array && moe_ggufkv_int_at(kv, 0, v);
}

bool
moe_ggufkv_real(const struct moe_gguf_kv *kv, double *v)
{
    return !kv->array && moe_ggufkv_real_at(kv, 0, v);
}

bool
moe_ggufkv_bool(const struct moe_gguf_kv *kv, bool *v)
{
    if (kv->array || kv->kind != MOE_GGUF_BOOL)
        return false;
    *v = kv->raw[0] != 0;
    return true;
}

bool
moe_ggufkv_str(const struct moe_gguf_kv *kv, const char **p, size_t *n)
{
    size_t at = 0;

    return !kv->array && moe_ggufkv_str_next(kv, &at, p, n);
}

bool
moe_ggufkv_str_next(const struct moe_gguf_kv *kv, size_t *at, const char **p, size_t *n)
{
    if (kv->kind != MOE_GGUF_STRING || *at >= kv->raw_len)
        return false;
    *n = (size_t)load(kv->raw + *at, 8);
    *p = (const char *)kv->raw + *at + 8;
    *at += 8 + *n;
    return true;
}
