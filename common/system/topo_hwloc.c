/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns hwloc's description: <object>s with bridges and cards in them, GPUs as
 * CUDA devices and NICs as network and OpenFabrics ones, and NVLinks as a
 * matrix of bandwidths.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/system/topo_form.h"

#define NVLINK_MB 25000         /* of one NVLink in NVLinkBandwidth (hwloc's nvml backend) */
#define MAX_OBJECTS 1024        /* of a matrix */

struct hwloc {
    struct moe_topo *t;
    const char *file;
    bool cpus;                  /* NUMA nodes are devices */
    const struct moe_xml *os[MOE_TOPO_MAX_DEVICES];     /* the device itself */
    struct moe_err *e;
};

static int
bad(const struct hwloc *c, const struct moe_xml *x, const char *what)
{
    return moe_err_set(c->e, MOE_EFORMAT, "%s:%zu: <%s>: %s", c->file, x->line, x->name, what);
}

static bool
is(const struct moe_xml *x, const char *key, const char *value)
{
    const char *s = moe_xml_attr(x, key);

    return s != NULL && strcmp(s, value) == 0;
}

/* The nearest of this type that x is or is in; NULL when there is none. */
static const struct moe_xml *
up_to(const struct moe_xml *x, const char *type)
{
    while (x != NULL && !is(x, "type", type))
        x = x->parent;
    return x;
}

/* ---- Devices ---------------------------------------------------------------------------- */

/* The number of the first NUMA node of the package x is in. */
static int
numa_of(const struct moe_xml *x)
{
    int64_t v;

    for (; x != NULL; x = x->parent) {
        for (const struct moe_xml *y = x->child; y != NULL; y = y->next) {
            const char *s = moe_xml_attr(y, "os_index");

            if (is(y, "type", "NUMANode") && s != NULL &&
                moe_num_int(s, 0, 65535, "", &v, NULL) == 0)
                return (int)v;
        }
        if (is(x, "type", "Package"))
            return -1;
    }
    return -1;
}

static int
add(struct hwloc *c, const struct moe_xml *x)
{
    const char *name = moe_xml_attr(x, "name"), *speed;
    const struct moe_xml *card = up_to(x, "PCIDev");
    struct moe_topo *t = c->t;
    char gpu[MOE_TOPO_NAME];
    bool cuda = is(x, "osdev_type", "5") && name != NULL && strncmp(name, "cuda", 4) == 0;
    int64_t number;
    double gb;
    int rc;

    /* 3 is OpenFabrics; a 2 (network) beside it is the same port. */
    if (name == NULL || card == NULL || (!cuda && !is(x, "osdev_type", "3")))
        return 0;
    if (cuda && moe_num_int(name + 4, 0, 65535, "", &number, NULL) != 0)
        return bad(c, x, "a CUDA device without a number");
    if (cuda)
        (void)snprintf(gpu, sizeof(gpu), "GPU%lld", (long long)number);
    if ((rc = moe_topo_add(t, cuda ? gpu : name, cuda ? "gpu" : "nic", c->file, c->e)) != 0)
        return rc;
    c->os[t->n - 1] = x;
    t->device[t->n - 1].numa = numa_of(x);
    speed = moe_xml_attr(card, "pci_link_speed");
    if (speed != NULL && moe_num_real(speed, 0, 1e6, "", &gb, NULL) == 0)
        t->device[t->n - 1].pci = gb * 1e9;
    return 0;
}

/* A NUMA node, its processors and its memory. */
static int
add_node(struct hwloc *c, const struct moe_xml *x)
{
    const char *number = moe_xml_attr(x, "os_index"), *memory = moe_xml_attr(x, "local_memory");
    struct moe_topo *t = c->t;
    char name[MOE_TOPO_NAME];
    int64_t v;
    int rc;

    if (number == NULL || moe_num_int(number, 0, 65535, "", &v, NULL) != 0)
        return bad(c, x, "a NUMA node without a number");
    (void)snprintf(name, sizeof(name), "CPU%lld", (long long)v);
    if ((rc = moe_topo_add(t, name, "cpu", c->file, c->e)) != 0)
        return rc;
    c->os[t->n - 1] = x;
    t->device[t->n - 1].numa = (int)v;
    if (memory != NULL && moe_num_int(memory, 0, INT64_MAX, "", &v, NULL) == 0)
        t->device[t->n - 1].memory = (uint64_t)v;
    return 0;
}

