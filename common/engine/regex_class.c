/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the contents of classes: PCRE2's own properties and what Unicode 15 and
 * 16 added to them. U+1171E, which became Mc in Unicode 15, stays in \p{Mn}.
 */
#include <stdint.h>
#include <string.h>

#include "common/engine/regex_class.h"
#include "common/engine/unicode.h"

/* White space as Unicode has it; PCRE2's \s has U+180E as well. */
static const char SPACE[] =
    "\\x{9}-\\x{d} \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
static const char NOT_SPACE[] =
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"
    "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"
    "\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";

/*
 * What \w has besides: letters in circles and squares, and outside of classes
 * also the numbers of Latin-1 that are no digits.
 */
static const char WORD_LATIN[] = "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";
static const char WORD_SYMBOLS[] =
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}";

/* Categories that only grew: adding their new members makes them right. */
static const char CATEGORIES[] =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So"
    " Z Zs Zl Zp Cc Cf Co ";

/* Append range u to the open range [*from, *to], or write that and open u. */
static void
extend(struct moe_buf *out, uint32_t *from, uint32_t *to, uint32_t u_from, uint32_t u_to)
{
    if (*from <= *to && u_from == *to + 1) {
        *to = u_to;
        return;
    }
    if (*from <= *to)
        moe_buf_fmt(out, "\\x{%x}-\\x{%x}", (unsigned)*from, (unsigned)*to);
    *from = u_from;
    *to = u_to;
}

/* Members of a general category, for the inside of a class. */
static void
category(struct moe_buf *out, const char *name)
{
    uint32_t from = 1, to = 0;

    moe_buf_fmt(out, "\\p{%s}", name);
    for (size_t i = 0; i < moe_unicode_newer_n; i++) {
        const struct moe_unicode_newer *u = &moe_unicode_newer[i];

        if (memcmp(u->category, name, strlen(name)) == 0)
            extend(out, &from, &to, u->from, u->to);
    }
    extend(out, &from, &to, UINT32_MAX, UINT32_MAX);
}

static void
script(struct moe_buf *out, const char *name)
{
    uint32_t from = 1, to = 0;

    moe_buf_fmt(out, "\\p{sc:%s}", name);
    for (size_t i = 0; i < moe_unicode_script_n; i++) {
        const struct moe_unicode_script *u = &moe_unicode_script[i];

        if (strcmp(u->script, name) == 0)
            extend(out, &from, &to, u->from, u->to);
    }
    extend(out, &from, &to, UINT32_MAX, UINT32_MAX);
}

bool
moe_regex_class_property(struct moe_buf *out, const char *name)
{
    char listed[40];
    size_t n = strlen(name);

    if (n == 0 || n + 3 > sizeof(listed))
        return false;
    listed[0] = ' ';
    memcpy(listed + 1, name, n);
    listed[n + 1] = ' ';
    listed[n + 2] = '\0';
    if (strstr(CATEGORIES, listed) != NULL)
        category(out, name);
    else if (n > 2 && name[0] >= 'A' && name[0] <= 'Z' && strcmp(name, "Any") != 0)
        script(out, name);
    else
        return false;
    return true;
}

void
moe_regex_class_digit(struct moe_buf *out)
{
    category(out, "Nd");
}

void
moe_regex_class_space(struct moe_buf *out, bool complement)
{
    moe_buf_str(out, complement ? NOT_SPACE : SPACE);
}

void
moe_regex_class_word(struct moe_buf *out, bool inside)
{
    static const char *const parts[] = { "L", "M", "Nd", "Nl", "Pc" };

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        category(out, parts[i]);
    if (!inside)
        moe_buf_str(out, WORD_LATIN);
    moe_buf_str(out, WORD_SYMBOLS);
}
