/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns putting golden encoded matrices together and comparing their decoding.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden_qmat.h"
#include "tests/tap.h"

static enum moe_dtype
dtype(const char *name)
{
    enum moe_dtype t = MOE_BOOL;

    (void)moe_dtype_find(name, strlen(name), &t);
    return t;
}

static bool
part(const struct golden_tensors *g, const char *name, const char *suffix,
    struct golden_tensor *t)
{
    char full[256];

    (void)snprintf(full, sizeof(full), "%s.%s", name, suffix);
    return golden_find(g, full, false, t);
}

struct moe_qmat
golden_qmat_of(const struct golden_tensors *g, const char *name, json_t *q,
    const char *fmt, uint64_t rows, uint64_t cols)
{
    static const struct { const char *format; enum moe_enc enc; } encodings[] = {
        { "pack-quantized", MOE_ENC_CT_PACK }, { "int-quantized", MOE_ENC_CT_INT8 },
        { "float-quantized", MOE_ENC_CT_FP8 }, { "mxfp4-pack-quantized", MOE_ENC_CT_MXFP4 },
        { "mxfp8-quantized", MOE_ENC_CT_MXFP8 }, { "nvfp4-pack-quantized", MOE_ENC_CT_NVFP4 },
    };
    const char *strategy = json_string_value(json_object_get(q, "strategy"));
    struct moe_qmat m = { .rows = rows, .cols = cols };
    struct golden_tensor t;

    for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++)
        if (strcmp(fmt, encodings[i].format) == 0)
            m.enc = encodings[i].enc;
    m.bits = (int)json_integer_value(json_object_get(q, "num_bits"));
    m.symmetric = json_is_true(json_object_get(q, "symmetric"));
    m.group = (uint64_t)json_integer_value(json_object_get(q, "group_size"));
    if (m.enc == MOE_ENC_CT_FP8) {
        m.block_rows = strcmp(strategy, "block") == 0 ? 128 : strcmp(strategy, "channel") == 0;
        m.group = strcmp(strategy, "block") == 0 ? 128 : 0;
    }
    if (part(g, name, "weight_packed", &t) || part(g, name, "weight", &t)) {
        m.data = t.p;
        m.data_len = t.n;
    }
    if (part(g, name, "weight_scale", &t)) {
        m.scale = t.p;
        m.scale_len = t.n;
        m.scale_dtype = dtype(t.dtype);
    }
    if (part(g, name, "weight_zero_point", &t)) {
        m.zero = t.p;
        m.zero_len = t.n;
    }
    if (part(g, name, "weight_global_scale", &t))
        memcpy(&m.global, t.p, sizeof(m.global));
    return m;
}

void
golden_qmat_kernel(const struct moe_packed *p, const struct moe_repack *from, float *out)
{
    struct moe_blocks form = moe_packed_form(p);
    uint64_t bytes = 0, blocks = moe_packed_blocks(p), ld = blocks * MOE_PACKED_ROWS;
    float *x = calloc((size_t)(p->cols * p->cols), sizeof(*x));
    float *all = calloc((size_t)(p->cols * ld), sizeof(*all));
    unsigned char *w;

    moe_packed_block_bytes(p, &bytes);
    w = aligned_alloc(64, (size_t)(bytes * blocks));
    for (uint64_t b = 0; b < blocks; b++)
        moe_repack_block(p, b, from, w + b * bytes);
    for (uint64_t k = 0; k < p->cols; k++)
        x[k * p->cols + k] = 1;
    moe_kernels()->gemm_packed(all, (size_t)ld, w, (size_t)blocks, &form, x, (size_t)p->cols,
        (size_t)p->cols);
    for (uint64_t r = 0; r < p->rows; r++)
        for (uint64_t k = 0; k < p->cols; k++)
            out[r * p->cols + k] = all[k * ld + r];
    free(w);
    free(x);
    free(all);
}

/* The values a kernel takes from the packed form of m, against those decoded. */
static void
packed(const struct moe_qmat *m, const char *name, const float *want)
{
    const struct moe_repack from = { m, 0, 1 };
    size_t n = (size_t)(m->rows * m->cols), bad = 0;
    struct moe_packed p;
    float *got;

    if (!moe_repack_of(&from, m->rows, &p))
        return;
    got = malloc(n * sizeof(*got));
    golden_qmat_kernel(&p, &from, got);
    for (size_t i = 0; i < n; i++)
        bad += got[i] != want[i] && !(isnan(got[i]) && isnan(want[i]));
    tap_is_int((long long)bad, 0, "%s: packed, the kernel sees the same", name);
    free(got);
}

const float *
golden_qmat_decode(const struct moe_qmat *m, const char *name)
{
    static float *whole;
    struct moe_err e = { 0, "" };
    size_t n = (size_t)(m->rows * m->cols);
    float *pieces;
    uint64_t row = 0;

    if (!tap_is_int(moe_qmat_check(m, name, &e), 0, "%s: checked", name)) {
        tap_diag("%s", e.text);
        return NULL;
    }
    free(whole);
    whole = malloc(n * sizeof(*whole));
    pieces = malloc(n * sizeof(*pieces));
    moe_qmat_rows(m, 0, m->rows, whole);
    for (uint64_t k = 1; row < m->rows; row += k, k = k % 3 + 1) {
        if (k > m->rows - row)
            k = m->rows - row;
        moe_qmat_rows(m, row, k, pieces + row * m->cols);
    }
    tap_ok(memcmp(whole, pieces, n * sizeof(*whole)) == 0, "%s: in pieces of rows", name);
    free(pieces);
    packed(m, name, whole);
    return whole;
}

void
golden_qmat_ct(const char *file)
{
    char path[256];
    struct golden_tensors g;
    json_t *j, *config, *info;
    const char *name;

    (void)snprintf(path, sizeof(path), "quant/ct/%s.safetensors", file);
    g = golden_tensors(path);
    (void)snprintf(path, sizeof(path), "quant/ct/%s.json", file);
    j = golden_json(path);
    config = json_object_get(j, "quantization_config");
    json_object_foreach(json_object_get(j, "matrices"), name, info) {
        json_t *shape = json_object_get(info, "shape");
        json_t *q = json_object_get(config, "config_groups");
        struct golden_tensor want;
        struct moe_qmat m;
        const float *f;

        q = json_object_get(json_object_get(q, "group_0"), "weights");
        (void)snprintf(path, sizeof(path), "%s: %s", file, name);
        m = golden_qmat_of(&g, name, q, json_string_value(json_object_get(config, "format")),
            (uint64_t)json_integer_value(json_array_get(shape, 0)),
            (uint64_t)json_integer_value(json_array_get(shape, 1)));
        if ((f = golden_qmat_decode(&m, path)) == NULL)
            continue;
        tap_is_str(golden_sha256(f, (size_t)(m.rows * m.cols) * 4),
            json_string_value(json_object_get(info, "dequant_f32_sha256")),
            "%s: SHA-256 of the values", path);
        if (part(&g, name, "dequant", &want))
            tap_is_mem(f, want.p, want.n, "%s: the first values", path);
    }
}
