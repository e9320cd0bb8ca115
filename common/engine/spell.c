/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the bytes of characters: ranges of code points cut into products of
 * ranges of bytes or of hexadecimal digits.
 */
#include "common/base/utf8.h"
#include "common/engine/spell.h"

/* A product of ranges in `base` places of a number, most significant first. */
struct places {
    unsigned n, bits;       /* places, bits of one */
    uint32_t lo, hi;
};

/*
 * Cut p into products in which every place has a range of its own and call emit
 * for each: a product is lo..hi where below some place all digits are full and
 * above it lo and hi agree.
 */
typedef void emit_fn(void *ctx, struct places p);

static void
cut(struct places p, emit_fn *emit, void *ctx)
{
    while (p.lo <= p.hi) {
        uint32_t to = p.lo;

        /* The largest product that begins at lo: full low places, then a range in the next. */
        for (unsigned k = 0; k < p.n; k++) {
            uint32_t unit = UINT32_C(1) << (k * p.bits), all = (unit << p.bits) - 1;
            uint32_t last, full = unit - 1;

            if ((p.lo & full) != 0 || p.lo + full > p.hi)
                break;
            /* Place k from its digit in lo as far as hi allows. */
            last = (p.lo | all) & ~full;
            while ((last | full) > p.hi)
                last -= unit;
            to = last | full;
        }
        emit(ctx, (struct places){ p.n, p.bits, p.lo, to });
        if (to == p.hi)
            return;
        p.lo = to + 1;
    }
}

struct target {
    struct moe_grammar *g;
    uint32_t from, to;
};

/* ---- UTF-8 ----------------------------------------------------------------------- */

/* p has 6 bits a place; the first one takes what is left of the lead byte. */
static void
emit_utf8(void *ctx, struct places p)
{
    static const uint8_t lead[5] = { 0, 0x00, 0xC0, 0xE0, 0xF0 };
    const struct target *t = ctx;
    uint32_t at = t->from;

    for (unsigned k = p.n; k-- > 0;) {
        uint32_t mask = k + 1 == p.n ? UINT32_MAX : 0x3F;
        uint8_t mark = k + 1 == p.n ? lead[p.n] : 0x80;
        uint32_t to = k == 0 ? t->to : moe_grammar_state(t->g);

        moe_grammar_bytes(t->g, at, (uint8_t)(mark | (p.lo >> (6 * k) & mask)),
            (uint8_t)(mark | (p.hi >> (6 * k) & mask)), to);
        at = to;
    }
}

static void
utf8_range(struct moe_grammar *g, uint32_t from, uint32_t lo, uint32_t hi, uint32_t to)
{
    static const uint32_t last[5] = { 0, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF };
    struct target t = { g, from, to };

    for (unsigned n = 1; n <= 4 && lo <= hi; n++) {
        uint32_t end = hi < last[n] ? hi : last[n];

        if (lo > end)
            continue;
        if (n == 1)
            moe_grammar_bytes(g, from, (uint8_t)lo, (uint8_t)end, to);
        else
            cut((struct places){ n, 6, lo, end }, emit_utf8, &t);
        lo = end + 1;
    }
}

void
moe_spell_utf8(struct moe_grammar *g, uint32_t from, const struct moe_codeset *s, uint32_t to)
{
    for (size_t i = 0; i < s->n; i++)
        utf8_range(g, from, s->r[i].lo, s->r[i].hi, to);
}

/* ---- JSON ------------------------------------------------------------------------ */

/* Edges over the hexadecimal digits lo..hi in both cases. */
static void
digits(struct moe_grammar *g, uint32_t from, uint32_t lo, uint32_t hi, uint32_t to)
{
    if (lo <= 9)
        moe_grammar_bytes(g, from, (uint8_t)('0' + lo), (uint8_t)('0' + (hi < 9 ? hi : 9)), to);
    if (hi >= 10) {
        uint32_t first = lo > 10 ? lo - 10 : 0;

        moe_grammar_bytes(g, from, (uint8_t)('a' + first), (uint8_t)('a' + hi - 10), to);
        moe_grammar_bytes(g, from, (uint8_t)('A' + first), (uint8_t)('A' + hi - 10), to);
    }
}

