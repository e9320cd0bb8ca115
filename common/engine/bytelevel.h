/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alphabet of byte-level vocabularies: each byte has a printable character
 * of its own, so that tokens are text. Bytes 33-126, 161-172 and 174-255 are
 * themselves; the other 68, in order, are U+0100 to U+0143.
 */
#ifndef MOE_ENGINE_BYTELEVEL_H
#define MOE_ENGINE_BYTELEVEL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

/* Append the characters of n bytes. */
void moe_bytelevel_map(const char *p, size_t n, struct moe_buf *out);

/*
 * Append the bytes of UTF-8 text p; when a character is not of the alphabet,
 * the text itself (as the reference library does).
 */
void moe_bytelevel_unmap(const char *p, size_t n, struct moe_buf *out);

#endif
