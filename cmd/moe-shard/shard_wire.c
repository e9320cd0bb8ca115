/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns wires: what a topology says of them, or a count of nodes, and how long
 * bytes take over them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_wire.h"
#include "common/base/num.h"

#define MOST_NVLINKS 18         /* of a device, of any generation to Blackwell */
#define CLASSES (MOE_TOPO_SYS + 1)

static int
wire_new(size_t n, struct shard_wire *out, struct moe_err *e)
{
    *out = (struct shard_wire){ .n = n, .nodes = 1 };
    out->pair = calloc(n * n + 1, sizeof(*out->pair));
    return out->pair != NULL ? 0 : moe_err_set(e, MOE_ENOMEM, "links: out of memory");
}

int
shard_wire_nodes(size_t n, size_t nodes, double within, double beyond, struct shard_wire *out,
    struct moe_err *e)
{
    int rc = wire_new(n, out, e);

    out->nodes = nodes;
    for (size_t a = 0; rc == 0 && a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            bool same = a / (n / nodes) == b / (n / nodes);
            double bandwidth = same ? within : beyond;

            out->pair[a * n + b] = (struct shard_wire_pair){ a == b ? 0 : same ? 1 : 2, false,
                a != b && bandwidth > 0 ? 1 / bandwidth : 0 };
        }
    }
    return rc;
}

void
shard_wire_fini(struct shard_wire *w)
{
    moe_topo_fini(&w->topo);
    free(w->pair);
    free(w->device);
    *w = (struct shard_wire){ .n = 0 };
}

void
shard_wire_name(const struct shard_wire *w, size_t g, char name[MOE_TOPO_NAME])
{
    if (w->device != NULL)
        (void)snprintf(name, MOE_TOPO_NAME, "%s", w->topo.device[w->device[g]].name);
    else
        (void)snprintf(name, MOE_TOPO_NAME, "%zu", g);
}

/* ---- Topologies ----------------------------------------------------------------------- */

static const struct moe_topo_link *
link_of(const struct shard_wire *w, size_t a, size_t b)
{
    return &w->topo.link[w->device[a] * w->topo.n + w->device[b]];
}

/* "NV=25G,SYS=10G" to bytes a second of each class. */
static int
read_classes(const char *text, double out[CLASSES], struct moe_err *e)
{
    while (text != NULL && *text != '\0') {
        size_t k = strcspn(text, ","), at = strcspn(text, "=");
        struct moe_topo_link l = { .class = MOE_TOPO_NV };
        char size[32];
        uint64_t v;
        int rc;

        if (at >= k || k - at - 1 >= sizeof(size) ||
            ((at != 2 || memcmp(text, "NV", 2) != 0) && !moe_topo_class_read(text, at, &l)))
            return moe_err_set(e, MOE_EUSAGE, "--bandwidth: not CLASS=SIZE, with commas between");
        memcpy(size, text + at + 1, k - at - 1);
        size[k - at - 1] = '\0';
        if ((rc = moe_num_size(size, 1, UINT64_C(1) << 60, "--bandwidth", &v, e)) != 0)
            return rc;
        out[l.class] = (double)v;
        text += k + (text[k] == ',');
    }
    return 0;
}

/* NVLinks go from device to device, and not to switches that all share: there are few enough. */
static bool
direct(const struct shard_wire *w, size_t a)
{
    size_t links = 0;

    for (size_t b = 0; b < w->n; b++)
        links += b != a ? link_of(w, a, b)->links : 0;
    return links <= MOST_NVLINKS;
}

static int
set_pairs(struct shard_wire *w, const char *path, const double classes[CLASSES], struct moe_err *e)
{
    for (size_t a = 0; a < w->n; a++) {
        for (size_t b = 0; b < w->n; b++) {
            const struct moe_topo_link *l = link_of(w, a, b);
            bool nv = l->class == MOE_TOPO_NV;
            double v = l->bandwidth > 0 ? l->bandwidth : classes[l->class] * (nv ? l->links : 1);

            if (a == b)
                continue;
            if (v <= 0)
                return moe_err_set(e, MOE_EUSAGE, "%s: nothing tells the bandwidth between %s and"
                    " %s: give --bandwidth", path, w->topo.device[w->device[a]].name,
                    w->topo.device[w->device[b]].name);
            w->pair[a * w->n + b] = (struct shard_wire_pair){ (uint32_t)l->class,
                nv && direct(w, a) && direct(w, b), 1 / v };
        }
    }
    return 0;
}

