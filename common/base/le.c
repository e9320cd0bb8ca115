/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of bytes on disk. */
#include "common/base/le.h"

static void
put(unsigned char *p, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t
get(const unsigned char *p, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void
moe_le_put16(unsigned char *p, uint16_t v)
{
    put(p, v, 2);
}

void
moe_le_put32(unsigned char *p, uint32_t v)
{
    put(p, v, 4);
}

void
moe_le_put64(unsigned char *p, uint64_t v)
{
    put(p, v, 8);
}

uint16_t
moe_le_get16(const unsigned char *p)
{
    return (uint16_t)get(p, 2);
}

uint32_t
moe_le_get32(const unsigned char *p)
{
    return (uint32_t)get(p, 4);
}

uint64_t
moe_le_get64(const unsigned char *p)
{
    return get(p, 8);
}
