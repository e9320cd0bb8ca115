/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that look random and are the same everywhere: SplitMix64 (Steele, Lea
 * and Flood, OOPSLA 2014). Not for secrets.
 */
#ifndef MOE_BASE_RANDOM_H
#define MOE_BASE_RANDOM_H

#include <stdint.h>

/* Output i of the sequence that a seed begins, and the same as a number in [0, 1). */
uint64_t moe_random_bits(uint64_t seed, uint64_t i);
double moe_random_uniform(uint64_t seed, uint64_t i);

#endif
