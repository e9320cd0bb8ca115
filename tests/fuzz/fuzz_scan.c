/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scanner on any text: what skipping accepts, pulling accepts, and the
 * other way round, and both stop at the same place.
 */
#include <stdlib.h>

#include "common/base/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Pull one value the way a reader does; containers are only entered. */
static int
pull(struct moe_scan *s, struct moe_err *e)
{
    enum moe_scan_kind kind;
    struct moe_scan at;
    uint64_t u;
    int64_t i;
    double r;
    bool b;
    int rc;

    if ((rc = moe_scan_kind(s, &kind, e)) != 0)
        return rc;
    switch (kind) {
    case MOE_SCAN_NULL: return moe_scan_null(s, e);
    case MOE_SCAN_FALSE:
    case MOE_SCAN_TRUE: return moe_scan_bool(s, &b, e);
    case MOE_SCAN_STRING: return moe_scan_str(s, e);
    case MOE_SCAN_NUMBER:
        at = *s;
        if (moe_scan_uint(&at, &u, NULL) == 0) {
            at = *s;
            if (moe_scan_int(&at, &i, NULL) == 0 ? i < 0 || (uint64_t)i != u : u <= INT64_MAX)
                abort();
        }
        return moe_scan_real(s, &r, e);
    default: return moe_scan_enter(s, kind, e);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" }, f = { 0, "" };
    struct moe_scan a, b;
    bool more = true;
    int ra, rb;

    moe_scan_init(&a, (const char *)p, n, "a");
    moe_scan_init(&b, (const char *)p, n, "a");
    ra = moe_scan_skip(&a, &e);
    do {
        if (b.depth > 0 && (rb = moe_scan_next(&b, &more, &f)) != 0)
            break;
        rb = more ? pull(&b, &f) : 0;
        more = true;
    } while (rb == 0 && b.depth > 0);
    if (ra != rb || a.p != b.p || (ra == 0 && (a.depth != 0 || b.depth != 0)))
        abort();
    if (ra == 0)
        (void)moe_scan_end(&a, &e);
    moe_scan_fini(&a);
    moe_scan_fini(&b);
    return 0;
}
