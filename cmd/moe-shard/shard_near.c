/* SPDX-License-Identifier: Apache-2.0 */
/* Owns expected traffic and the exchange of devices. Loads are shard_place.c's. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_near.h"

#define GAIN 1e-9       /* relative: less is no improvement */

struct near {
    const struct shard_place_in *in;
    const struct shard_wire *wire;
    size_t slots;
    size_t *first;              /* [devices + 1] where a device's slots begin */
    uint32_t *nearest;          /* [experts] of one device */
    uint32_t *alike;            /* [experts] copies as near */
    double *bytes;              /* [devices][devices] */
};

static int
near_new(const struct shard_place_in *in, const struct shard_wire *w, struct near *s,
    struct moe_err *e)
{
    *s = (struct near){ .in = in, .wire = w };
    s->first = calloc(in->devices + 1, sizeof(*s->first));
    s->nearest = calloc(in->experts + 1, sizeof(*s->nearest));
    s->alike = calloc(in->experts + 1, sizeof(*s->alike));
    s->bytes = calloc(in->devices * in->devices + 1, sizeof(*s->bytes));
    if (s->first == NULL || s->nearest == NULL || s->alike == NULL || s->bytes == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    for (size_t g = 0; g < in->devices; g++)
        s->first[g + 1] = s->first[g] + in->room[g];
    s->slots = s->first[in->devices];
    return 0;
}

static void
near_free(struct near *s)
{
    free(s->first);
    free(s->nearest);
    free(s->alike);
    free(s->bytes);
}

/* What device src sends, into its row. */
static void
send_from(struct near *s, const uint32_t *slot, size_t src, double *row)
{
    const struct shard_wire_pair *p = s->wire->pair + src * s->wire->n;

    memset(row, 0, s->in->devices * sizeof(*row));
    for (size_t x = 0; x < s->in->experts; x++) {
        s->nearest[x] = UINT32_MAX;
        s->alike[x] = 0;
    }
    for (size_t g = 0; g < s->in->devices; g++) {
        for (size_t i = s->first[g]; i < s->first[g + 1]; i++) {
            uint32_t x = slot[i];

            if (p[g].far < s->nearest[x]) {
                s->nearest[x] = p[g].far;
                s->alike[x] = 0;
            }
            s->alike[x] += p[g].far == s->nearest[x];
        }
    }
    for (size_t g = 0; g < s->in->devices; g++) {
        for (size_t i = s->first[g]; g != src && i < s->first[g + 1]; i++) {
            uint32_t x = slot[i];

            if (p[g].far == s->nearest[x])
                row[g] += s->in->load[x] / s->alike[x] / (double)s->in->devices;
        }
    }
}

static void
send_all(struct near *s, const uint32_t *slot, double *bytes)
{
    for (size_t g = 0; g < s->in->devices; g++)
        send_from(s, slot, g, bytes + g * s->in->devices);
}

int
shard_near_bytes(const struct shard_place_in *in, const uint32_t *slot,
    const struct shard_wire *w, double *bytes, struct moe_err *e)
{
    struct near s;
    int rc = near_new(in, w, &s, e);

    if (rc == 0)
        send_all(&s, slot, bytes);
    near_free(&s);
    return rc;
}

/* ---- Exchanges ------------------------------------------------------------------------- */

/* Of the slowest link, and then of all of them. */
struct cost { double time, sum; };

static struct cost
cost_of(struct near *s, const uint32_t *slot)
{
    struct cost c = { 0, 0 };
    size_t n = s->in->devices;

    send_all(s, slot, s->bytes);
    c.time = shard_wire_time(s->wire, s->bytes);
    for (size_t i = 0; i < n * n; i++)
        c.sum += s->bytes[i] * s->wire->pair[i].per_byte;
    return c;
}

static bool
less(struct cost a, struct cost b)
{
    double near = GAIN * b.time;

    return a.time < b.time - near || (a.time <= b.time && a.sum < b.sum - GAIN * b.sum);
}

static void
swap(const struct near *s, uint32_t *slot, size_t a, size_t b)
{
    for (size_t i = 0; i < s->in->room[a]; i++) {
        uint32_t t = slot[s->first[a] + i];

        slot[s->first[a] + i] = slot[s->first[b] + i];
        slot[s->first[b] + i] = t;
    }
}

static bool
twins(const struct shard_place_in *in, size_t a, size_t b)
{
    return in->room[a] == in->room[b] && in->speed[a] <= in->speed[b] &&
        in->speed[b] <= in->speed[a];
}

/* Every two devices in turn; whether some exchange helped. */
static bool
exchange(struct near *s, uint32_t *slot, struct cost *now, uint64_t *work)
{
    size_t n = s->in->devices;
    uint64_t each = (uint64_t)n * (s->slots + s->in->experts + n);
    bool helped = false;

    for (size_t a = 0; a < n; a++) {
        for (size_t b = a + 1; b < n; b++) {
            struct cost c;

            if (!twins(s->in, a, b))
                continue;
            if ((*work += each) > SHARD_NEAR_MAX_WORK)
                return false;
            swap(s, slot, a, b);
            c = cost_of(s, slot);
            if (less(c, *now)) {
                *now = c;
                helped = true;
            } else {
                swap(s, slot, a, b);
            }
        }
    }
    return helped;
}

int
shard_near_improve(const struct shard_place_in *in, const struct shard_wire *w, uint32_t *slot,
    struct moe_err *e)
{
    struct near s;
    struct cost now;
    uint64_t work = 0;
    int rc = near_new(in, w, &s, e);

    if (rc == 0) {
        now = cost_of(&s, slot);
        while (exchange(&s, slot, &now, &work))
            continue;
    }
    near_free(&s);
    return rc;
}
