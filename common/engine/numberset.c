/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the automata of numbers. What has been read is summed up in a small
 * record: where in the number it is, how its digits compare with those of each
 * bound so far, what is left over on division. Records are met one by one from
 * the first, as states.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/numberset.h"

#define MAX_REST 100000         /* a multiple, as a whole number */
#define SLOTS 65536

int
moe_numberset_decimal(const char *s, size_t n, struct moe_decimal *out, struct moe_err *e)
{
    size_t i = 0, digits = 0;
    bool point = false;
    long exponent = 0;
    int sign = 1;

    *out = (struct moe_decimal){ .point = 0 };
    if (n > 0 && s[0] == '-') {
        out->negative = true;
        i++;
    }
    for (; i < n && (s[i] == '.' || (s[i] >= '0' && s[i] <= '9')); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        digits++;
        out->point += !point;
        if (out->n == 0 && s[i] == '0') {
            out->point--;
            continue;
        }
        if (out->n == MOE_NUMBERSET_MAX_DIGITS)
            return moe_err_set(e, MOE_ELIMIT, "a number of too many digits");
        out->d[out->n++] = (uint8_t)(s[i] - '0');
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < n && (s[i] == '-' || s[i] == '+'))
            sign = s[i++] == '-' ? -1 : 1;
        for (; i < n && s[i] >= '0' && s[i] <= '9' && exponent < 100000; i++)
            exponent = 10 * exponent + (s[i] - '0');
    }
    if (digits == 0 || i < n)
        return moe_err_set(e, MOE_EFORMAT, "a number that is none");
    while (out->n > 0 && out->d[out->n - 1] == 0)
        out->n--;
    out->point = out->n == 0 ? 0 : out->point + sign * (int)exponent;
    out->negative = out->negative && out->n > 0;
    if (out->point > MOE_NUMBERSET_MAX_DIGITS || out->point < -MOE_NUMBERSET_MAX_DIGITS)
        return moe_err_set(e, MOE_ELIMIT, "a number of too many digits");
    return 0;
}

int
moe_numberset_bound(struct moe_numberset *s, enum moe_bound kind, const struct moe_decimal *value,
    struct moe_err *e)
{
    if (s->n_bounds == MOE_NUMBERSET_MAX_BOUNDS)
        return moe_err_set(e, MOE_ELIMIT, "more than %d bounds of a number",
            MOE_NUMBERSET_MAX_BOUNDS);
    s->bound[s->n_bounds].kind = kind;
    s->bound[s->n_bounds++].value = *value;
    return 0;
}

int
moe_numberset_multiple(struct moe_numberset *s, const struct moe_decimal *of, bool divides,
    struct moe_err *e)
{
    if (of->n == 0)
        return moe_err_set(e, MOE_EFORMAT, "a multiple of 0");
    if (s->n_multiples == MOE_NUMBERSET_MAX_MULTIPLES)
        return moe_err_set(e, MOE_ELIMIT, "a number of more than %d multiples",
            MOE_NUMBERSET_MAX_MULTIPLES);
    s->multiple[s->n_multiples++] = (struct moe_multiple){ *of, divides };
    return 0;
}

/* ---- Records --------------------------------------------------------------------- */

enum phase { START, SIGN, ZERO, WHOLE, POINT, FRACTION };

struct record {
    uint8_t phase;
    bool negative, nonzero;
    uint8_t spoilt;             /* bit k: digits too small for multiple k */
    uint16_t whole;             /* digits before the point, no more than matter */
    uint16_t fraction;          /* behind it */
    int8_t cmp[MOE_NUMBERSET_MAX_BOUNDS];   /* digits so far against those of the bound */
    uint32_t rest[MOE_NUMBERSET_MAX_MULTIPLES];
};

/* One automaton: the set with everything divided by a power of ten. */
struct build {
    struct moe_grammar *g;
    const struct moe_numberset *s;
    int shift;                  /* the spelled number times 10^shift is meant */
    uint32_t to;                /* where an accepted one leads */
    size_t most_whole, most_fraction;
    uint32_t of[MOE_NUMBERSET_MAX_MULTIPLES];   /* multiples as whole numbers ... */
    int scale[MOE_NUMBERSET_MAX_MULTIPLES];     /* ... of 10^-scale */
    struct record *record;
    uint32_t *state;            /* [records] in the grammar */
    uint32_t *slot;             /* [SLOTS] */
    size_t n;
};

/* Digit i before the point (0 = first of `whole` digits) or behind it, of a bound. */
static int
digit(const struct build *b, size_t k, bool fraction, size_t i)
{
    const struct moe_decimal *v = &b->s->bound[k].value;
    long at = fraction ? (long)v->point - b->shift + (long)i : (long)i;

    return at < 0 || at >= (long)v->n ? 0 : v->d[at];
}

