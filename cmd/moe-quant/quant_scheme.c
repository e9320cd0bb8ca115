/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of schemes: names, the tensors each writes, and how each is
 * told in a configuration. The arithmetic is quant_encode.c's.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/moe-quant/quant_scheme.h"

#define BLOCK 128

static const struct quant_codec table[] = {
    { "int4", "pack-quantized", QUANT_GRID_INT, QUANT_SCALE_FLOAT, 4, 0, 1, true, false,
        MOE_I32 },
    { "int8", "pack-quantized", QUANT_GRID_INT, QUANT_SCALE_FLOAT, 8, 0, 1, true, false,
        MOE_I32 },
    { "int8-w8a8", "int-quantized", QUANT_GRID_INT, QUANT_SCALE_FLOAT, 8, 0, 1, false, true,
        MOE_I8 },
    { "fp8", "float-quantized", QUANT_GRID_E4M3, QUANT_SCALE_FLOAT, 8, 0, 1, false, true,
        MOE_F8_E4M3 },
    { "fp8-tensor", "float-quantized", QUANT_GRID_E4M3, QUANT_SCALE_FLOAT, 8, 0, 0, false, true,
        MOE_F8_E4M3 },
    { "fp8-block", "float-quantized", QUANT_GRID_E4M3, QUANT_SCALE_FLOAT, 8, BLOCK, BLOCK, false,
        false, MOE_F8_E4M3 },
    { "fp8-deepseek", NULL, QUANT_GRID_E4M3, QUANT_SCALE_F32, 8, BLOCK, BLOCK, false, false,
        MOE_F8_E4M3 },
    { "mxfp4", "mxfp4-pack-quantized", QUANT_GRID_E2M1, QUANT_SCALE_E8M0, 4, 32, 1, true, false,
        MOE_U8 },
    { "mxfp8", "mxfp8-quantized", QUANT_GRID_E4M3, QUANT_SCALE_E8M0, 8, 32, 1, false, false,
        MOE_F8_E4M3 },
    { "nvfp4", "nvfp4-pack-quantized", QUANT_GRID_E2M1, QUANT_SCALE_E4M3, 4, 16, 1, true, false,
        MOE_U8 },
    { "bf16", NULL, QUANT_GRID_PLAIN, QUANT_SCALE_NONE, 16, 0, 1, false, false, MOE_BF16 },
    { "f16", NULL, QUANT_GRID_PLAIN, QUANT_SCALE_NONE, 16, 0, 1, false, false, MOE_F16 },
    { "f32", NULL, QUANT_GRID_PLAIN, QUANT_SCALE_NONE, 32, 0, 1, false, false, MOE_F32 },
};

