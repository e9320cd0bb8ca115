/* SPDX-License-Identifier: Apache-2.0 */
/* CSV of a metric from any bytes, and the windows of what is read. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/system/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_series s;
    struct moe_series_window w;
    struct moe_err e;

    if (moe_series_csv((const char *)p, n, "fuzz", "time", "loss", &s, &e) != 0)
        return 0;
    for (size_t i = 1; i < s.n; i++)
        if (!(s.t[i] > s.t[i - 1]))
            abort();
    moe_series_window(&s, 3600, &w);
    if (w.n == 0 || w.n > s.n || isnan(w.jitter) || w.jitter < 0)
        abort();
    moe_series_fini(&s);
    return 0;
}