static size_t
whole_digits(const struct build *b, size_t k)
{
    long n = (long)b->s->bound[k].value.point - b->shift;

    return b->s->bound[k].value.n == 0 || n < 0 ? 0 : (size_t)n;
}

static int
three(int a, int b)
{
    return a < b ? -1 : a > b;
}

/* The digits before the point are complete: how they compare. */
static void
end_whole(const struct build *b, struct record *r)
{
    for (size_t k = 0; k < b->s->n_bounds; k++) {
        size_t n = whole_digits(b, k);

        if (r->whole != n)
            r->cmp[k] = r->whole < n ? -1 : 1;
    }
}

static void
add_digit(const struct build *b, struct record *r, int c, bool fraction)
{
    size_t i = fraction ? r->fraction : r->whole;

    r->nonzero = r->nonzero || c != 0;
    for (size_t k = 0; k < b->s->n_bounds; k++) {
        if (r->cmp[k] == 0 && (fraction || i < whole_digits(b, k)))
            r->cmp[k] = (int8_t)three(c, digit(b, k, fraction, i));
    }
    for (size_t k = 0; k < b->s->n_multiples; k++) {
        if (fraction && (int)i >= b->scale[k])
            r->spoilt |= (uint8_t)(c != 0 ? 1u << k : 0);
        else
            r->rest[k] = (uint32_t)(((uint64_t)r->rest[k] * 10 + (uint64_t)c) % b->of[k]);
    }
    if (fraction)
        r->fraction += r->fraction < b->most_fraction;
    else
        r->whole += r->whole < b->most_whole;
}

/* One character more; false: no number goes on so. */
static bool
next(const struct build *b, const struct record *from, char c, struct record *to)
{
    bool is_digit = c >= '0' && c <= '9';

    memcpy(to, from, sizeof(*to));      /* what lies between the members is compared too */
    if (c == '-' && from->phase == START) {
        to->phase = SIGN;
        to->negative = true;
        return true;
    }
    if (is_digit && (from->phase == START || from->phase == SIGN)) {
        to->phase = c == '0' ? ZERO : WHOLE;
        if (c == '0')
            end_whole(b, to);
        else
            add_digit(b, to, c - '0', false);
        return true;
    }
    if (is_digit && from->phase == WHOLE) {
        add_digit(b, to, c - '0', false);
        return true;
    }
    if (c == '.' && (from->phase == WHOLE || from->phase == ZERO)) {
        to->phase = POINT;
        if (from->phase == WHOLE)
            end_whole(b, to);
        return true;
    }
    if (is_digit && (from->phase == POINT || from->phase == FRACTION)) {
        to->phase = FRACTION;
        add_digit(b, to, c - '0', true);
        return true;
    }
    return false;
}

/* The number against bound k: -1, 0, 1. */
static int
compare(const struct build *b, const struct record *r, size_t k)
{
    const struct moe_decimal *v = &b->s->bound[k].value;
    int sign = !r->nonzero ? 0 : r->negative ? -1 : 1;
    int other = v->n == 0 ? 0 : v->negative ? -1 : 1, cmp = r->cmp[k];

    if (sign != other)
        return three(sign, other);
    /* All digits so far agree; the bound may have more behind the point. */
    if (cmp == 0 && (long)r->fraction < (long)v->n - ((long)v->point - b->shift))
        cmp = -1;
    return sign * cmp;
}

static bool
divides(const struct build *b, const struct record *r, size_t k)
{
    uint64_t rest = r->rest[k];

    if (r->spoilt >> k & 1)
        return false;
    for (int i = r->fraction; i < b->scale[k]; i++)
        rest = rest * 10 % b->of[k];
    return rest == 0;
}

static bool
accepted(const struct build *b, const struct record *whole)
{
    struct record r = *whole;

    if (r.phase != ZERO && r.phase != WHOLE && r.phase != FRACTION)
        return false;
    if (r.phase == WHOLE)
        end_whole(b, &r);
    for (size_t k = 0; k < b->s->n_bounds; k++) {
        static const bool allowed[4][3] = { { false, true, true }, { false, false, true },
            { true, true, false }, { true, false, false } };

        if (!allowed[b->s->bound[k].kind][compare(b, &r, k) + 1])
            return false;
    }
    for (size_t k = 0; k < b->s->n_multiples; k++) {
        if (divides(b, &r, k) != b->s->multiple[k].divides)
            return false;
    }
    return true;
}

