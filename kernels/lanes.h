/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one order of a sum (kernels.h): 16 lanes, then a tree. The reference
 * kernels' form of it; vec_avx2.h and vec_avx512.h have the vectors'.
 */
#ifndef MOE_KERNELS_LANES_H
#define MOE_KERNELS_LANES_H

#define K_LANES 16

/* Lane l with l + 8, then + 4, + 2, + 1. */
static inline float
k_lanes_sum(const float lane[static K_LANES])
{
    float t[K_LANES / 2];

    for (int i = 0; i < 8; i++)
        t[i] = lane[i] + lane[i + 8];
    for (int w = 4; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            t[i] += t[i + w];
    return t[0];
}

#endif
