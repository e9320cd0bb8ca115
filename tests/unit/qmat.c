/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded matrices: plain ones, and every rule of the checks broken once. */
#include <math.h>
#include <string.h>

#include "common/formats/ggml.h"
#include "common/formats/qmat.h"
#include "tests/tap.h"

static unsigned char bytes[4096];

/* A sound matrix of encoding enc, 16 x 64. */
static struct moe_qmat
sound(enum moe_enc enc)
{
    struct moe_qmat m = { .enc = enc, .rows = 16, .cols = 64, .bits = 4, .group = 32,
        .symmetric = true, .scale_dtype = MOE_BF16, .data = bytes, .scale = bytes,
        .data_len = 512, .scale_len = 64 };

    switch (enc) {
    case MOE_ENC_PLAIN:
        m.dtype = MOE_BF16;
        m.data_len = 2048;
        break;
    case MOE_ENC_CT_INT8:
        m.data_len = 1024;
        break;
    case MOE_ENC_CT_FP8: case MOE_ENC_DS_FP8:
        m.data_len = 1024;
        m.block_rows = 8;
        m.scale_len = 2 * 2 * 2;
        break;
    case MOE_ENC_CT_MXFP4: case MOE_ENC_OSS_MXFP4:
        m.scale_dtype = MOE_U8;
        m.scale_len = 32;
        break;
    case MOE_ENC_CT_MXFP8:
        m.data_len = 1024;
        m.scale_dtype = MOE_F8_E8M0;
        m.scale_len = 32;
        break;
    case MOE_ENC_CT_NVFP4:
        m.group = 16;
        m.scale_dtype = MOE_F8_E4M3;
        m.global = 1;
        break;
    case MOE_ENC_GPTQ: case MOE_ENC_AWQ:
        m.scale_dtype = MOE_F16;
        m.zero = bytes;
        m.zero_len = 2 * 8;
        break;
    case MOE_ENC_GGML:
        m.ggml = MOE_GGML_Q8_0;
        m.data_len = 32 * 34;
        break;
    default:
        break;
    }
    return m;
}

static void
verdict(const struct moe_qmat *m, int code, const char *text)
{
    struct moe_err e = { 0, "" };
    int rc = moe_qmat_check(m, "w", &e);

    tap_ok(rc == code && strstr(e.text, text) != NULL && strncmp(e.text, "w: ", 3) == 0,
        "%s: %s", moe_qmat_enc_name(m->enc), text);
    if (rc != code || strstr(e.text, text) == NULL)
        tap_diag("got %d: %s", rc, e.text);
}

/* What is true for each encoding. */
static void
each(enum moe_enc enc)
{
    struct moe_qmat m = sound(enc);
    struct moe_err e = { 0, "" };

    if (!tap_is_int(moe_qmat_check(&m, "w", &e), 0, "%s: sound", moe_qmat_enc_name(enc)))
        tap_diag("%s", e.text);
    m.data_len--;
    verdict(&m, MOE_EFORMAT, "bytes, not");
    m.data_len += 2;
    verdict(&m, MOE_EFORMAT, "bytes, not");
    m = sound(enc);
    m.data = NULL;
    verdict(&m, MOE_EFORMAT, "is missing");
    m = sound(enc);
    m.rows = 0;
    verdict(&m, MOE_EFORMAT, "empty matrix");
    m.rows = (uint64_t)1 << 60;
    verdict(&m, MOE_EFORMAT, "overflows");
    if (enc == MOE_ENC_PLAIN || enc == MOE_ENC_GGML)
        return;
    m = sound(enc);
    m.scale = NULL;
    verdict(&m, MOE_EFORMAT, "scale is missing");
    m = sound(enc);
    m.scale_len++;
    verdict(&m, MOE_EFORMAT, "bytes, not");
}

static void
scales(void)
{
    static const float bad[] = { 1, 1, NAN, 1 };
    static const unsigned char e8m0[] = { 0, 255 };
    struct moe_qmat m = sound(MOE_ENC_CT_PACK);

    m.rows = 2;
    m.data_len = 64;
    m.scale_dtype = MOE_F32;
    m.scale = bad;
    m.scale_len = sizeof(bad);
    verdict(&m, MOE_EFORMAT, "scale [1, 0] is not a finite number");
    m.scale_dtype = MOE_I32;
    verdict(&m, MOE_EUNSUP, "scales of I32");
    m = sound(MOE_ENC_CT_MXFP4);
    m.rows = 1;
    m.data_len = 32;
    m.scale = e8m0;
    m.scale_len = 2;
    verdict(&m, MOE_EFORMAT, "scale [0, 1] is not");
    m.scale_dtype = MOE_BF16;
    verdict(&m, MOE_EFORMAT, "scales of BF16");
}

