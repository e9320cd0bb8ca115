/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a hash table of places. */
#include <stdlib.h>
#include <string.h>

#include "common/store/marks.h"

/* Where the place is or would be; cap is a power of two and not full. */
static size_t
slot_of(const struct moe_mark *v, size_t cap, uint64_t pack, uint64_t at)
{
    uint64_t h = (pack * UINT64_C(0x9E3779B97F4A7C15)) ^ (at * UINT64_C(0xC2B2AE3D27D4EB4F));
    size_t i = (size_t)(h ^ h >> 29) & (cap - 1);

    while (v[i].pack != 0 && (v[i].pack != pack || v[i].at != at))
        i = (i + 1) & (cap - 1);
    return i;
}

static int
grow(struct moe_marks *m, struct moe_err *e)
{
    size_t cap = m->cap > 0 ? 2 * m->cap : 1024;
    struct moe_mark *v;

    if (2 * (m->n + 1) <= m->cap)
        return 0;
    if ((v = calloc(cap, sizeof(*v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < m->cap; i++)
        if (m->v[i].pack != 0)
            v[slot_of(v, cap, m->v[i].pack, m->v[i].at)] = m->v[i];
    free(m->v);
    m->v = v;
    m->cap = cap;
    return 0;
}

int
moe_marks_add(struct moe_marks *m, uint64_t pack, uint64_t at, bool *fresh, struct moe_err *e)
{
    int rc = grow(m, e);
    size_t i;

    if (rc != 0)
        return rc;
    i = slot_of(m->v, m->cap, pack, at);
    *fresh = m->v[i].pack == 0;
    m->n += *fresh;
    m->v[i] = (struct moe_mark){ pack, at };
    return 0;
}

bool
moe_marks_has(const struct moe_marks *m, uint64_t pack, uint64_t at)
{
    return m->cap > 0 && m->v[slot_of(m->v, m->cap, pack, at)].pack != 0;
}

void
moe_marks_fini(struct moe_marks *m)
{
    free(m->v);
    memset(m, 0, sizeof(*m));
}