/* Devices of one node: NVLinks connect them, or they are of one NUMA node. */
static bool
together(const struct shard_wire *w, size_t a, size_t b, bool by_links)
{
    int x = w->topo.device[w->device[a]].numa, y = w->topo.device[w->device[b]].numa;

    return by_links ? link_of(w, a, b)->class == MOE_TOPO_NV : x >= 0 && x == y;
}

/* Whether nodes of `per` devices in a row are what `together` says. */
static bool
in_rows(const struct shard_wire *w, size_t per, bool by_links)
{
    for (size_t a = 0; a < w->n; a++) {
        for (size_t b = 0; b < w->n; b++) {
            if (a != b && (a / per == b / per) != together(w, a, b, by_links))
                return false;
        }
    }
    return true;
}

static void
set_nodes(struct shard_wire *w)
{
    for (int by_links = 1; by_links >= 0; by_links--) {
        for (size_t nodes = 2; nodes < w->n; nodes++) {
            if (w->n % nodes == 0 && in_rows(w, w->n / nodes, by_links)) {
                w->nodes = nodes;
                return;
            }
        }
    }
}

int
shard_wire_topo(const char *path, const char *classes, struct shard_wire *out, struct moe_err *e)
{
    double known[CLASSES] = { 0 };
    struct moe_topo t;
    size_t *device = NULL, n = 0;
    int rc;

    *out = (struct shard_wire){ .n = 0 };
    if ((rc = read_classes(classes, known, e)) != 0 ||
        (rc = moe_topo_read(path, false, &t, e)) != 0)
        return rc;
    if ((device = calloc(t.n + 1, sizeof(*device))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
    for (size_t i = 0; rc == 0 && i < t.n; i++) {
        if (strcmp(t.device[i].kind, "nic") != 0)
            device[n++] = i;
    }
    if (rc == 0 && n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no accelerator", path);
    if (rc == 0)
        rc = wire_new(n, out, e);
    out->topo = t;
    out->device = device;
    if (rc == 0 && (rc = set_pairs(out, path, known, e)) == 0)
        set_nodes(out);
    if (rc != 0)
        shard_wire_fini(out);
    return rc;
}

/* ---- Time -------------------------------------------------------------------------------- */

double
shard_wire_time(const struct shard_wire *w, const double *bytes)
{
    double most = 0;

    for (size_t a = 0; a < w->n; a++) {
        double out = 0, in = 0;

        for (size_t b = 0; b < w->n; b++) {
            const struct shard_wire_pair *p = &w->pair[a * w->n + b];
            double there = bytes[a * w->n + b] * p->per_byte;

            if (p->own)
                most = there > most ? there : most;
            else {
                out += there;
                in += bytes[b * w->n + a] * p->per_byte;
            }
        }
        most = fmax(most, fmax(out, in));
    }
    return most;
}

struct shard_wire_use *
shard_wire_uses(const struct shard_wire *w, const double *bytes, size_t *n, struct moe_err *e)
{
    struct shard_wire_use *u = calloc(w->n * w->n + w->n + 1, sizeof(*u));
    size_t k = 0;

    *n = 0;
    if (u == NULL) {
        (void)moe_err_set(e, MOE_ENOMEM, "links: out of memory");
        return NULL;
    }
    for (size_t a = 0; a < w->n; a++) {
        for (size_t b = a + 1; b < w->n; b++) {
            double both = bytes[a * w->n + b] + bytes[b * w->n + a];

            if (w->pair[a * w->n + b].own)
                u[k++] = (struct shard_wire_use){ a, b, both,
                    both * w->pair[a * w->n + b].per_byte };
        }
    }
    for (size_t a = 0; a < w->n; a++) {
        struct shard_wire_use port = { a, a, 0, 0 };
        bool shared = false;

        for (size_t b = 0; b < w->n; b++) {
            const struct shard_wire_pair *p = &w->pair[a * w->n + b];
            double both = bytes[a * w->n + b] + bytes[b * w->n + a];

            if (a == b || p->own)
                continue;
            shared = true;
            port.bytes += both;
            port.seconds += both * p->per_byte;
        }
        if (shared)
            u[k++] = port;
    }
    *n = k;
    return u;
}