/* The number of a record, a new one if it has none. */
static int
number_of(struct build *b, const struct record *r, size_t *out, struct moe_err *e)
{
    const uint8_t *p = (const uint8_t *)r;
    uint64_t h = 0;
    size_t at;

    for (size_t i = 0; i < sizeof(*r); i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001B3);
    for (at = (h >> 20) % SLOTS; b->slot[at] != UINT32_MAX; at = (at + 1) % SLOTS) {
        if (memcmp(&b->record[b->slot[at]], r, sizeof(*r)) == 0) {
            *out = b->slot[at];
            return 0;
        }
    }
    if (b->n == MOE_NUMBERSET_MAX_STATES)
        return moe_err_set(e, MOE_ELIMIT, "bounds of a number that need more than %d states",
            MOE_NUMBERSET_MAX_STATES);
    b->record[b->n] = *r;
    b->state[b->n] = moe_grammar_state(b->g);
    b->slot[at] = (uint32_t)b->n;
    *out = b->n++;
    return 0;
}

/* A multiple as a whole number of 10^-scale, scale >= 0. */
static int
scale_multiple(struct build *b, size_t k, struct moe_err *e)
{
    const struct moe_decimal *v = &b->s->multiple[k].of;
    long zeros = (long)v->point - b->shift - (long)v->n;     /* behind its digits */
    uint64_t n = 0;

    for (size_t i = 0; i < v->n && n <= MAX_REST; i++)
        n = n * 10 + v->d[i];
    for (; zeros > 0 && n <= MAX_REST; zeros--)
        n *= 10;
    b->scale[k] = zeros < 0 ? (int)-zeros : 0;
    b->of[k] = (uint32_t)(n <= MAX_REST ? n : 1);
    if (n > MAX_REST || b->scale[k] > 30)
        return moe_err_set(e, MOE_ELIMIT, "multipleOf: a number of too many digits");
    b->most_fraction = (size_t)b->scale[k] > b->most_fraction ? (size_t)b->scale[k]
        : b->most_fraction;
    return 0;
}

static int
prepare(struct build *b, struct moe_err *e)
{
    int rc;

    b->n = 0;
    b->most_whole = b->most_fraction = 0;
    memset(b->slot, 0xFF, SLOTS * sizeof(*b->slot));
    for (size_t k = 0; k < b->s->n_multiples; k++) {
        if ((rc = scale_multiple(b, k, e)) != 0)
            return rc;
    }
    for (size_t k = 0; k < b->s->n_bounds; k++) {
        const struct moe_decimal *v = &b->s->bound[k].value;
        long behind = (long)v->n - ((long)v->point - b->shift);

        if (whole_digits(b, k) > b->most_whole)
            b->most_whole = whole_digits(b, k);
        if (behind > (long)b->most_fraction)
            b->most_fraction = (size_t)behind;
    }
    b->most_whole++;    /* one more than any bound has is more than enough */
    return 0;
}

/* The states of one exponent; accepted records lead to b->to. */
static int
build(struct build *b, uint32_t from, struct moe_err *e)
{
    static const char characters[] = "-.0123456789";
    struct record first;
    size_t at;
    int rc;

    memset(&first, 0, sizeof(first));
    if ((rc = prepare(b, e)) != 0 || (rc = number_of(b, &first, &at, e)) != 0)
        return rc;
    moe_grammar_jump(b->g, from, b->state[0]);
    for (size_t i = 0; i < b->n; i++) {
        struct record to;

        if (accepted(b, &b->record[i]))
            moe_grammar_jump(b->g, b->state[i], b->to);
        for (const char *c = characters; *c != '\0'; c++) {
            if (!next(b, &b->record[i], *c, &to))
                continue;
            if ((rc = number_of(b, &to, &at, e)) != 0)
                return rc;
            moe_grammar_bytes(b->g, b->state[i], (uint8_t)*c, (uint8_t)*c, b->state[at]);
        }
    }
    return 0;
}

/* e, a sign that fits the shift, its digit. */
static uint32_t
exponent(struct moe_grammar *g, int shift, uint32_t to)
{
    uint32_t from = moe_grammar_state(g), sign = moe_grammar_state(g);
    uint32_t digit = moe_grammar_state(g);
    uint8_t c = (uint8_t)('0' + (shift < 0 ? -shift : shift));

    moe_grammar_bytes(g, from, 'e', 'e', sign);
    moe_grammar_bytes(g, from, 'E', 'E', sign);
    if (shift <= 0)
        moe_grammar_bytes(g, sign, '-', '-', digit);
    if (shift >= 0) {
        moe_grammar_bytes(g, sign, '+', '+', digit);
        moe_grammar_jump(g, sign, digit);
    }
    moe_grammar_bytes(g, digit, c, c, to);
    return from;
}

