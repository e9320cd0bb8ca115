/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how many slots which device has. What goes into them is shard_place.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_planfile.h"
#include "cmd/moe-shard/shard_shape.h"
#include "common/base/num.h"

int
shard_shape_list(const char *text, const char *what, size_t n, double *out, struct moe_err *e)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = strcspn(text, ",");
        char word[64];
        int rc;

        if (k >= sizeof(word) || (i + 1 < n) != (text[k] == ','))
            return moe_err_set(e, MOE_EUSAGE, "%s: not %zu numbers with commas between", what, n);
        memcpy(word, text, k);
        word[k] = '\0';
        if ((rc = moe_num_real(word, 1e-9, 1e9, what, &out[i], e)) != 0)
            return rc;
        text += k + (text[k] == ',');
    }
    return 0;
}

/* Devices and nodes, by the options or the topology, which must agree. */
static int
set_devices(const struct shard_shape_ask *a, struct shard_shape *s, struct moe_err *e)
{
    int rc;

    s->devices = a->devices;
    s->nodes = a->nodes > 0 ? a->nodes : 1;
    if (a->topo != NULL) {
        if ((rc = shard_wire_topo(a->topo, a->classes, &s->wire, e)) != 0)
            return rc;
        if (a->devices != 0 && a->devices != s->wire.n)
            return moe_err_set(e, MOE_EUNSUP, "%s: %zu accelerators, the plan is for %zu devices",
                a->topo, s->wire.n, a->devices);
        s->devices = s->wire.n;
        s->nodes = a->nodes > 0 ? a->nodes : s->wire.nodes;
    }
    if (s->devices == 0)
        return moe_err_set(e, MOE_EUSAGE, "--devices is wanted");
    if (s->devices > SHARD_PLANFILE_MAX_DEVICES || s->devices % s->nodes != 0)
        return moe_err_set(e, MOE_EUNSUP, "%zu devices on %zu nodes: do not divide", s->devices,
            s->nodes);
    return 0;
}

/* By the option, or else the topology; their mean is made 1. */
static int
set_speeds(const struct shard_shape_ask *a, struct shard_shape *s, struct moe_err *e)
{
    double sum = 0;
    int rc;

    for (size_t g = 0; g < s->devices; g++)
        s->speed[g] = s->wire.n > 0 ? s->wire.topo.device[s->wire.device[g]].speed : 1;
    if (a->speed != NULL &&
        (rc = shard_shape_list(a->speed, "--speed", s->devices, s->speed, e)) != 0)
        return rc;
    for (size_t g = 0; g < s->devices; g++)
        sum += s->speed[g];
    for (size_t g = 0; g < s->devices; g++)
        s->speed[g] *= (double)s->devices / sum;
    return 0;
}

/* Slots of each device as the option says. */
static int
set_room(const struct shard_shape_ask *a, struct shard_shape *s, size_t experts,
    struct moe_err *e)
{
    double *v = calloc(s->devices, sizeof(*v));
    int rc = v == NULL ? moe_err_set(e, MOE_ENOMEM, "plan: out of memory") :
        shard_shape_list(a->room, "--room", s->devices, v, e);

    s->slots = 0;
    for (size_t g = 0; rc == 0 && g < s->devices; g++) {
        if (v[g] > (double)experts || v[g] < floor(v[g]) || v[g] > floor(v[g]))
            rc = moe_err_set(e, MOE_EUNSUP, "--room: %g slots on a device for %zu experts", v[g],
                experts);
        else
            s->slots += s->room[g] = (uint32_t)v[g];
    }
    if (rc == 0 && a->slots != 0 && a->slots != s->slots)
        rc = moe_err_set(e, MOE_EUSAGE, "--slots: %zu, and --room has %zu", a->slots, s->slots);
    free(v);
    return rc;
}

/* As an old plan has them, or as many on each device. */
static int
set_slots(const struct shard_shape_ask *a, struct shard_shape *s, size_t experts,
    struct moe_err *e)
{
    for (size_t g = 0; a->have != NULL && g < s->devices; g++)
        s->slots += s->room[g] = a->have[g];
    if (a->have != NULL)
        return 0;
    s->slots = a->slots == 0 ? experts : a->slots;
    if (s->slots % s->devices != 0)
        return moe_err_set(e, MOE_EUNSUP, "%zu slots are no multiple of %zu devices", s->slots,
            s->devices);
    for (size_t g = 0; g < s->devices; g++)
        s->room[g] = (uint32_t)(s->slots / s->devices);
    return 0;
}

/* The slots that a device's memory holds. */
static uint32_t
holds(const struct shard_shape_ask *a, const struct shard_shape *s, size_t g, size_t layers,
    size_t experts)
{
    uint64_t memory = s->wire.n > 0 ? s->wire.topo.device[s->wire.device[g]].memory : 0;
    uint64_t n = memory > 0 && a->expert_bytes > 0 ? memory / a->expert_bytes / layers : experts;

    return n > experts ? (uint32_t)experts : (uint32_t)n;
}

/* What a device cannot hold goes to the one with most room left; the first of several. */
static int
fit_memory(const struct shard_shape_ask *a, struct shard_shape *s, size_t layers, size_t experts,
    struct moe_err *e)
{
    size_t over = 0;

    for (size_t g = 0; g < s->devices; g++) {
        uint32_t most = holds(a, s, g, layers, experts);

        if (s->room[g] > most) {
            over += s->room[g] - most;
            s->room[g] = most;
        }
    }
    while (over-- > 0) {
        size_t best = s->devices;
        uint32_t left = 0;

        for (size_t g = 0; g < s->devices; g++) {
            uint32_t most = holds(a, s, g, layers, experts);

            if (most - s->room[g] > left) {
                left = most - s->room[g];
                best = g;
            }
        }
        if (best == s->devices)
            return moe_err_set(e, MOE_EUNSUP, "%s: the devices' memory holds %zu of %zu slots",
                a->topo, s->slots - over - 1, s->slots);
        s->room[best]++;
    }
    return 0;
}

int
shard_shape_get(const struct shard_shape_ask *a, size_t layers, size_t experts,
    struct shard_shape *out, struct moe_err *e)
{
    struct shard_shape *s = out;
    int rc;

    *s = (struct shard_shape){ .devices = 0 };
    if ((rc = set_devices(a, s, e)) != 0)
        goto out;
    s->room = calloc(s->devices + 1, sizeof(*s->room));
    s->speed = calloc(s->devices + 1, sizeof(*s->speed));
    if (s->room == NULL || s->speed == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        goto out;
    }
    if ((rc = set_speeds(a, s, e)) != 0 ||
        (rc = a->room != NULL ? set_room(a, s, experts, e) : set_slots(a, s, experts, e)) != 0 ||
        (a->expert_bytes > 0 && (rc = fit_memory(a, s, layers, experts, e)) != 0))
        goto out;
    if (s->slots < experts || s->slots / s->devices > experts)
        rc = moe_err_set(e, MOE_EUNSUP, "%zu slots on %zu devices for %zu experts", s->slots,
            s->devices, experts);
out:
    if (rc != 0)
        shard_shape_fini(s);
    return rc;
}

void
shard_shape_fini(struct shard_shape *s)
{
    shard_wire_fini(&s->wire);
    free(s->room);
    free(s->speed);
    *s = (struct shard_shape){ .devices = 0 };
}
