/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees and proofs against those of certificate-transparency and pymerkle in
 * tests/data/merkle: roots, both kinds of proof made and checked, all that must
 * be refused.
 */
#include <stdlib.h>
#include <string.h>

#include "common/trust/merkle.h"
#include "tests/golden.h"
#include "tests/tap.h"

static moe_merkle_hash leaves[512];

static unsigned
digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static bool
is_hash(const json_t *v)
{
    return json_string_length(v) == (size_t)2 * MOE_DIGEST_LEN;
}

static void
hash_of(const json_t *v, unsigned char *out)
{
    if (!is_hash(v) || !moe_digest_unhex(json_string_value(v), 64, out))
        tap_ok(false, "64 digits");
}

static size_t
path_of(const json_t *v, moe_merkle_hash *out)
{
    size_t n = json_array_size(v);

    for (size_t i = 0; i < n; i++)
        hash_of(json_array_get(v, i), out[i]);
    return n;
}

static void
leaves_of(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *hex = json_string_value(json_array_get(list, i));
        unsigned char raw[64];
        size_t n = strlen(hex) / 2;
        for (size_t k = 0; k < n; k++)
            raw[k] = (unsigned char)(digit(hex[2 * k]) << 4 | digit(hex[2 * k + 1]));
        moe_merkle_leaf(raw, n, leaves[i], NULL);
    }
}

static void
inclusion(const json_t *p, size_t n, const unsigned char *root)
{
    moe_merkle_hash want[MOE_MERKLE_DEPTH], path[MOE_MERKLE_DEPTH], leaf;
    size_t i = (size_t)json_integer_value(json_object_get(p, "index")), count;
    size_t k = path_of(json_object_get(p, "proof"), want);

    hash_of(json_object_get(p, "leaf"), leaf);
    tap_is_mem(leaves[i], leaf, sizeof(leaf), "%zu of %zu: leaf", i, n);
    tap_is_int(moe_merkle_path((const moe_merkle_hash *)leaves, n, i, path, &count, NULL), 0,
        "proof");
    tap_ok(count == k && memcmp(path, want, k * sizeof(leaf)) == 0, "is as it should be");
    tap_is_int(moe_merkle_check(n, i, leaf, (const moe_merkle_hash *)want, k, root, NULL), 1,
        "holds");
    tap_is_int(moe_merkle_check(n, i + 1, leaf, (const moe_merkle_hash *)want, k, root, NULL), 0,
        "not for the next leaf");
    leaf[0] ^= 1;
    tap_is_int(moe_merkle_check(n, i, leaf, (const moe_merkle_hash *)want, k, root, NULL), 0,
        "not for another leaf");
}

static void
consistency(const json_t *p, size_t n, unsigned char *root)
{
    moe_merkle_hash want[MOE_MERKLE_DEPTH + 1], path[MOE_MERKLE_DEPTH], old;
    size_t m = (size_t)json_integer_value(json_object_get(p, "old")), count;
    size_t k = path_of(json_object_get(p, "proof"), want);

    hash_of(json_object_get(p, "old_root"), old);
    if (m > 0) {
        tap_is_int(moe_merkle_extension((const moe_merkle_hash *)leaves, n, m, path, &count, NULL),
            0, "%zu to %zu: proof", m, n);
        tap_ok(count == k && memcmp(path, want, k * sizeof(old)) == 0, "is as it should be");
        tap_is_int(moe_merkle_continues(m, old, n, root, (const moe_merkle_hash *)want, k, NULL),
            1, "holds");
    }
    memset(want[k], 7, sizeof(old));
    tap_is_int(moe_merkle_continues(m, old, n, root, (const moe_merkle_hash *)want, k + 1, NULL),
        0, "not with more");
    old[3] ^= 4;
    tap_is_int(moe_merkle_continues(m, old, n, root, (const moe_merkle_hash *)want, k, NULL), 0,
        "not from another root");
}

static void
trees(const json_t *set)
{
    const json_t *t, *p;
    size_t i, k;

    leaves_of(json_object_get(set, "leaves"));
    json_array_foreach(json_object_get(set, "trees"), i, t) {
        size_t n = (size_t)json_integer_value(json_object_get(t, "size"));
        struct moe_merkle m;
        moe_merkle_hash root, want;
        moe_merkle_begin(&m);
        for (k = 0; k < n; k++)
            moe_merkle_add(&m, leaves[k], NULL);
        moe_merkle_root(&m, root, NULL);
        hash_of(json_object_get(t, "root"), want);
        tap_is_mem(root, want, sizeof(root), "root of %zu", n);
        json_array_foreach(json_object_get(t, "inclusion"), k, p)
            inclusion(p, n, root);
        json_array_foreach(json_object_get(t, "consistency"), k, p)
            consistency(p, n, root);
    }
}

int
main(void)
{
    json_t *all = golden_json("merkle/rfc6962.json"), *p;
    size_t i;

    trees(json_object_get(all, "ct"));
    trees(json_object_get(all, "made"));
    json_array_foreach(json_object_get(all, "refused"), i, p) {
        moe_merkle_hash root, leaf, path[128];
        const json_t *proof = json_object_get(p, "proof");
        size_t k;
        for (k = 0; k < json_array_size(proof) && is_hash(json_array_get(proof, k)); k++)
            ;
        if (k < json_array_size(proof))
            continue;       /* what is no digest never comes here */
        path_of(proof, path);
        hash_of(json_object_get(p, "root"), root);
        hash_of(json_object_get(p, "leaf"), leaf);
        tap_is_int(moe_merkle_check((uint64_t)json_integer_value(json_object_get(p, "size")),
            (uint64_t)json_integer_value(json_object_get(p, "index")), leaf,
            (const moe_merkle_hash *)path, k, root, NULL), 0, "refused: %s",
            json_string_value(json_object_get(p, "reason")));
    }
    tap_ok(i > 0, "some are refused");
    return tap_done();
}
