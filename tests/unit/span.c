/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches: joining and asking. */
#include "common/engine/span.h"
#include "tests/tap.h"

int
main(void)
{
    struct moe_spans s = MOE_SPANS_INIT;

    tap_ok(!moe_span_overlaps(&s, 0, 10), "none overlaps");
    (void)moe_span_add(&s, 2, 2, NULL);
    tap_is_int((long long)s.n, 0, "an empty one is dropped");
    (void)moe_span_add(&s, 2, 4, NULL);
    (void)moe_span_add(&s, 4, 6, NULL);
    (void)moe_span_add(&s, 9, 10, NULL);
    tap_is_int((long long)s.n, 2, "those that touch are joined");
    tap_ok(!moe_span_overlaps(&s, 0, 2) && moe_span_overlaps(&s, 0, 3), "up to the first");
    tap_ok(moe_span_overlaps(&s, 5, 7) && !moe_span_overlaps(&s, 6, 9), "between");
    tap_ok(moe_span_overlaps(&s, 9, 10) && !moe_span_overlaps(&s, 10, 99), "after the last");
    for (size_t i = 0; i < 100; i++)
        (void)moe_span_add(&s, 20 + 3 * i, 22 + 3 * i, NULL);
    tap_ok(moe_span_overlaps(&s, 21 + 150, 22 + 150) && !moe_span_overlaps(&s, 22 + 150, 23 + 150),
        "among many");
    moe_span_fini(&s);
    return tap_done();
}
