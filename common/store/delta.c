/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the two forms of steps from a base. */
#include <string.h>

#include "common/base/le.h"
#include "common/store/delta.h"

#define ESCAPE 255              /* in a gap: so many and more; of a step: it lies beside */
#define HEAD ((size_t)12)       /* gaps, steps, bytes beside */
#define DENSE_FROM 3            /* one changed element of so many: all are written */

static uint64_t
get(const unsigned char *p, size_t w)
{
    uint16_t h;
    uint32_t s;
    uint64_t d;

    switch (w) {
    case 1: return *p;
    case 2: memcpy(&h, p, 2); return h;
    case 4: memcpy(&s, p, 4); return s;
    default: memcpy(&d, p, 8); return d;
    }
}

static void
put(unsigned char *p, size_t w, uint64_t v)
{
    uint16_t h = (uint16_t)v;
    uint32_t s = (uint32_t)v;

    switch (w) {
    case 1: *p = (unsigned char)v; break;
    case 2: memcpy(p, &h, 2); break;
    case 4: memcpy(p, &s, 4); break;
    default: memcpy(p, &v, 8);
    }
}

/* A step in w bytes, so that small ones of both signs are small numbers; and back. */
static uint64_t
fold(uint64_t step, size_t w)
{
    unsigned bits = 8 * (unsigned)w;
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    return ((step << 1) ^ (step >> (bits - 1) & 1 ? mask : 0)) & mask;
}

