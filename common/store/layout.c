/* SPDX-License-Identifier: Apache-2.0 */
/* Owns where a file is cut. */
#include <stdlib.h>
#include <string.h>

#include "common/store/layout.h"

int
moe_layout_of(const struct moe_safet *h, struct moe_layout *out, struct moe_err *e)
{
    size_t n = moe_safet_n(h);
    uint64_t data = moe_safet_data_at(h);

    memset(out, 0, sizeof(*out));
    if ((out->v = calloc(n + 1, sizeof(*out->v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    out->v[out->n++] = (struct moe_layout_part){ 0, data, MOE_U8, NULL };
    for (size_t k = 0; k < n; k++) {
        const struct moe_tensor *t = moe_safet_at(h, moe_safet_by_offset(h, k));

        if (t->end > t->begin)
            out->v[out->n++] = (struct moe_layout_part){ data + t->begin, t->end - t->begin,
                t->dtype, t };
    }
    return 0;
}

const struct moe_layout_part *
moe_layout_find(const struct moe_layout *l, const struct moe_safet *h, const char *name)
{
    const struct moe_tensor *t = moe_safet_find(h, name);
    uint64_t at = t != NULL ? moe_safet_data_at(h) + t->begin : 0;
    size_t lo = 1, hi = l->n;

    if (t == NULL || t->end == t->begin)
        return NULL;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (l->v[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n && l->v[lo].t == t ? &l->v[lo] : NULL;
}

void
moe_layout_fini(struct moe_layout *l)
{
    free(l->v);
    memset(l, 0, sizeof(*l));
}
