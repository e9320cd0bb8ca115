/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the layout that every device shares: strides of rows, pages of keys and
 * values. Touches no memory.
 */
#include "common/engine/backend.h"

size_t
moe_backend_ld(size_t n)
{
    return (n + MOE_BACKEND_LD - 1) / MOE_BACKEND_LD * MOE_BACKEND_LD;
}

/* Floats of one layer in a page. */
static size_t
layer_floats(const struct moe_kv_shape *s)
{
    return s->heads * MOE_KV_PAGE * (s->k_dim + s->v_dim);
}

size_t
moe_backend_page(const struct moe_kv_shape *s)
{
    return s->layers * layer_floats(s) * sizeof(float);
}

size_t
moe_backend_k_at(const struct moe_kv_shape *s, size_t layer, size_t head)
{
    return (layer * layer_floats(s) + head * MOE_KV_PAGE * s->k_dim) * sizeof(float);
}

size_t
moe_backend_v_at(const struct moe_kv_shape *s, size_t layer, size_t head)
{
    return (layer * layer_floats(s) + s->heads * MOE_KV_PAGE * s->k_dim
        + head * MOE_KV_PAGE * s->v_dim) * sizeof(float);
}

struct moe_view
moe_backend_view(struct moe_view v, size_t floats)
{
    return (struct moe_view){ v.mem, v.at + floats * sizeof(float) };
}
