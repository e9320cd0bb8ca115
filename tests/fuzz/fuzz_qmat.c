/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoded matrices: the first bytes say which encoding, shape and sizes, the
 * rest fills the parts, each in a block of exactly its length. What the check
 * lets through can be decoded, whole and in rows, to the same bits.
 */
/* covers: common/formats/qmat.c common/formats/qmat_int.c common/formats/qmat_fp8.c */
/* covers: common/formats/qmat_mx.c common/formats/qmat_gptq.c common/formats/qmat_ggml.c */
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggml.h"
#include "common/formats/qmat.h"

#define HEAD 16
#define MAX_ROWS 48
#define MAX_COLS 600

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct input {
    const uint8_t *p;
    size_t n, at;
};

static uint64_t
pieces(uint64_t n, uint64_t piece)
{
    return piece == 0 ? 1 : (n + piece - 1) / piece;
}

/* What the parts of a sound matrix take; the check must find the same. */
static void
sizes(struct moe_qmat *m)
{
    uint64_t cells = m->rows * m->cols, group = m->group == 0 ? m->cols : m->group;
    uint64_t groups = group == 0 ? 0 : m->cols / group, scales = m->rows * groups;
    uint64_t bits = m->bits < 1 || m->bits > 8 ? 4 : (uint64_t)m->bits;

    m->data_len = cells;
    m->zero_len = scales;
    switch (m->enc) {
    case MOE_ENC_PLAIN:
        m->data_len = cells * moe_dtype_bits(m->dtype) / 8;
        break;
    case MOE_ENC_CT_PACK:
        m->data_len = m->rows * ((m->cols * bits + 31) / 32) * 4;
        m->zero_len = groups * ((m->rows * bits + 31) / 32) * 4;
        break;
    case MOE_ENC_CT_FP8: case MOE_ENC_DS_FP8:
        scales = pieces(m->rows, m->block_rows) * pieces(m->cols, m->group);
        break;
    case MOE_ENC_CT_MXFP4: case MOE_ENC_CT_NVFP4: case MOE_ENC_OSS_MXFP4:
        m->data_len = cells / 2;
        break;
    case MOE_ENC_GPTQ: case MOE_ENC_AWQ:
        m->data_len = cells * bits / 8;
        m->zero_len = scales * bits / 8;
        break;
    case MOE_ENC_GGML:
        (void)moe_ggml_bytes(m->ggml, (uint64_t[]){ m->cols, m->rows, 1, 1 }, &m->data_len);
        break;
    default:
        break;
    }
    m->scale_len = scales * moe_dtype_bits(m->scale_dtype) / 8;
    m->g_idx_len = 4 * m->cols;
}

/* A block of len bytes, from the input over and over. */
static void *
fill(struct input *in, uint64_t len)
{
    uint8_t *p = malloc(len > 0 ? len : 1);

    for (uint64_t i = 0; i < len && p != NULL; i++) {
        p[i] = in->n > HEAD ? in->p[HEAD + in->at] : 0x3c;
        if (in->n > HEAD)
            in->at = (in->at + 1) % (in->n - HEAD);
    }
    return p;
}

static void
decode(const struct moe_qmat *m)
{
    size_t n = (size_t)(m->rows * m->cols);
    float *a = malloc(n * sizeof(*a)), *b = malloc(n * sizeof(*b));

    if (a != NULL && b != NULL) {
        moe_qmat_rows(m, 0, m->rows, a);
        for (uint64_t r = 0; r < m->rows; r++)
            moe_qmat_rows(m, r, 1, b + r * m->cols);
        if (memcmp(a, b, n * sizeof(*a)) != 0)
            abort();
    }
    free(a);
    free(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct input in = { p, n, 0 };
    struct moe_err e = { 0, "" };
    struct moe_qmat m = { .global = 2 };
    int32_t *index = NULL;
    void *data, *scale, *zero;

    if (n < HEAD)
        return 0;
    m.enc = (enum moe_enc)(p[0] % MOE_ENC_N);
    m.dtype = (enum moe_dtype)(p[1] % MOE_DTYPE_N);
    m.ggml = p[2];
    m.bits = p[3];
    m.rows = p[4] % MAX_ROWS;
    m.cols = (p[5] | (uint64_t)p[6] << 8) % MAX_COLS;
    m.group = p[7];
    m.block_rows = p[8];
    m.scale_dtype = (enum moe_dtype)(p[9] % MOE_DTYPE_N);
    m.symmetric = (p[10] & 1) != 0;
    m.gptq_v2 = (p[10] & 2) != 0;
    sizes(&m);
    /* Now and then a size that is wrong. */
    m.data_len += p[11] == 1;
    m.scale_len += p[11] == 2;
    m.zero_len += p[11] == 3;
    data = fill(&in, m.data_len);
    scale = fill(&in, m.scale_len);
    zero = fill(&in, m.zero_len);
    if ((p[10] & 4) != 0 && (index = malloc(m.g_idx_len + 1)) != NULL)
        for (uint64_t i = 0; i < m.cols; i++)
            index[i] = (int32_t)(p[12 + i % 4] % 8);
    m.data = data;
    m.scale = scale;
    m.zero = zero;
    m.g_idx = index;
    if (data != NULL && scale != NULL && zero != NULL) {
        if (moe_qmat_check(&m, "fuzz", &e) == 0)
            decode(&m);
        else if (e.code >= 0 || e.text[0] == '\0')
            abort();
    }
    free(data);
    free(scale);
    free(zero);
    free(index);
    return 0;
}
