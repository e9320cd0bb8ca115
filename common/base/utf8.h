/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, no code point
 * above U+10FFFF. Text is pointer and length; NUL is a character like others.
 */
#ifndef MOE_BASE_UTF8_H
#define MOE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the character at p (1 to 4), or 0 if there is none within n bytes. */
size_t moe_utf8_len(const char *p, size_t n);

/* As moe_utf8_len(), and *c is the code point when the length is not 0. */
size_t moe_utf8_get(const char *p, size_t n, uint32_t *c);

/* Write code point c to p (4 bytes of room); returns its length, 0 if c is none. */
size_t moe_utf8_put(char *p, uint32_t c);

/* Whether all n bytes are whole characters. */
bool moe_utf8_valid(const char *p, size_t n);

/*
 * Length of the bad part at p, where moe_utf8_len() is 0 and n > 0: what one
 * U+FFFD stands for (the "maximal subpart" of Unicode 16, section 3.9). *cut
 * tells whether it is a character cut short by the end of the text.
 */
size_t moe_utf8_bad(const char *p, size_t n, bool *cut);

/*
 * What a terminal may see of the text at p (n > 0): the next character itself,
 * or its first byte as \xNN if it is no character, a control character or one
 * that turns the direction of writing, so that a hostile name can neither forge
 * a line nor hide one. *used bytes have been taken; returns the bytes in dst.
 */
size_t moe_utf8_show(char dst[static 4], const char *p, size_t n, size_t *used);

#endif
