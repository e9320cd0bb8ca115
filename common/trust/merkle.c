/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the shape of the trees and the walk along proofs (RFC 9162, sections
 * 2.1.3 and 2.1.4, whose trees are those of RFC 6962). Reads no file.
 */
#include <string.h>

#include "common/trust/merkle.h"

/* Digest of a byte and two stretches of bytes. */
static int
tagged(unsigned char tag, const void *p, size_t n, const void *q, size_t k, moe_merkle_hash out,
    struct moe_err *e)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    moe_merkle_hash sum;
    int rc = moe_digest_begin(&d, e);

    if (rc == 0) {
        moe_digest_add(&d, &tag, 1);
        moe_digest_add(&d, p, n);
        moe_digest_add(&d, q, k);
        rc = moe_digest_end(&d, sum, e);
    }
    moe_digest_fini(&d);
    if (rc == 0)
        memcpy(out, sum, sizeof(sum));
    return rc;
}

int
moe_merkle_leaf(const void *p, size_t n, moe_merkle_hash out, struct moe_err *e)
{
    return tagged(0, p, n, "", 0, out, e);
}

int
moe_merkle_node(const moe_merkle_hash l, const moe_merkle_hash r, moe_merkle_hash out,
    struct moe_err *e)
{
    return tagged(1, l, MOE_DIGEST_LEN, r, MOE_DIGEST_LEN, out, e);
}

void
moe_merkle_begin(struct moe_merkle *m)
{
    m->n = 0;
}

static size_t
bits(uint64_t n)
{
    size_t k = 0;

    for (; n > 0; n &= n - 1)
        k++;
    return k;
}

int
moe_merkle_add(struct moe_merkle *m, const moe_merkle_hash leaf, struct moe_err *e)
{
    size_t top = bits(m->n);
    int rc = 0;

    memcpy(m->stack[top], leaf, MOE_DIGEST_LEN);
    /* Two trees of one size become one, as ones are carried when 1 is added. */
    for (uint64_t n = m->n; rc == 0 && (n & 1) != 0; n >>= 1, top--)
        rc = moe_merkle_node(m->stack[top - 1], m->stack[top], m->stack[top - 1], e);
    m->n++;
    return rc;
}

int
moe_merkle_root(const struct moe_merkle *m, moe_merkle_hash root, struct moe_err *e)
{
    size_t k = bits(m->n);
    int rc = 0;

    if (k == 0)
        return moe_digest_of("", 0, root, e);
    memcpy(root, m->stack[--k], MOE_DIGEST_LEN);
    while (rc == 0 && k > 0)
        rc = moe_merkle_node(m->stack[--k], root, root, e);
    return rc;
}

static int
root_of(const moe_merkle_hash *leaves, size_t n, moe_merkle_hash root, struct moe_err *e)
{
    struct moe_merkle m;
    int rc = 0;

    moe_merkle_begin(&m);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = moe_merkle_add(&m, leaves[i], e);
    return rc == 0 ? moe_merkle_root(&m, root, e) : rc;
}

/* The largest power of two below n > 1. */
static size_t
split(size_t n)
{
    size_t k = 1;

    while (k < n - k)
        k *= 2;
    return k;
}

/* Collected from the root down, wanted from the leaf up. */
static void
reverse(moe_merkle_hash *path, size_t count)
{
    moe_merkle_hash t;

    for (size_t i = 0; 2 * i + 1 < count; i++) {
        memcpy(t, path[i], sizeof(t));
        memcpy(path[i], path[count - 1 - i], sizeof(t));
        memcpy(path[count - 1 - i], t, sizeof(t));
    }
}

int
moe_merkle_path(const moe_merkle_hash *leaves, size_t n, size_t i,
    moe_merkle_hash path[static MOE_MERKLE_DEPTH], size_t *count, struct moe_err *e)
{
    size_t lo = 0;
    int rc = 0;

    for (*count = 0; n > 1 && rc == 0; ++*count) {
        size_t k = split(n);
        if (i < k) {
            rc = root_of(leaves + lo + k, n - k, path[*count], e);
            n = k;
        } else {
            rc = root_of(leaves + lo, k, path[*count], e);
            lo += k;
            i -= k;
            n -= k;
        }
    }
    reverse(path, *count);
    return rc;
}

int
moe_merkle_extension(const moe_merkle_hash *leaves, size_t n, size_t m,
    moe_merkle_hash path[static MOE_MERKLE_DEPTH], size_t *count, struct moe_err *e)
{
    size_t lo = 0;
    bool known = true;      /* what is left is the old tree itself, whose root is known */
    int rc = 0;

    for (*count = 0; m != n && rc == 0; ++*count) {
        size_t k = split(n);
        if (m <= k) {
            rc = root_of(leaves + lo + k, n - k, path[*count], e);
            n = k;
        } else {
            rc = root_of(leaves + lo, k, path[*count], e);
            lo += k;
            n -= k;
            m -= k;
            known = false;
        }
    }
    if (!known && rc == 0)
        rc = root_of(leaves + lo, n, path[(*count)++], e);
    reverse(path, *count);
    return rc;
}

static bool
same(const moe_merkle_hash a, const moe_merkle_hash b)
{
    return memcmp(a, b, MOE_DIGEST_LEN) == 0;
}

int
moe_merkle_check(uint64_t n, uint64_t i, const moe_merkle_hash leaf,
    const moe_merkle_hash *path, size_t count, const moe_merkle_hash root, struct moe_err *e)
{
    moe_merkle_hash r;
    uint64_t f = i, s = n - 1;
    int rc = 0;

    if (i >= n)
        return 0;
    memcpy(r, leaf, sizeof(r));
    for (size_t k = 0; k < count && rc == 0; k++) {
        if (s == 0)
            return 0;
        if ((f & 1) != 0 || f == s) {
            rc = moe_merkle_node(path[k], r, r, e);
            for (; (f & 1) == 0 && f != 0; f >>= 1)
                s >>= 1;
        } else {
            rc = moe_merkle_node(r, path[k], r, e);
        }
        f >>= 1;
        s >>= 1;
    }
    return rc != 0 ? rc : s == 0 && same(r, root);
}

int
moe_merkle_continues(uint64_t m, const moe_merkle_hash a, uint64_t n,
    const moe_merkle_hash b, const moe_merkle_hash *path, size_t count, struct moe_err *e)
{
    moe_merkle_hash fr, sr;
    uint64_t f, s;
    size_t k = 0;
    int rc = 0;

    if (m == 0 || m > n)
        return 0;
    if (m == n)
        return count == 0 && same(a, b);
    for (f = m - 1, s = n - 1; (f & 1) != 0; f >>= 1)
        s >>= 1;
    /* A whole tree is its own first node, which the proof leaves out. */
    if ((m & (m - 1)) != 0 && count == 0)
        return 0;
    memcpy(fr, (m & (m - 1)) == 0 ? a : path[k++], sizeof(fr));
    memcpy(sr, fr, sizeof(sr));
    for (; k < count && rc == 0; k++) {
        if (s == 0)
            return 0;
        if ((f & 1) != 0 || f == s) {
            rc = moe_merkle_node(path[k], fr, fr, e);
            if (rc == 0)
                rc = moe_merkle_node(path[k], sr, sr, e);
            for (; (f & 1) == 0 && f != 0; f >>= 1)
                s >>= 1;
        } else {
            rc = moe_merkle_node(sr, path[k], sr, e);
        }
        f >>= 1;
        s >>= 1;
    }
    return rc != 0 ? rc : s == 0 && same(fr, a) && same(sr, b);
}