static int
walk(struct hwloc *c, const struct moe_xml *x)
{
    int rc = 0;

    for (const struct moe_xml *y = x->child; rc == 0 && y != NULL; y = y->next) {
        if (is(y, "type", "OSDev"))
            rc = add(c, y);
        else if (c->cpus && is(y, "type", "NUMANode"))
            rc = add_node(c, y);
        if (rc == 0)
            rc = walk(c, y);
    }
    return rc;
}

/* ---- Classes ------------------------------------------------------------------------------- */

static bool
is_above(const struct moe_xml *x, const struct moe_xml *y)
{
    while (y != NULL && y != x)
        y = y->parent;
    return y != NULL;
}

/* Bridges between a card and what is above it, neither of them counted. */
static size_t
bridges(const struct moe_xml *card, const struct moe_xml *top)
{
    size_t n = 0;

    for (const struct moe_xml *x = card->parent; x != top; x = x->parent)
        n += is(x, "type", "Bridge");
    return n;
}

/* Of devices of which one is a NUMA node. */
static enum moe_topo_class
node_class(const struct moe_topo_device *d, const struct moe_topo_device *g,
    const struct moe_xml *a, const struct moe_xml *b)
{
    const struct moe_xml *package = up_to(a, "Package");

    if (d->numa >= 0 && d->numa == g->numa)
        return MOE_TOPO_PHB;
    return package != NULL && package == up_to(b, "Package") ? MOE_TOPO_NODE : MOE_TOPO_SYS;
}

static enum moe_topo_class
class_of(const struct moe_xml *a, const struct moe_xml *b)
{
    const struct moe_xml *x = up_to(a, "PCIDev"), *y = up_to(b, "PCIDev"), *top = x;

    if (x == y)
        return MOE_TOPO_PIX;
    while (!is_above(top, y))
        top = top->parent;
    if (is(top, "type", "Bridge") && is(top, "bridge_type", "0-1"))
        return MOE_TOPO_PHB;
    if (is(top, "type", "Bridge"))
        return bridges(x, top) <= 1 && bridges(y, top) <= 1 ? MOE_TOPO_PIX : MOE_TOPO_PXB;
    return up_to(top, "Package") != NULL ? MOE_TOPO_NODE : MOE_TOPO_SYS;
}

/* ---- NVLinks --------------------------------------------------------------------------------- */

/* The next word of the texts of the children named `name`, from *x and *at on; NULL at the end. */
static const char *
word(const struct moe_xml **x, const char **at, const char *name, size_t *n)
{
    while (*x != NULL) {
        if (strcmp((*x)->name, name) == 0) {
            const char *p = (*at == NULL ? (*x)->text : *at);

            p += strspn(p, " \t\r\n");
            *n = strcspn(p, " \t\r\n");
            *at = p + *n;
            if (*n > 0)
                return p;
        }
        *x = (*x)->next;
        *at = NULL;
    }
    return NULL;
}

static int
next_number(const struct hwloc *c, const struct moe_xml *d, const struct moe_xml **x,
    const char **at, const char *name, const char *behind, int64_t *v)
{
    size_t n, skip;
    const char *p = word(x, at, name, &n);
    char text[24];

    skip = behind == NULL || p == NULL ? 0 : strcspn(p, behind) + 1;
    if (p == NULL)
        return bad(c, d, "fewer values than announced");
    if (skip >= n + (behind == NULL) || n - skip >= sizeof(text))
        return bad(c, d, "a value that is none");
    memcpy(text, p + skip, n - skip);
    text[n - skip] = '\0';
    return moe_num_int(text, 0, INT64_MAX, "", v, NULL) == 0 ? 0 : bad(c, d,
        "a value that is no number");
}

static const struct moe_xml *
object(const struct moe_xml *x, int64_t gp_index)
{
    for (const struct moe_xml *y = x->child; y != NULL; y = y->next) {
        const char *s = moe_xml_attr(y, "gp_index");
        const struct moe_xml *below;
        int64_t v;

        if (s != NULL && moe_num_int(s, 0, INT64_MAX, "", &v, NULL) == 0 && v == gp_index)
            return y;
        if ((below = object(y, gp_index)) != NULL)
            return below;
    }
    return NULL;
}

/* The device that an object is, or whose card it is; t->n when it is none. */
static size_t
device_of(const struct hwloc *c, const struct moe_xml *x)
{
    size_t i = 0;

    while (i < c->t->n && (strcmp(c->t->device[i].kind, "gpu") != 0 ||
        (c->os[i] != x && up_to(c->os[i], "PCIDev") != x)))
        i++;
    return i;
}

