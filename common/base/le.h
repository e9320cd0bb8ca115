/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian whole numbers in memory of any alignment. Cannot fail. */
#ifndef MOE_BASE_LE_H
#define MOE_BASE_LE_H

#include <stdint.h>

void moe_le_put16(unsigned char *p, uint16_t v);
void moe_le_put32(unsigned char *p, uint32_t v);
void moe_le_put64(unsigned char *p, uint64_t v);
uint16_t moe_le_get16(const unsigned char *p);
uint32_t moe_le_get32(const unsigned char *p);
uint64_t moe_le_get64(const unsigned char *p);

#endif
