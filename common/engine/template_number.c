/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns Python's arithmetic. Whole numbers are 64 bits until they overflow, then
 * decimal text that OpenSSL's big numbers compute with.
 */
#include <math.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/template_number.h"

/* ---- Large whole numbers ----------------------------------------------------------- */

static BIGNUM *
to_bn(const struct moe_tval *v)
{
    BIGNUM *n = NULL;

    if (v->kind == MOE_T_BIG)
        return BN_dec2bn(&n, v->u.big) == 0 ? NULL : n;
    if ((n = BN_new()) != NULL) {
        int64_t i = v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
        uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;

        if (!BN_set_word(n, u)) {
            BN_free(n);
            return NULL;
        }
        BN_set_negative(n, i < 0);
    }
    return n;
}

/* Small numbers become MOE_T_INT again. */
static int
from_bn(struct moe_trun *r, const BIGNUM *n, struct moe_tval *out)
{
    char *dec, *p;
    size_t len;

    if (BN_num_bits(n) < 64) {
        uint64_t u = BN_get_word(n);

        *out = moe_template_value_int(BN_is_negative(n) ? (int64_t)(0 - u) : (int64_t)u);
        return 0;
    }
    if (BN_num_bits(n) > MOE_TEMPLATE_MAX_DIGITS * 10 / 3)
        return moe_template_value_limit(r, "a number has too many digits");
    if ((dec = BN_bn2dec(n)) == NULL)
        return moe_template_value_limit(r, "out of memory");
    len = strlen(dec) + 1;
    if ((p = moe_template_value_alloc(r, len, 1)) != NULL) {
        memcpy(p, dec, len);
        *out = (struct moe_tval){ .kind = MOE_T_BIG, .u.big = p };
    }
    OPENSSL_free(dec);
    return p == NULL ? MOE_T_FAILED : 0;
}

/* Floor division and its remainder, from the truncating one. */
static bool
floor_div(BIGNUM *q, BIGNUM *m, const BIGNUM *a, const BIGNUM *b, BN_CTX *ctx)
{
    if (!BN_div(q, m, a, b, ctx))
        return false;
    if (BN_is_zero(m) || BN_is_negative(m) == BN_is_negative(b))
        return true;
    return BN_sub_word(q, 1) && BN_add(m, m, b);
}

static int
big_pow(struct moe_trun *r, BIGNUM *q, const BIGNUM *a, const BIGNUM *b, BN_CTX *ctx)
{
    /* Bits of the result are at most bits of a times b. */
    if (BN_num_bits(a) > 1 && (BN_num_bits(b) > 20 ||
        (uint64_t)BN_num_bits(a) * BN_get_word(b) > MOE_TEMPLATE_MAX_DIGITS * 10))
        return moe_template_value_limit(r, "a number has too many digits");
    if (BN_num_bits(b) <= 32)
        return BN_exp(q, a, b, ctx) ? 0 : -1;
    if (BN_copy(q, a) == NULL)      /* 0, 1 and -1 to a huge power */
        return -1;
    BN_set_negative(q, BN_is_negative(a) && BN_is_odd(b));
    return 0;
}

static int
big_binary(struct moe_trun *r, enum moe_tnumber_op op, struct moe_tval a, struct moe_tval b,
    struct moe_tval *out)
{
    BIGNUM *x = to_bn(&a), *y = to_bn(&b), *q = BN_new(), *m = BN_new();
    BN_CTX *ctx = BN_CTX_new();
    int rc = -1;