static int
matrix(const struct hwloc *c, const struct moe_xml *root, const struct moe_xml *d,
    uint32_t *direct, uint32_t *switched)
{
    const struct moe_xml *x = d->child;
    const char *s = moe_xml_attr(d, "nbobjs"), *at = NULL;
    size_t *gpu = NULL, n = c->t->n;
    int64_t objects, v;
    int rc = 0;

    if (s == NULL || moe_num_int(s, 1, MAX_OBJECTS, "", &objects, NULL) != 0)
        return bad(c, d, "nbobjs is not as many as can be");
    if ((gpu = calloc((size_t)objects, sizeof(*gpu))) == NULL)
        return moe_err_set(c->e, MOE_ENOMEM, "%s: out of memory", c->file);
    for (int64_t i = 0; rc == 0 && i < objects; i++) {
        const struct moe_xml *o = NULL;

        if ((rc = next_number(c, d, &x, &at, "indexes", strcmp(d->name, "distances2hetero") == 0 ?
            ":" : NULL, &v)) == 0 && (o = object(root, v)) == NULL)
            rc = bad(c, d, "an object that is not there");
        if (rc == 0)
            gpu[i] = device_of(c, o);
    }
    x = d->child;
    at = NULL;
    for (int64_t i = 0; rc == 0 && i < objects * objects; i++) {
        size_t a = gpu[i / objects], b = gpu[i % objects];

        if ((rc = next_number(c, d, &x, &at, "u64values", NULL, &v)) != 0 ||
            i / objects == i % objects || a == n)
            continue;
        if (v / NVLINK_MB > MOE_TOPO_MAX_NVLINKS)
            rc = bad(c, d, "more NVLinks than can be");
        else if (b < n)
            direct[a * n + b] = (uint32_t)(v / NVLINK_MB);
        else if ((switched[a] += (uint32_t)(v / NVLINK_MB)) > MOE_TOPO_MAX_NVLINKS)
            rc = bad(c, d, "more NVLinks than can be");
    }
    free(gpu);
    return rc;
}

/* What hwloc knows of an NVLink's bandwidth it says in the matrix. */
static void
set_bandwidth(struct moe_topo *t)
{
    for (size_t i = 0; i < t->n * t->n; i++) {
        if (t->link[i].class == MOE_TOPO_NV) {
            t->link[i].bandwidth = t->link[i].links * (double)NVLINK_MB * 1e6;
            (void)snprintf(t->link[i].source, sizeof(t->link[i].source), "NVLinkBandwidth");
        }
    }
}

static int
links(const struct hwloc *c, const struct moe_xml *root)
{
    size_t n = c->t->n;
    uint32_t *direct = calloc(n * n + 1, sizeof(*direct));
    uint32_t *switched = calloc(n + 1, sizeof(*switched));
    int rc = moe_topo_links(c->t, c->e);

    if (rc == 0 && (direct == NULL || switched == NULL))
        rc = moe_err_set(c->e, MOE_ENOMEM, "%s: out of memory", c->file);
    for (size_t a = 0; rc == 0 && a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            const struct moe_topo_device *d = c->t->device;
            bool cards = strcmp(d[a].kind, "cpu") != 0 && strcmp(d[b].kind, "cpu") != 0;

            if (a != b)
                c->t->link[a * n + b].class = cards ? class_of(c->os[a], c->os[b]) :
                    node_class(&d[a], &d[b], c->os[a], c->os[b]);
        }
    }
    for (const struct moe_xml *d = root->child; rc == 0 && d != NULL; d = d->next) {
        if (is(d, "name", "NVLinkBandwidth"))
            rc = matrix(c, root, d, direct, switched);
    }
    if (rc == 0 && (rc = moe_topo_nvlinks(c->t, direct, switched, c->file, c->e)) == 0) {
        set_bandwidth(c->t);
        moe_topo_pci(c->t);
    }
    free(direct);
    free(switched);
    return rc;
}

int
moe_topo_hwloc(const struct moe_xml *root, const char *file, bool cpus, struct moe_topo *t,
    struct moe_err *e)
{
    struct hwloc *c = calloc(1, sizeof(*c));
    const char *version = moe_xml_attr(root, "version");
    int rc;

    if (c == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", file);
    c->t = t;
    c->file = file;
    c->cpus = cpus;
    c->e = e;
    if (version == NULL || (strncmp(version, "2.", 2) != 0 && strncmp(version, "3.", 2) != 0))
        rc = moe_err_set(e, MOE_EUNSUP, "%s: <topology>: only versions 2 and 3 are known", file);
    else if ((rc = walk(c, root)) == 0)
        rc = links(c, root);
    free(c);
    return rc;
}
