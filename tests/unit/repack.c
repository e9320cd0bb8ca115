/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which encodings have a packed form, and rows picked out of a matrix. That all
 * values come through is seen where the golden matrices are decoded.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/golden_qmat.h"
#include "tests/tap.h"

#define ROWS 40
#define COLS 96

static unsigned char data[ROWS * COLS], scale[ROWS * COLS], zero[ROWS * COLS];

static struct moe_qmat
qmat(enum moe_enc enc, int bits, uint64_t group, enum moe_dtype scales)
{
    return (struct moe_qmat){ .enc = enc, .bits = bits, .rows = ROWS, .cols = COLS,
        .group = group, .scale_dtype = scales, .symmetric = true, .data = data, .scale = scale,
        .zero = zero };
}

static void
forms(void)
{
    static const struct {
        enum moe_enc enc;
        int bits;
        uint64_t group;
        enum moe_dtype scales;
        uint32_t ggml;
        enum moe_packed_kind kind;
        uint64_t want;          /* group; 0: no form */
        enum moe_dtype stored;
    } list[] = {
        { MOE_ENC_CT_PACK, 4, 32, MOE_BF16, 0, MOE_PACKED_I4, 32, MOE_BF16 },
        { MOE_ENC_CT_PACK, 4, 0, MOE_F32, 0, MOE_PACKED_I4, 32, MOE_F32 },
        { MOE_ENC_CT_PACK, 8, 96, MOE_F16, 0, MOE_PACKED_I8, 32, MOE_F16 },
        { MOE_ENC_CT_PACK, 3, 32, MOE_BF16, 0, MOE_PACKED_I4, 0, MOE_BF16 },
        { MOE_ENC_CT_PACK, 4, 16, MOE_BF16, 0, MOE_PACKED_I4, 0, MOE_BF16 },
        { MOE_ENC_CT_INT8, 8, 0, MOE_BF16, 0, MOE_PACKED_I8, 32, MOE_BF16 },
        { MOE_ENC_GPTQ, 4, 32, MOE_F16, 0, MOE_PACKED_I4, 32, MOE_F16 },
        { MOE_ENC_GPTQ, 2, 32, MOE_F16, 0, MOE_PACKED_I4, 0, MOE_F16 },
        { MOE_ENC_AWQ, 4, 32, MOE_F16, 0, MOE_PACKED_I4, 32, MOE_F16 },
        { MOE_ENC_CT_MXFP4, 4, 32, MOE_U8, 0, MOE_PACKED_E2M1, 32, MOE_BF16 },
        { MOE_ENC_OSS_MXFP4, 4, 32, MOE_U8, 0, MOE_PACKED_E2M1, 32, MOE_BF16 },
        { MOE_ENC_CT_NVFP4, 4, 16, MOE_F8_E4M3, 0, MOE_PACKED_E2M1, 0, MOE_BF16 },
        { MOE_ENC_CT_MXFP8, 8, 32, MOE_U8, 0, MOE_PACKED_E4M3, 32, MOE_BF16 },
        { MOE_ENC_CT_FP8, 8, 0, MOE_F32, 0, MOE_PACKED_E4M3, 32, MOE_F32 },
        { MOE_ENC_DS_FP8, 8, 128, MOE_F32, 0, MOE_PACKED_E4M3, 32, MOE_F32 },
        { MOE_ENC_GGML, 0, 0, MOE_F16, 2, MOE_PACKED_I4, 32, MOE_F16 },
        { MOE_ENC_GGML, 0, 0, MOE_F16, 8, MOE_PACKED_I8, 32, MOE_F16 },
        { MOE_ENC_GGML, 0, 0, MOE_F16, 12, MOE_PACKED_I8, 0, MOE_F16 },
        { MOE_ENC_GGML, 0, 0, MOE_F16, 39, MOE_PACKED_E2M1, 32, MOE_BF16 },
        { MOE_ENC_PLAIN, 0, 0, MOE_BF16, 0, MOE_PACKED_BF16, 0, MOE_BF16 },
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct moe_qmat q = qmat(list[i].enc, list[i].bits, list[i].group, list[i].scales);
        struct moe_repack from = { &q, 0, 1 };
        struct moe_packed m;
        bool yes;

        q.ggml = list[i].ggml;
        q.block_rows = list[i].enc == MOE_ENC_DS_FP8 ? 128 : 0;
        yes = moe_repack_of(&from, ROWS, &m);
        tap_ok(yes == (list[i].want != 0) && (!yes || (m.kind == list[i].kind && !m.bias &&
            m.group == list[i].want && m.scale_dtype == list[i].stored && m.rows == ROWS)),
            "case %zu: %s of %d bits, group %d", i, moe_qmat_enc_name(q.enc), q.bits,
            (int)q.group);
    }
}

static void
refused(void)
{
    struct moe_qmat q = qmat(MOE_ENC_CT_FP8, 8, 0, MOE_F32);
    struct moe_repack from = { &q, 0, 1 };
    struct moe_packed m;
    int32_t index[COLS];

    data[17 * COLS + 5] = 0xff;
    tap_ok(!moe_repack_of(&from, ROWS, &m), "FP8 with a NaN has none");
    tap_ok(moe_repack_of(&from, 17, &m), "but the rows before it do");
    from.first = 18;
    tap_ok(moe_repack_of(&from, ROWS - 18, &m), "and those after it");
    data[17 * COLS + 5] = 0;
    q = qmat(MOE_ENC_GPTQ, 4, 32, MOE_F16);
    q.g_idx = index;
    for (int i = 0; i < COLS; i++)
        index[i] = i / 32;
    from.first = 0;
    tap_ok(moe_repack_of(&from, ROWS, &m) && m.zeros, "an index of groups in order");
    index[3] = 2;
    tap_ok(!moe_repack_of(&from, ROWS, &m), "none for groups in another order");
    q = qmat(MOE_ENC_CT_INT8, 8, 0, MOE_BF16);
    q.cols = 80;
    tap_ok(!moe_repack_of(&from, ROWS, &m), "none for 80 columns");
}

/* Even and odd rows of one matrix, and its second half. */
static void
picked(void)
{
    static const struct { uint64_t first, step, rows; } list[] = { { 0, 2, ROWS / 2 },
        { 1, 2, ROWS / 2 }, { ROWS / 2, 1, ROWS / 2 }, { ROWS - 1, 1, 1 }, { 3, 5, 7 } };
    struct moe_qmat q = qmat(MOE_ENC_OSS_MXFP4, 4, 32, MOE_U8);
    float whole[ROWS * COLS], got[ROWS * COLS];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof(scale); i++)
        scale[i] = (unsigned char)(120 + i % 11);
    scale[0] = 0;
    scale[1] = 1;
    q.data_len = ROWS * COLS / 2;
    q.scale_len = ROWS * COLS / 32;
    moe_qmat_rows(&q, 0, ROWS, whole);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        struct moe_repack from = { &q, list[i].first, list[i].step };
        struct moe_packed m;
        int bad = 0;

        tap_ok(moe_repack_of(&from, list[i].rows, &m), "picked rows have a form");
        golden_qmat_kernel(&m, &from, got);
        for (uint64_t r = 0; r < m.rows; r++)
            for (uint64_t k = 0; k < COLS; k++)
                bad += got[r * COLS + k] !=
                    whole[(list[i].first + r * list[i].step) * COLS + k];
        tap_is_int(bad, 0, "every %d-th row from %d: the kernel sees them", (int)list[i].step,
            (int)list[i].first);
    }
}

int
main(void)
{
    forms();
    refused();
    picked();
    return tap_done();
}