static void
emit_hex(void *ctx, struct places p)
{
    const struct target *t = ctx;
    uint32_t at = t->from;

    for (unsigned k = p.n; k-- > 0;) {
        uint32_t to = k == 0 ? t->to : moe_grammar_state(t->g);

        digits(t->g, at, p.lo >> (4 * k) & 15, p.hi >> (4 * k) & 15, to);
        at = to;
    }
}

/* \uXXXX after the backslash. */
static void
hex_range(struct moe_grammar *g, uint32_t slash, uint32_t lo, uint32_t hi, uint32_t to)
{
    struct target t = { g, moe_grammar_text(g, slash, "u", 1), to };

    cut((struct places){ 4, 4, lo, hi }, emit_hex, &t);
}

/* Code points above U+FFFF as two surrogates. */
static void
surrogates(struct moe_grammar *g, uint32_t slash, uint32_t lo, uint32_t hi, uint32_t to)
{
    while (lo <= hi) {
        uint32_t a = (lo - 0x10000) >> 10, b = (hi - 0x10000) >> 10, mid = moe_grammar_state(g);
        bool whole = (lo & 0x3FF) == 0 && b > a;
        uint32_t last = whole ? ((hi & 0x3FF) == 0x3FF ? b : b - 1) : a;
        uint32_t from = lo & 0x3FF, end = whole || b > a ? 0x3FF : hi & 0x3FF;

        hex_range(g, slash, 0xD800 + a, 0xD800 + last, mid);
        hex_range(g, moe_grammar_text(g, mid, "\\", 1), 0xDC00 + from, 0xDC00 + end, to);
        lo = 0x10000 + (last << 10) + end + 1;
    }
}

/* What may stand in a string as it is: no control character, quote or backslash. */
static void
themselves(struct moe_grammar *g, uint32_t from, struct moe_codeset_range r, uint32_t to)
{
    static const struct moe_codeset_range plain[3] = { { 0x20, '"' - 1 }, { '"' + 1, '\\' - 1 },
        { '\\' + 1, MOE_CODESET_LAST } };

    for (int i = 0; i < 3; i++) {
        uint32_t lo = r.lo > plain[i].lo ? r.lo : plain[i].lo;
        uint32_t hi = r.hi < plain[i].hi ? r.hi : plain[i].hi;

        if (lo <= hi)
            utf8_range(g, from, lo, hi, to);
    }
}

void
moe_spell_json(struct moe_grammar *g, uint32_t from, const struct moe_codeset *s, uint32_t to)
{
    static const char escapes[] = "\"\"\\\\//\bb\ff\nn\rr\tt";
    uint32_t slash = moe_grammar_text(g, from, "\\", 1);

    for (size_t i = 0; i < s->n; i++) {
        struct moe_codeset_range r = s->r[i];

        themselves(g, from, r, to);
        if (r.lo <= 0xFFFF)
            hex_range(g, slash, r.lo, r.hi < 0xFFFF ? r.hi : 0xFFFF, to);
        if (r.hi > 0xFFFF)
            surrogates(g, slash, r.lo > 0xFFFF ? r.lo : 0x10000, r.hi, to);
    }
    for (const char *p = escapes; *p != '\0'; p += 2) {
        if (moe_codeset_has(s, (uint8_t)p[0]))
            moe_grammar_bytes(g, slash, (uint8_t)p[1], (uint8_t)p[1], to);
    }
}

uint32_t
moe_spell_string(struct moe_grammar *g, uint32_t from, const char *p, size_t n)
{
    uint32_t at = moe_grammar_text(g, from, "\"", 1);

    for (size_t i = 0, len; i < n; i += len) {
        struct moe_codeset_range r;
        struct moe_codeset one = { &r, 1, 1 };
        uint32_t to = moe_grammar_state(g);

        if ((len = moe_utf8_get(p + i, n - i, &r.lo)) == 0)
            return 0;
        r.hi = r.lo;
        moe_spell_json(g, at, &one, to);
        at = to;
    }
    return moe_grammar_text(g, at, "\"", 1);
}