    if (x == NULL || y == NULL || q == NULL || m == NULL || ctx == NULL)
        goto out;
    switch (op) {
    case MOE_TN_ADD:
        rc = BN_add(q, x, y) ? 0 : -1;
        break;
    case MOE_TN_SUB:
        rc = BN_sub(q, x, y) ? 0 : -1;
        break;
    case MOE_TN_MUL:
        rc = BN_mul(q, x, y, ctx) ? 0 : -1;
        break;
    case MOE_TN_POW:
        rc = big_pow(r, q, x, y, ctx);
        break;
    default:
        rc = floor_div(q, m, x, y, ctx) ? 0 : -1;
        break;
    }
    if (rc == 0)
        rc = from_bn(r, op == MOE_TN_MOD ? m : q, out);
out:
    if (rc != 0 && r->rc == 0)
        rc = moe_template_value_limit(r, "out of memory");
    BN_free(x);
    BN_free(y);
    BN_free(q);
    BN_free(m);
    BN_CTX_free(ctx);
    return rc != 0 ? MOE_T_FAILED : 0;
}

/* ---- Small and real numbers ---------------------------------------------------------- */

double
moe_template_number_real(const struct moe_tval *v)
{
    switch (v->kind) {
    case MOE_T_BOOL: return v->u.b;
    case MOE_T_INT: return (double)v->u.i;
    case MOE_T_BIG: return strtod(v->u.big, NULL);
    case MOE_T_FLOAT: return v->u.f;
    default: return 0;
    }
}

static int
real_binary(struct moe_trun *r, enum moe_tnumber_op op, double a, double b, struct moe_tval *out)
{
    double f = 0, m;

    if (b == 0 && (op == MOE_TN_DIV || op == MOE_TN_FLOORDIV || op == MOE_TN_MOD))
        return moe_template_value_fail(r, "division by zero");
    switch (op) {
    case MOE_TN_ADD: f = a + b; break;
    case MOE_TN_SUB: f = a - b; break;
    case MOE_TN_MUL: f = a * b; break;
    case MOE_TN_DIV: f = a / b; break;
    case MOE_TN_POW:
        if (a == 0 && b < 0)
            return moe_template_value_fail(r, "0.0 cannot be raised to a negative power");
        f = pow(a, b);
        if (isnan(f) && !isnan(a) && !isnan(b))
            return moe_template_value_fail(r, "complex numbers are not supported");
        if (isinf(f) && isfinite(a) && isfinite(b))
            return moe_template_value_fail(r, "Numerical result out of range");
        break;
    default:
        m = fmod(a, b);
        if (m != 0 && (m < 0) != (b < 0))
            m += b;
        else if (m == 0)
            m = copysign(0.0, b);
        f = op == MOE_TN_MOD ? m : nearbyint((a - m) / b);
        break;
    }
    *out = moe_template_value_float(f);
    return 0;
}

static int64_t
small(const struct moe_tval *v)
{
    return v->kind == MOE_T_BOOL ? v->u.b : v->u.i;
}

/* True when the result fits 64 bits. The divisor is not 0. */
static bool
small_binary(enum moe_tnumber_op op, int64_t a, int64_t b, int64_t *out)
{
    int64_t m;

    switch (op) {
    case MOE_TN_ADD: return !__builtin_add_overflow(a, b, out);
    case MOE_TN_SUB: return !__builtin_sub_overflow(a, b, out);
    case MOE_TN_MUL: return !__builtin_mul_overflow(a, b, out);
    case MOE_TN_FLOORDIV:
    case MOE_TN_MOD:
        if (b == -1)
            return op == MOE_TN_MOD ? (*out = 0, true) : !__builtin_sub_overflow(0, a, out);
        m = a % b;
        if (m != 0 && (m < 0) != (b < 0))
            m += b;
        *out = op == MOE_TN_MOD ? m : (a - m) / b;
        return true;
    default:
        return false;
    }
}

int
moe_template_number_binary(struct moe_trun *r, enum moe_tnumber_op op, struct moe_tval a,
    struct moe_tval b, struct moe_tval *out)
{
    bool real = a.kind == MOE_T_FLOAT || b.kind == MOE_T_FLOAT || op == MOE_TN_DIV;
    bool big = a.kind == MOE_T_BIG || b.kind == MOE_T_BIG;
    int64_t v;

