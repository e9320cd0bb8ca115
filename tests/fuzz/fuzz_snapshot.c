/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifests of saves, lists of parts and refs from any bytes, the digest put
 * right so that what is behind it is reached; what is accepted is written again
 * the same.
 */
/* covers: common/store/snapshot.c common/store/parts.c common/store/ref.c */
#include <stdlib.h>
#include <string.h>

#include "common/store/parts.h"
#include "common/store/ref.h"
#include "common/store/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
manifest(const uint8_t *p, size_t n)
{
    struct moe_buf b = MOE_BUF_INIT, again = MOE_BUF_INIT;
    unsigned char sum[MOE_DIGEST_LEN];
    struct moe_snapshot s;
    struct moe_err e = { 0, "" };

    moe_buf_add(&b, p, n);
    if (moe_digest_of(p, n, sum, &e) != 0)
        abort();
    moe_buf_add(&b, sum, sizeof(sum));
    if (moe_snapshot_decode(b.p, b.len, "fuzz", &s, &e) == 0) {
        for (size_t i = 0; i < s.n; i++)
            if (moe_snapshot_find(&s, s.files[i].name) != &s.files[i])
                abort();
        (void)moe_snapshot_value(&s, "k");
        (void)moe_snapshot_bytes(&s);
        if (moe_snapshot_encode(&s, &again, &e) != 0 || again.len != b.len ||
            memcmp(again.p, b.p, b.len) != 0)
            abort();
    } else if (e.text[0] == '\0') {
        abort();
    }
    moe_snapshot_fini(&s);
    moe_buf_fini(&b);
    moe_buf_fini(&again);
}

static void
parts(const uint8_t *p, size_t n)
{
    struct moe_snapshot_file f = { .name = "fuzz", .parts = n / MOE_PARTS_ENTRY };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_parts x;
    struct moe_err e;

    if (n < 8 || moe_parts_id(p + 8, n - 8, f.list.id, &e) != 0)
        return;
    f.parts = (n - 8) / MOE_PARTS_ENTRY;
    memcpy(&f.size, p, 8);
    if (moe_parts_decode(p + 8, n - 8, &f, &x, &e) == 0) {
        for (size_t i = 0; i < x.n; i++)
            moe_parts_put(&b, &x.v[i]);
        if (!b.bad && (b.len != n - 8 || (b.len > 0 && memcmp(b.p, p + 8, b.len) != 0)))
            abort();
    }
    moe_parts_fini(&x);
    moe_buf_fini(&b);
}

static void
ref(const uint8_t *p, size_t n)
{
    struct moe_ref r;
    struct moe_err e;

    (void)moe_ref_parse((const char *)p, n, "fuzz", &r, &e);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    switch (p[0] % 3) {
    case 0: manifest(p + 1, n - 1); break;
    case 1: parts(p + 1, n - 1); break;
    default: ref(p + 1, n - 1);
    }
    return 0;
}