static void
own_rules(void)
{
    struct moe_qmat m = sound(MOE_ENC_PLAIN);
    int32_t index[64] = { 0 };

    m.dtype = MOE_I32;
    verdict(&m, MOE_EUNSUP, "a matrix of I32");
    m.dtype = MOE_F4;
    m.cols = 63;
    verdict(&m, MOE_EFORMAT, "not whole bytes");
    m = sound(MOE_ENC_CT_PACK);
    m.group = 48;
    verdict(&m, MOE_EFORMAT, "groups of 48 do not divide rows of 64");
    m = sound(MOE_ENC_CT_PACK);
    m.bits = 9;
    verdict(&m, MOE_EFORMAT, "codes of 9 bits");
    m = sound(MOE_ENC_CT_PACK);
    m.symmetric = false;
    verdict(&m, MOE_EFORMAT, "weight_zero_point is missing");
    m = sound(MOE_ENC_CT_FP8);
    m.block_rows = 0;
    verdict(&m, MOE_EFORMAT, "columns without rows");
    m = sound(MOE_ENC_CT_NVFP4);
    m.group = 32;
    verdict(&m, MOE_EFORMAT, "groups of 16");
    m = sound(MOE_ENC_CT_NVFP4);
    m.global = 0;
    verdict(&m, MOE_EFORMAT, "weight_global_scale is zero");
    m = sound(MOE_ENC_GPTQ);
    m.bits = 3;
    verdict(&m, MOE_EUNSUP, "3 bits");
    m = sound(MOE_ENC_GPTQ);
    m.rows = 12;
    verdict(&m, MOE_EFORMAT, "do not fill whole words");
    m = sound(MOE_ENC_GPTQ);
    m.g_idx = index;
    m.g_idx_len = sizeof(index);
    index[63] = 2;
    verdict(&m, MOE_EFORMAT, "g_idx [63] is 2 of 2 groups");
    index[63] = -1;
    verdict(&m, MOE_EFORMAT, "g_idx [63] is -1");
    m.g_idx_len = 4;
    verdict(&m, MOE_EFORMAT, "its g_idx has 4 bytes");
    m = sound(MOE_ENC_AWQ);
    m.bits = 8;
    verdict(&m, MOE_EUNSUP, "8 bits");
    m = sound(MOE_ENC_GGML);
    m.ggml = 99;
    verdict(&m, MOE_EUNSUP, "type 99 (unknown)");
    m.ggml = 16;
    verdict(&m, MOE_EUNSUP, "(IQ2_XXS) is not decoded");
    m.ggml = MOE_GGML_Q4_K;
    verdict(&m, MOE_EFORMAT, "not whole blocks of Q4_K");
    m.enc = MOE_ENC_N;
    verdict(&m, MOE_EUNSUP, "is not known");
}

static void
plain(void)
{
    static const uint16_t w[] = { 0x3f80, 0xbf80, 0x4000, 0x0000 };
    static const float want[] = { 1, -1, 2, 0 };
    struct moe_qmat m = { .enc = MOE_ENC_PLAIN, .dtype = MOE_BF16, .rows = 2, .cols = 2,
        .data = w, .data_len = sizeof(w) };
    struct moe_err e = { 0, "" };
    float out[4];

    tap_is_int(moe_qmat_check(&m, "w", &e), 0, "plain BF16");
    moe_qmat_rows(&m, 0, 2, out);
    tap_is_mem(out, want, sizeof(want), "both rows");
    moe_qmat_rows(&m, 1, 1, out);
    tap_is_mem(out, want + 2, sizeof(want) / 2, "the second row");
    m.dtype = MOE_F4;
    m.cols = 4;
    m.data = "\x21\x00\x0f\x70";
    m.data_len = 4;
    tap_is_int(moe_qmat_check(&m, "w", &e), 0, "plain F4");
    moe_qmat_rows(&m, 1, 1, out);
    tap_ok(out[0] == -6 && out[1] == 0 && out[2] == 0 && out[3] == 6, "its second row");
}

int
main(void)
{
    for (int i = 0; i < MOE_ENC_N; i++)
        each((enum moe_enc)i);
    scales();
    own_rules();
    plain();
    return tap_done();
}
