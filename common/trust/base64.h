/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648), read strictly: padded, no blanks, no bits left over; the
 * URL-safe alphabet is read too.
 */
#ifndef MOE_TRUST_BASE64_H
#define MOE_TRUST_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"

/* Add the bytes that n characters stand for; false if they are not base64 or without memory. */
bool moe_base64_get(struct moe_buf *b, const char *p, size_t n);

/* Add the characters for n bytes. */
void moe_base64_put(struct moe_buf *b, const void *p, size_t n);

#endif
