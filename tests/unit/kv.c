/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of sequences: growing, cutting, giving back, the limit. */
#include <string.h>

#include "common/engine/kv.h"
#include "tests/tap.h"

int
main(void)
{
    const struct moe_kv_shape shape = { 2, 3, 8, 4 };
    struct moe_backend *b;
    struct moe_kv *kv;
    struct moe_kv_seq s, t;
    struct moe_mem *first;
    struct moe_err e;

    tap_is_int(moe_backend_cpu_new(NULL, &b, &e), 0, "a device");
    tap_is_int(moe_kv_new(b, &shape, 5, &kv, &e), 0, "a store of five pages");
    tap_is_int((long long)moe_kv_page_bytes(kv), 2 * 3 * MOE_KV_PAGE * 12 * 4, "bytes of a page");
    tap_ok(memcmp(moe_kv_shape(kv), &shape, sizeof(shape)) == 0, "its shape");
    moe_kv_seq_init(&s, kv);
    moe_kv_seq_init(&t, kv);
    tap_is_int(moe_kv_seq_grow(&s, 0, &e), 0, "no positions");
    tap_is_int((long long)s.n, 0, "take no page");
    tap_is_int(moe_kv_seq_grow(&s, 1, &e), 0, "one position");
    tap_is_int(moe_kv_seq_grow(&s, MOE_KV_PAGE, &e), 0, "a page of them");
    tap_is_int((long long)s.n, 1, "take one page");
    first = s.pages[0];
    tap_is_int(moe_kv_seq_grow(&s, MOE_KV_PAGE + 1, &e), 0, "one more");
    tap_ok(s.n == 2 && s.pages[0] == first && s.pages[1] != first, "take another");
    tap_is_int(moe_kv_seq_grow(&t, 3 * MOE_KV_PAGE, &e), 0, "another sequence");
    tap_is_int((long long)moe_kv_used(kv), 5, "five in use");
    tap_is_int(moe_kv_seq_grow(&s, 2 * MOE_KV_PAGE + 1, &e), MOE_ELIMIT, "a sixth is refused");
    tap_is_str(e.text, "keys and values: all 5 pages are in use", "and says so");
    moe_kv_seq_cut(&t, MOE_KV_PAGE + 1);
    tap_is_int((long long)moe_kv_used(kv), 4, "cut to two pages");
    tap_is_int(moe_kv_seq_grow(&s, 2 * MOE_KV_PAGE + 1, &e), 0, "now there is room");
    moe_kv_seq_fini(&s);
    moe_kv_seq_fini(&s);
    moe_kv_seq_fini(&t);
    tap_is_int((long long)moe_kv_used(kv), 0, "all given back");
    moe_kv_free(kv);
    moe_kv_free(NULL);
    b->ops->free(b);
    return tap_done();
}