/* All numbers, exponents of one or two digits. */
static void
all(struct moe_grammar *g, uint32_t from, uint32_t to)
{
    uint32_t sign = moe_grammar_state(g), whole = moe_grammar_state(g);
    uint32_t end = moe_grammar_state(g), point = moe_grammar_state(g);
    uint32_t fraction = moe_grammar_state(g), e = moe_grammar_state(g);
    uint32_t esign = moe_grammar_state(g), one = moe_grammar_state(g);

    moe_grammar_jump(g, from, sign);
    moe_grammar_bytes(g, from, '-', '-', sign);
    moe_grammar_bytes(g, sign, '0', '0', end);
    moe_grammar_bytes(g, sign, '1', '9', whole);
    moe_grammar_bytes(g, whole, '0', '9', whole);
    moe_grammar_jump(g, whole, end);
    moe_grammar_bytes(g, end, '.', '.', point);
    moe_grammar_bytes(g, point, '0', '9', fraction);
    moe_grammar_bytes(g, fraction, '0', '9', fraction);
    moe_grammar_jump(g, fraction, e);
    moe_grammar_jump(g, end, e);
    moe_grammar_jump(g, e, to);
    moe_grammar_bytes(g, e, 'e', 'e', esign);
    moe_grammar_bytes(g, e, 'E', 'E', esign);
    moe_grammar_bytes(g, esign, '+', '+', one);
    moe_grammar_bytes(g, esign, '-', '-', one);
    moe_grammar_jump(g, esign, one);
    moe_grammar_bytes(g, one, '0', '9', to);
    sign = moe_grammar_state(g);
    moe_grammar_bytes(g, one, '0', '9', sign);
    moe_grammar_bytes(g, sign, '0', '9', to);
}

/* Whole numbers without bounds: zeros behind a point, exponents that are not below 0. */
static void
whole(struct moe_grammar *g, uint32_t from, uint32_t to)
{
    uint32_t sign = moe_grammar_state(g), digits = moe_grammar_state(g);
    uint32_t end = moe_grammar_state(g), point = moe_grammar_state(g), e = moe_grammar_state(g);
    uint32_t exp = moe_grammar_state(g), one = moe_grammar_state(g), two = moe_grammar_state(g);

    moe_grammar_jump(g, from, sign);
    moe_grammar_bytes(g, from, '-', '-', sign);
    moe_grammar_bytes(g, sign, '0', '0', end);
    moe_grammar_bytes(g, sign, '1', '9', digits);
    moe_grammar_bytes(g, digits, '0', '9', digits);
    moe_grammar_jump(g, digits, end);
    moe_grammar_jump(g, end, to);
    moe_grammar_bytes(g, end, '.', '.', point);
    moe_grammar_bytes(g, point, '0', '0', e);
    moe_grammar_bytes(g, e, '0', '0', e);
    moe_grammar_jump(g, e, to);
    for (int i = 0; i < 2; i++) {
        moe_grammar_bytes(g, i == 0 ? end : e, 'e', 'e', exp);
        moe_grammar_bytes(g, i == 0 ? end : e, 'E', 'E', exp);
    }
    moe_grammar_bytes(g, exp, '+', '+', one);
    moe_grammar_jump(g, exp, one);
    moe_grammar_bytes(g, one, '0', '9', two);
    moe_grammar_jump(g, two, to);
    moe_grammar_bytes(g, two, '0', '9', to);
}

int
moe_numberset_add(struct moe_grammar *g, uint32_t from, const struct moe_numberset *s,
    uint32_t to, struct moe_err *e)
{
    struct build b = { .g = g, .s = s };
    int rc = 0;

    if (s->n_bounds == 0 && s->n_multiples == 0) {
        all(g, from, to);
        return 0;
    }
    if (s->n_bounds == 0 && s->n_multiples == 1 && s->multiple[0].divides
        && s->multiple[0].of.n == 1 && s->multiple[0].of.point == 1
        && s->multiple[0].of.d[0] == 1) {
        whole(g, from, to);
        return 0;
    }
    b.record = malloc(MOE_NUMBERSET_MAX_STATES * sizeof(*b.record));
    b.state = malloc(MOE_NUMBERSET_MAX_STATES * sizeof(*b.state));
    b.slot = malloc(SLOTS * sizeof(*b.slot));
    if (b.record == NULL || b.state == NULL || b.slot == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "numbers: out of memory");
    for (int shift = -2; rc == 0 && shift <= 2; shift++) {
        b.shift = shift;
        b.to = shift == 0 ? moe_grammar_state(g) : exponent(g, shift, to);
        if (shift == 0) {
            moe_grammar_jump(g, b.to, to);
            moe_grammar_jump(g, b.to, exponent(g, 0, to));
        }
        rc = build(&b, from, e);
    }
    free(b.record);
    free(b.state);
    free(b.slot);
    return rc;
}
