/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON into a moe_buf, commas by themselves, on one line (JSON Lines
 * add the newline). Reals are printed with the fewest digits that read back
 * the same; NaN and infinities as null. Text that is not UTF-8 gets \udcXX
 * escapes for the bad bytes (Python's surrogateescape), so that file names
 * survive.
 */
#ifndef MOE_BASE_JSONW_H
#define MOE_BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"

struct moe_jsonw { struct moe_buf *b; bool comma; };

void moe_jsonw_open(struct moe_jsonw *w, char bracket);     /* '{' or '[' */
void moe_jsonw_close(struct moe_jsonw *w, char bracket);    /* '}' or ']' */
void moe_jsonw_key(struct moe_jsonw *w, const char *key);
void moe_jsonw_str(struct moe_jsonw *w, const char *s, size_t n);
void moe_jsonw_int(struct moe_jsonw *w, int64_t v);
void moe_jsonw_uint(struct moe_jsonw *w, uint64_t v);
void moe_jsonw_real(struct moe_jsonw *w, double v);
void moe_jsonw_bool(struct moe_jsonw *w, bool v);
void moe_jsonw_null(struct moe_jsonw *w);

#endif
