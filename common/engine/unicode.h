/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the tables of PCRE2 (Unicode 14 on Debian 12) and utf8proc differ from
 * those of the reference tokenizers. Constant data in ascending order.
 */
#ifndef MOE_ENGINE_UNICODE_H
#define MOE_ENGINE_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* General categories that Unicode 15 and 16 gave or changed ("Lo"). */
struct moe_unicode_newer { uint32_t from, to; char category[3]; };

extern const struct moe_unicode_newer moe_unicode_newer[];
extern const size_t moe_unicode_newer_n;

/* The scripts of the new ones, by their long names. */
struct moe_unicode_script { uint32_t from, to; const char *script; };

extern const struct moe_unicode_script moe_unicode_script[];
extern const size_t moe_unicode_script_n;

/* Characters whose upper case is longer than one; title: at the start of a word. UTF-8. */
struct moe_unicode_upper { uint32_t c; const char *upper, *title; };

extern const struct moe_unicode_upper moe_unicode_upper[];
extern const size_t moe_unicode_upper_n;

/*
 * Code points younger than Unicode 9 that a newer normaliser reorders, takes
 * apart or puts together, and U+11A7, which utf8proc drops after a Hangul
 * syllable: the reference leaves them alone.
 */
struct moe_unicode_inert { uint32_t from, to; };

extern const struct moe_unicode_inert moe_unicode_inert[];
extern const size_t moe_unicode_inert_n;

#endif
