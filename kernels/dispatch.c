/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of variants: one table of rows, run in order, ref first, once
 * for each tier. This file and cpu.c are built without ISA flags, so that they
 * run on every processor. The only place of the library that reads the
 * environment: MOE_CPU=ref|avx2|avx512 lowers the tier.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/kernels_init.h"

enum tier { REF, AVX2, AVX512, TIERS };

static const struct {
    const char *name;
    unsigned need;
} tiers[TIERS] = {
    [REF] = { "ref", 0 },
    [AVX2] = { "avx2", MOE_CPU_AVX2 },
    [AVX512] = { "avx512", MOE_CPU_AVX512 },
};

/* The lowest tier a variant belongs to, and what it needs beside the tier's own. */
static const struct {
    enum tier tier;
    unsigned need;
    void (*init)(struct moe_kernels *k);
} rows[] = {
    { REF, 0, k_axpy_ref_init },
    { AVX2, 0, k_axpy_avx2_init },
    { AVX512, 0, k_axpy_avx512_init },
    { REF, 0, k_chains_ref_init },
    { AVX2, 0, k_chains_avx2_init },
    { AVX512, 0, k_chains_avx512_init },
    { REF, 0, k_convert_ref_init },
    { AVX2, 0, k_convert_avx2_init },
    { AVX512, 0, k_convert_avx512_init },
    { REF, 0, k_crc32c_ref_init },
    { AVX2, MOE_CPU_CRC, k_crc32c_sse42_init },
    { REF, 0, k_dot_ref_init },
    { AVX2, 0, k_dot_avx2_init },
    { AVX512, 0, k_dot_avx512_init },
    { REF, 0, k_ema_ref_init },
    { AVX2, 0, k_ema_avx2_init },
    { AVX512, 0, k_ema_avx512_init },
    { REF, 0, k_errsum_ref_init },
    { AVX2, 0, k_errsum_avx2_init },
    { AVX512, 0, k_errsum_avx512_init },
    { REF, 0, k_gemm_ref_init },
    { AVX2, 0, k_gemm_avx2_init },
    { AVX512, 0, k_gemm_avx512_init },
    { REF, 0, k_gemm_packed_ref_init },
    { AVX2, 0, k_gemm_packed_avx2_init },
    { AVX512, 0, k_gemm_packed_avx512_init },
    { REF, 0, k_gemm_packedq_ref_init },
    { AVX2, 0, k_gemm_packedq_avx2_init },
    { AVX512, 0, k_gemm_packedq_avx512_init },
    { REF, 0, k_grid_ref_init },
    { AVX2, 0, k_grid_avx2_init },
    { AVX512, 0, k_grid_avx512_init },
    { REF, 0, k_groupq_ref_init },
    { AVX2, 0, k_groupq_avx2_init },
    { AVX512, 0, k_groupq_avx512_init },
    { REF, 0, k_quant_act_ref_init },
    { AVX2, 0, k_quant_act_avx2_init },
    { AVX512, 0, k_quant_act_avx512_init },
    { REF, 0, k_rmsnorm_ref_init },
    { AVX2, 0, k_rmsnorm_avx2_init },
    { AVX512, 0, k_rmsnorm_avx512_init },
    { REF, 0, k_rope_ref_init },
    { AVX2, 0, k_rope_avx2_init },
    { AVX512, 0, k_rope_avx512_init },
    { AVX2, MOE_CPU_SHA, k_sha256_shani_init },
    { REF, 0, k_silu_ref_init },
    { AVX2, 0, k_silu_avx2_init },
    { AVX512, 0, k_silu_avx512_init },
    { REF, 0, k_softmax_ref_init },
    { AVX2, 0, k_softmax_avx2_init },
    { AVX512, 0, k_softmax_avx512_init },
    { REF, 0, k_topk_ref_init },
    { AVX2, 0, k_topk_avx2_init },
    { AVX512, 0, k_topk_avx512_init },
    { REF, 0, k_xor_ref_init },
    { AVX2, 0, k_xor_avx2_init },
    { AVX512, 0, k_xor_avx512_init },
    { REF, 0, k_wsum_ref_init },
    { AVX2, 0, k_wsum_avx2_init },
    { AVX512, 0, k_wsum_avx512_init },
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct moe_kernels tables[TIERS];
static const struct moe_kernels *chosen;

static bool
allows(unsigned features, unsigned need)
{
    return (features & need) == need;
}

static void
fill(void)
{
    unsigned features = moe_cpu_features();
    const char *limit = getenv("MOE_CPU");

    for (int t = REF; t < TIERS; t++) {
        if (!allows(features, tiers[t].need))
            break;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if ((int)rows[i].tier <= t && allows(features, rows[i].need))
                rows[i].init(&tables[t]);
        tables[t].tier = tiers[t].name;
        chosen = &tables[t];
    }
    for (int t = REF; limit != NULL && t < TIERS; t++)
        if (strcmp(limit, tiers[t].name) == 0 && tables[t].tier != NULL)
            chosen = &tables[t];
}

const struct moe_kernels *
moe_kernels(void)
{
    pthread_once(&once, fill);
    return chosen;
}

const struct moe_kernels *
moe_kernels_tier(const char *tier)
{
    pthread_once(&once, fill);
    for (int t = REF; t < TIERS; t++)
        if (strcmp(tier, tiers[t].name) == 0)
            return tables[t].tier != NULL ? &tables[t] : NULL;
    return NULL;
}
