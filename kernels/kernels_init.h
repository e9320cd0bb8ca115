/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The init function of every variant file: it puts its functions into the
 * table. Named k_STEM_ISA_init after the file STEM_ISA.c; private to dispatch,
 * which has a row for each.
 */
#ifndef MOE_KERNELS_INIT_H
#define MOE_KERNELS_INIT_H

#include "kernels/kernels.h"

void k_axpy_ref_init(struct moe_kernels *k);
void k_axpy_avx2_init(struct moe_kernels *k);
void k_axpy_avx512_init(struct moe_kernels *k);
void k_chains_ref_init(struct moe_kernels *k);
void k_chains_avx2_init(struct moe_kernels *k);
void k_chains_avx512_init(struct moe_kernels *k);
void k_convert_ref_init(struct moe_kernels *k);
void k_convert_avx2_init(struct moe_kernels *k);
void k_convert_avx512_init(struct moe_kernels *k);
void k_crc32c_ref_init(struct moe_kernels *k);
void k_crc32c_sse42_init(struct moe_kernels *k);
void k_dot_ref_init(struct moe_kernels *k);
void k_dot_avx2_init(struct moe_kernels *k);
void k_dot_avx512_init(struct moe_kernels *k);
void k_ema_ref_init(struct moe_kernels *k);
void k_ema_avx2_init(struct moe_kernels *k);
void k_ema_avx512_init(struct moe_kernels *k);
void k_errsum_ref_init(struct moe_kernels *k);
void k_errsum_avx2_init(struct moe_kernels *k);
void k_errsum_avx512_init(struct moe_kernels *k);
void k_gemm_ref_init(struct moe_kernels *k);
void k_gemm_avx2_init(struct moe_kernels *k);
void k_gemm_avx512_init(struct moe_kernels *k);
void k_gemm_packed_ref_init(struct moe_kernels *k);
void k_gemm_packed_avx2_init(struct moe_kernels *k);
void k_gemm_packed_avx512_init(struct moe_kernels *k);
void k_gemm_packedq_ref_init(struct moe_kernels *k);
void k_gemm_packedq_avx2_init(struct moe_kernels *k);
void k_gemm_packedq_avx512_init(struct moe_kernels *k);
void k_grid_ref_init(struct moe_kernels *k);
void k_grid_avx2_init(struct moe_kernels *k);
void k_grid_avx512_init(struct moe_kernels *k);
void k_groupq_ref_init(struct moe_kernels *k);
void k_groupq_avx2_init(struct moe_kernels *k);
void k_groupq_avx512_init(struct moe_kernels *k);
void k_quant_act_ref_init(struct moe_kernels *k);
void k_quant_act_avx2_init(struct moe_kernels *k);
void k_quant_act_avx512_init(struct moe_kernels *k);
void k_rmsnorm_ref_init(struct moe_kernels *k);
void k_rmsnorm_avx2_init(struct moe_kernels *k);
void k_rmsnorm_avx512_init(struct moe_kernels *k);
void k_rope_ref_init(struct moe_kernels *k);
void k_rope_avx2_init(struct moe_kernels *k);
void k_rope_avx512_init(struct moe_kernels *k);
void k_sha256_shani_init(struct moe_kernels *k);
void k_silu_ref_init(struct moe_kernels *k);
void k_silu_avx2_init(struct moe_kernels *k);
void k_silu_avx512_init(struct moe_kernels *k);
void k_softmax_ref_init(struct moe_kernels *k);
void k_softmax_avx2_init(struct moe_kernels *k);
void k_softmax_avx512_init(struct moe_kernels *k);
void k_topk_ref_init(struct moe_kernels *k);
void k_topk_avx2_init(struct moe_kernels *k);
void k_topk_avx512_init(struct moe_kernels *k);
void k_wsum_ref_init(struct moe_kernels *k);
void k_wsum_avx2_init(struct moe_kernels *k);
void k_wsum_avx512_init(struct moe_kernels *k);
void k_xor_ref_init(struct moe_kernels *k);
void k_xor_avx2_init(struct moe_kernels *k);
void k_xor_avx512_init(struct moe_kernels *k);

#endif