const struct quant_codec *
quant_scheme_at(size_t i)
{
    return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

const struct quant_codec *
quant_scheme_find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

bool
quant_scheme_grouped(const struct quant_codec *c)
{
    return c->grid == QUANT_GRID_INT && !c->row;
}

bool
quant_scheme_can_asym(const struct quant_codec *c)
{
    return c->grid == QUANT_GRID_INT && c->packed;
}

bool
quant_scheme_needs_range(const struct quant_scheme *s)
{
    return s->codec != NULL && s->codec->grid != QUANT_GRID_PLAIN &&
        (s->codec->rows == 0 || s->codec->scale == QUANT_SCALE_E4M3);
}

uint64_t
quant_scheme_strip(const struct quant_scheme *s)
{
    return s->codec != NULL && s->codec->rows > 1 ? s->codec->rows : 1;
}

static uint64_t
pieces(uint64_t n, uint64_t piece)
{
    return n / piece + (n % piece != 0);
}

static uint64_t
groups(const struct quant_scheme *s, uint64_t cols)
{
    return s->group == 0 ? 1 : pieces(cols, s->group);
}

uint64_t
quant_scheme_scales(const struct quant_scheme *s, uint64_t rows, uint64_t cols)
{
    const struct quant_codec *c = s->codec;

    if (c->scale == QUANT_SCALE_NONE)
        return 0;
    return c->rows == 0 ? 1 : pieces(rows, c->rows) * groups(s, cols);
}

static enum moe_dtype
scale_dtype(const struct quant_scheme *s)
{
    switch (s->codec->scale) {
    case QUANT_SCALE_E8M0: return MOE_U8;
    case QUANT_SCALE_E4M3: return MOE_F8_E4M3;
    case QUANT_SCALE_F32: return MOE_F32;
    default: return s->scale;
    }
}

static void
add(struct quant_part *p, const char *suffix, enum moe_dtype dtype, int rank, uint64_t a,
    uint64_t b)
{
    *p = (struct quant_part){ suffix, dtype, rank, { a, b },
        a * (rank > 1 ? b : 1) * moe_dtype_bits(dtype) / 8 };
}

size_t
quant_scheme_parts(const struct quant_scheme *s, uint64_t rows, uint64_t cols,
    struct quant_part part[static QUANT_SCHEME_PARTS])
{
    const struct quant_codec *c = s->codec;
    uint64_t bits = (uint64_t)c->bits, per_row = groups(s, cols);
    uint64_t wide = c->dtype == MOE_I32 ? pieces(cols * bits, 32) :
        c->dtype == MOE_U8 ? pieces(cols * bits, 8) : cols;
    size_t n = 0;

    add(&part[n++], c->packed ? ".weight_packed" : ".weight", c->dtype, 2, rows, wide);
    if (c->scale == QUANT_SCALE_NONE)
        return n;
    if (c->rows == 0)
        add(&part[n++], ".weight_scale", scale_dtype(s), 1, 1, 0);
    else
        add(&part[n++], c->scale == QUANT_SCALE_F32 ? ".weight_scale_inv" : ".weight_scale",
            scale_dtype(s), 2, pieces(rows, c->rows), per_row);
    if (s->asym)
        add(&part[n++], ".weight_zero_point", MOE_I32, 2, pieces(rows * bits, 32), per_row);
    if (c->dtype == MOE_I32)
        add(&part[n++], ".weight_shape", MOE_I64, 1, 2, 0);
    if (c->scale == QUANT_SCALE_E4M3)
        add(&part[n++], ".weight_global_scale", MOE_F32, 1, 1, 0);
    return n;
}

uint64_t
quant_scheme_bytes(const struct quant_scheme *s, uint64_t rows, uint64_t cols)
{
    struct quant_part p[QUANT_SCHEME_PARTS];
    size_t n = quant_scheme_parts(s, rows, cols, p);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += p[i].bytes;
    return sum;
}

char *
quant_scheme_name(const struct quant_scheme *s, char name[static QUANT_SCHEME_NAME])
{
    if (s->codec == NULL)
        (void)snprintf(name, QUANT_SCHEME_NAME, "kept");
    else if (!quant_scheme_grouped(s->codec))
        (void)snprintf(name, QUANT_SCHEME_NAME, "%s", s->codec->name);
    else if (s->group == 0)
        (void)snprintf(name, QUANT_SCHEME_NAME, "%s%s-channel", s->codec->name,
            s->asym ? "-asym" : "");
    else
        (void)snprintf(name, QUANT_SCHEME_NAME, "%s%s-g%llu", s->codec->name,
            s->asym ? "-asym" : "", (unsigned long long)s->group);
    return name;
}

bool
quant_scheme_same(const struct quant_scheme *a, const struct quant_scheme *b)
{
    return a->codec == b->codec && a->group == b->group && a->asym == b->asym;
}

/* ---- Configuration ------------------------------------------------------------ */

static const char *
strategy(const struct quant_scheme *s)
{
    const struct quant_codec *c = s->codec;

    if (c->rows == 0)
        return "tensor";
    if (c->rows > 1)
        return "block";
    if (c->scale == QUANT_SCALE_E4M3)
        return "tensor_group";
    return s->group == 0 ? "channel" : "group";
}

json_t *
quant_scheme_weights(const struct quant_scheme *s)
{
    const struct quant_codec *c = s->codec;
    json_t *w = json_pack("{s:i,s:s,s:b,s:s}", "num_bits", c->bits, "type",
        c->grid == QUANT_GRID_INT ? "int" : "float", "symmetric", !s->asym, "strategy",
        strategy(s));

    if (c->rows > 1)
        json_object_set_new(w, "block_structure", json_pack("[i,i]", BLOCK, BLOCK));
    else if (s->group != 0)
        json_object_set_new(w, "group_size", json_integer((json_int_t)s->group));
    json_object_set_new(w, "dynamic", json_false());
    if (c->scale == QUANT_SCALE_E8M0)
        json_object_set_new(w, "scale_dtype", json_string("torch.uint8"));
    if (c->scale == QUANT_SCALE_E4M3)
        json_object_set_new(w, "scale_dtype", json_string("torch.float8_e4m3fn"));
    return w;
}

/* What the multiplication is done with: FP8 and INT8 codes are multiplied as they are. */
json_t *
quant_scheme_activations(const struct quant_scheme *s)
{
    const struct quant_codec *c = s->codec;
    json_t *a;

    if (c->packed || c->scale == QUANT_SCALE_E8M0)
        return json_null();
    a = json_pack("{s:i,s:s,s:b,s:s,s:b}", "num_bits", c->bits, "type",
        c->grid == QUANT_GRID_INT ? "int" : "float", "symmetric", 1, "strategy",
        c->rows > 1 ? "group" : c->rows == 0 ? "tensor" : "token", "dynamic", 1);
    if (c->rows > 1)
        json_object_set_new(a, "group_size", json_integer(BLOCK));
    return a;
}