static uint64_t
unfold(uint64_t v)
{
    return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

/* The three runs of an encoding, in scratch memory. */
struct runs {
    unsigned char *gap, *step, *beside;
    size_t gaps, steps, besides, room;      /* room: of beside */
};

/* One step more; false if there is no room. */
static bool
add_step(struct runs *r, uint64_t v, size_t w)
{
    if (v < ESCAPE) {
        r->step[r->steps++] = (unsigned char)v;
        return true;
    }
    if (r->room - r->besides < w)
        return false;
    r->step[r->steps++] = ESCAPE;
    for (size_t k = 0; k < w; k++)
        r->beside[r->besides++] = (unsigned char)(v >> (8 * k));
    return true;
}

/* Lay the runs out: a byte an element for gaps and for steps, the rest for what is beside. */
static void
lay_out(struct runs *r, unsigned char *scratch, size_t n, size_t w)
{
    size_t elements = n / w, gaps = elements + elements / ESCAPE + 1;

    memset(r, 0, sizeof(*r));
    r->gap = scratch;
    r->step = scratch + gaps;
    r->beside = r->step + elements;
    r->room = MOE_DELTA_SCRATCH(n) - gaps - elements;
    r->room = r->room < n ? r->room : n;
}

static bool
sparse_runs(struct runs *r, const unsigned char *p, const unsigned char *base, size_t n, size_t w)
{
    size_t last = 0;

    for (size_t i = 0; i < n; i += w) {
        uint64_t a, b;
        size_t gap;

        /* Eight equal bytes at a time, as most are. */
        while (n - i >= 8 && memcmp(p + i, base + i, 8) == 0)
            i += 8;
        if (i >= n)
            break;
        a = get(p + i, w);
        b = get(base + i, w);
        if (a == b)
            continue;
        for (gap = i / w - last; gap >= ESCAPE; gap -= ESCAPE)
            r->gap[r->gaps++] = ESCAPE;
        r->gap[r->gaps++] = (unsigned char)gap;
        last = i / w + 1;
        if (!add_step(r, fold(a - b, w), w))
            return false;
    }
    return true;
}

/* How many elements changed, by those of every 16th block of 64 bytes. */
static bool
is_dense(const unsigned char *p, const unsigned char *base, size_t n, size_t w)
{
    size_t changed = 0, looked = 0;

    for (size_t at = 0; n - at >= 64; at += n - at >= 1024 ? 1024 : n - at)
        for (size_t k = 0; k < 64; k += w) {
            changed += memcmp(p + at + k, base + at + k, w) != 0;
            looked++;
        }
    return looked > 0 && changed * DENSE_FROM > looked;
}

bool
moe_delta_put(struct moe_plane *c, const unsigned char *p, const unsigned char *base, size_t n,
    size_t w, unsigned char *scratch, unsigned char *out, size_t cap, size_t *len, bool *dense)
{
    struct runs r;
    bool fits = true;

    lay_out(&r, scratch, n, w);
    *dense = is_dense(p, base, n, w);
    if (*dense) {
        for (size_t i = 0; fits && i < n; i += w)
            fits = add_step(&r, fold(get(p + i, w) - get(base + i, w), w), w);
    } else {
        fits = sparse_runs(&r, p, base, n, w);
    }
    if (!fits || cap < HEAD)
        return false;
    moe_le_put32(out, (uint32_t)r.gaps);
    moe_le_put32(out + 4, (uint32_t)r.steps);
    moe_le_put32(out + 8, (uint32_t)r.besides);
    *len = HEAD;
    return moe_plane_put(c, r.gap, r.gaps, false, out, cap, len) &&
        moe_plane_put(c, r.step, r.steps, *dense, out, cap, len) &&
        moe_plane_put(c, r.beside, r.besides, false, out, cap, len);
}

/* Change the elements of out, which are the base's. */
static int
apply(const struct runs *r, bool dense, size_t n, size_t w, unsigned char *out, struct moe_err *e)
{
    size_t elements = n / w, at = 0, g = 0, b = 0;

    for (size_t s = 0; s < r->steps; s++, at++) {
        uint64_t v = r->step[s];

        for (; !dense && g < r->gaps; g++) {
            at += r->gap[g];
            if (r->gap[g] != ESCAPE) {
                g++;
                break;
            }
        }
        if (v == ESCAPE) {
            if (r->besides - b < w)
                return moe_err_set(e, MOE_EFORMAT, "a delta ends too early");
            for (size_t k = v = 0; k < w; k++)
                v |= (uint64_t)r->beside[b++] << (8 * k);
        }
        if (at >= elements)
            return moe_err_set(e, MOE_EFORMAT, "a delta leads past its chunk");
        put(out + at * w, w, get(out + at * w, w) + unfold(v));
    }
    return g == r->gaps && b == r->besides && (!dense || at == elements)
        ? 0 : moe_err_set(e, MOE_EFORMAT, "a delta of another length");
}

int
moe_delta_get(struct moe_plane *c, bool dense, const unsigned char *p, size_t len,
    const unsigned char *base, size_t n, size_t w, unsigned char *scratch, unsigned char *out,
    struct moe_err *e)
{
    const unsigned char *end = p + len;
    size_t elements = n / w;
    struct runs r;
    int rc;

    lay_out(&r, scratch, n, w);
    if (len < HEAD || n % w != 0)
        return moe_err_set(e, MOE_EFORMAT, "a delta ends too early");
    r.gaps = moe_le_get32(p);
    r.steps = moe_le_get32(p + 4);
    r.besides = moe_le_get32(p + 8);
    if (r.gaps > elements + elements / ESCAPE + 1 || r.steps > elements || r.besides > r.room)
        return moe_err_set(e, MOE_EFORMAT, "a delta longer than its chunk");
    p += HEAD;
    if ((rc = moe_plane_get(c, &p, end, r.gap, r.gaps, e)) != 0 ||
        (rc = moe_plane_get(c, &p, end, r.step, r.steps, e)) != 0 ||
        (rc = moe_plane_get(c, &p, end, r.beside, r.besides, e)) != 0)
        return rc;
    if (p != end)
        return moe_err_set(e, MOE_EFORMAT, "bytes after a delta");
    memcpy(out, base, n);
    return apply(&r, dense, n, w, out, e);
}