    if (op == MOE_TN_POW && !real && moe_template_number_real(&b) < 0)
        real = true;
    if (real)
        return real_binary(r, op, moe_template_number_real(&a), moe_template_number_real(&b), out);
    if ((op == MOE_TN_FLOORDIV || op == MOE_TN_MOD) && !moe_template_value_truth(&b))
        return moe_template_value_fail(r, "integer division or modulo by zero");
    if (!big && small_binary(op, small(&a), small(&b), &v)) {
        *out = moe_template_value_int(v);
        return 0;
    }
    return big_binary(r, op, a, b, out);
}

int
moe_template_number_negate(struct moe_trun *r, struct moe_tval a, struct moe_tval *out)
{
    if (a.kind == MOE_T_FLOAT) {
        *out = moe_template_value_float(-a.u.f);
        return 0;
    }
    return moe_template_number_binary(r, MOE_TN_SUB, moe_template_value_int(0), a, out);
}

static int
big_order(const struct moe_tval *a, const struct moe_tval *b)
{
    BIGNUM *x = to_bn(a), *y = to_bn(b);
    int d = x == NULL || y == NULL ? 0 : BN_cmp(x, y);

    BN_free(x);
    BN_free(y);
    return d;
}

int
moe_template_number_order(struct moe_tval a, struct moe_tval b)
{
    bool real = a.kind == MOE_T_FLOAT || b.kind == MOE_T_FLOAT;

    if (!real && (a.kind == MOE_T_BIG || b.kind == MOE_T_BIG))
        return big_order(&a, &b);
    if (!real)
        return small(&a) < small(&b) ? -1 : small(&a) > small(&b);
    if ((a.kind == MOE_T_FLOAT && isnan(a.u.f)) || (b.kind == MOE_T_FLOAT && isnan(b.u.f)))
        return 2;
    {
        /* A long double holds every int64. */
        long double x = a.kind == MOE_T_INT ? (long double)a.u.i : moe_template_number_real(&a);
        long double y = b.kind == MOE_T_INT ? (long double)b.u.i : moe_template_number_real(&b);

        return x < y ? -1 : x > y;
    }
}

/* ---- Reading --------------------------------------------------------------------- */

static int
digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
        return (c | 0x20) - 'a' + 10;
    return 99;
}

int
moe_template_number_parse(struct moe_trun *r, const char *p, size_t n, int base, bool *ok,
    struct moe_tval *out)
{
    BIGNUM *v = BN_new();
    bool minus = n > 0 && *p == '-', last = false;
    int rc = 0;

    *ok = false;
    if (v == NULL)
        return moe_template_value_limit(r, "out of memory");
    if (n > 0 && (*p == '-' || *p == '+')) {
        p++;
        n--;
    }
    if (n > MOE_TEMPLATE_MAX_DIGITS) {
        rc = moe_template_value_limit(r, "a number has too many digits");
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        int d = digit(p[i]);

        if (p[i] == '_' && last && i + 1 < n) {
            last = false;       /* one underscore between digits */
            continue;
        }
        if (d >= base)
            goto out;
        last = true;
        if (!BN_mul_word(v, (BN_ULONG)base) || !BN_add_word(v, (BN_ULONG)d)) {
            rc = moe_template_value_limit(r, "out of memory");
            goto out;
        }
    }
    if (!last)
        goto out;
    BN_set_negative(v, minus);
    rc = from_bn(r, v, out);
    *ok = rc == 0;
out:
    BN_free(v);
    return rc;
}

int
moe_template_number_whole(struct moe_trun *r, double f, struct moe_tval *out)
{
    char text[400];
    bool ok;
    int n;

    if (f > -9.2e18 && f < 9.2e18) {
        *out = moe_template_value_int((int64_t)f);
        return 0;
    }
    n = snprintf(text, sizeof(text), "%.0f", f);
    return moe_template_number_parse(r, text, (size_t)n, 10, &ok, out);
}
