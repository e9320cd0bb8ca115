/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns NCCL's description: <cpu>s with trees of <pci>, in them <gpu> and <net>,
 * in a <gpu> its <nvlink>s to devices and switches by PCI address.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/system/topo_form.h"

#define MAX_PCI 16384
#define NVSWITCH "0x068000"

struct nccl {
    struct moe_topo *t;
    const char *file;
    const struct moe_xml *pci[MOE_TOPO_MAX_DEVICES];    /* the card of each device */
    const struct moe_xml *gpu[MOE_TOPO_MAX_DEVICES];
    const char *busid[MAX_PCI];
    size_t n_pci;
    struct moe_err *e;
};

static int
bad(const struct nccl *c, const struct moe_xml *x, const char *what)
{
    return moe_err_set(c->e, MOE_EFORMAT, "%s:%zu: <%s>: %s", c->file, x->line, x->name, what);
}

/* A whole number of an attribute. */
static int
number(const struct nccl *c, const struct moe_xml *x, const char *key, int64_t lo, int64_t hi,
    int64_t *v)
{
    const char *s = moe_xml_attr(x, key);

    if (s == NULL || moe_num_int(s, lo, hi, "", v, NULL) != 0)
        return moe_err_set(c->e, MOE_EFORMAT, "%s:%zu: <%s>: %s is no number from %lld to %lld",
            c->file, x->line, x->name, key, (long long)lo, (long long)hi);
    return 0;
}

/* ---- The tree ------------------------------------------------------------------------ */

/* dddd:bb:dd.f in hexadecimal, the domain perhaps longer. */
static bool
is_busid(const char *s)
{
    static const char shape[] = "hh:hh.h";
    size_t domain = s == NULL ? 0 : strspn(s, "0123456789abcdefABCDEF");

    if (domain < 4 || domain > 8 || s[domain] != ':' || strlen(s + domain + 1) != 7)
        return false;
    s += domain + 1;
    for (size_t i = 0; i < 7; i++) {
        if (shape[i] == 'h' ? strchr("0123456789abcdefABCDEF", s[i]) == NULL : s[i] != shape[i])
            return false;
    }
    return true;
}

/* Bytes a second of "32.0 GT/s PCIe" and a width; 8b/10b to PCIe 2, 128b/130b from 3 on. */
static double
pci_bandwidth(const struct moe_xml *pci, int64_t width)
{
    const char *s = moe_xml_attr(pci, "link_speed"), *end = s == NULL ? NULL : strstr(s, " GT/s");
    char text[16];
    double gt;

    if (end == NULL || (size_t)(end - s) >= sizeof(text))
        return 0;
    memcpy(text, s, (size_t)(end - s));
    text[end - s] = '\0';
    if (moe_num_real(text, 0, 1000, "", &gt, NULL) != 0)
        return 0;
    return gt * 1e9 / 8 * (double)width * (gt > 5.5 ? 128.0 / 130 : 0.8);
}

static int
add(struct nccl *c, const struct moe_xml *x, const struct moe_xml *pci, int64_t numa, double bw)
{
    struct moe_topo *t = c->t;
    char name[MOE_TOPO_NAME];
    const char *net = moe_xml_attr(x, "name");
    bool gpu = strcmp(x->name, "gpu") == 0;
    int64_t dev = 0, sm = 0;
    int rc;

    if (pci == NULL)
        return bad(c, x, "not in a <pci>");
    if (gpu && ((rc = number(c, x, "dev", 0, 65535, &dev)) != 0 ||
        (rc = number(c, x, "sm", 0, 10000, &sm)) != 0))
        return rc;
    if (!gpu && net == NULL)
        return bad(c, x, "no name");
    (void)snprintf(name, sizeof(name), "GPU%lld", (long long)dev);
    if ((rc = moe_topo_add(t, gpu ? name : net, gpu ? "gpu" : "nic", c->file, c->e)) != 0)
        return rc;
    c->pci[t->n - 1] = pci;
    c->gpu[t->n - 1] = gpu ? x : NULL;
    t->device[t->n - 1].numa = (int)numa;
    t->device[t->n - 1].pci = bw;
    t->device[t->n - 1].sm = (int)sm;
    return 0;
}

static int
card(struct nccl *c, const struct moe_xml *x, double *bw)
{
    const char *busid = moe_xml_attr(x, "busid");
    int64_t width = 0;
    int rc;

    if (!is_busid(busid))
        return bad(c, x, "no PCI address");
    for (size_t i = 0; i < c->n_pci; i++) {
        if (strcmp(c->busid[i], busid) == 0)
            return bad(c, x, "two devices have this PCI address");
    }
    if (c->n_pci == MAX_PCI)
        return bad(c, x, "too many");
    c->busid[c->n_pci++] = busid;
    if (moe_xml_attr(x, "link_width") != NULL &&
        (rc = number(c, x, "link_width", 0, 64, &width)) != 0)
        return rc;
    *bw = pci_bandwidth(x, width);
    return 0;
}

/* The elements below x; as deep as the XML is. */
static int
walk(struct nccl *c, const struct moe_xml *x, const struct moe_xml *pci, int64_t numa, double bw)
{
    int rc = 0;

    for (const struct moe_xml *y = x->child; rc == 0 && y != NULL; y = y->next) {
        double here = bw;
        int64_t node = numa;

        if (strcmp(y->name, "gpu") == 0 || strcmp(y->name, "net") == 0)
            rc = add(c, y, pci, numa, bw);
        else if (strcmp(y->name, "cpu") == 0)
            rc = number(c, y, "numaid", -1, 65535, &node);
        else if (strcmp(y->name, "pci") == 0)
            rc = card(c, y, &here);
        if (rc == 0)
            rc = walk(c, y, strcmp(y->name, "pci") == 0 ? y : pci, node, here);
    }
    return rc;
}

/* ---- Links ------------------------------------------------------------------------------ */

static bool
is_above(const struct moe_xml *x, const struct moe_xml *y)
{
    while (y != NULL && y != x)
        y = y->parent;
    return y != NULL;
}

static enum moe_topo_class
class_of(const struct moe_xml *a, const struct moe_xml *b)
{
    const struct moe_xml *x;

    if (a == NULL || b == NULL)         /* never: each device has its card */
        return MOE_TOPO_SYS;
    x = a->parent;
    if (a == b || (a->parent == b->parent && strcmp(x->name, "pci") == 0))
        return MOE_TOPO_PIX;
    while (!is_above(x, b))
        x = x->parent;
    return strcmp(x->name, "pci") == 0 ? MOE_TOPO_PXB : strcmp(x->name, "cpu") == 0 ?
        MOE_TOPO_PHB : MOE_TOPO_SYS;
}

/* The GPU on the card of this address, or t->n. */
static size_t
gpu_at(const struct nccl *c, const char *busid)
{
    size_t i = 0;

    while (i < c->t->n && (c->gpu[i] == NULL ||
        strcmp(moe_xml_attr(c->pci[i], "busid"), busid) != 0))
        i++;
    return i;
}

static int
nvlinks(const struct nccl *c, size_t a, uint32_t *direct, uint32_t *switched)
{
    int rc = 0;

    for (const struct moe_xml *l = c->gpu[a]->child; l != NULL; l = l->next) {
        const char *target = moe_xml_attr(l, "target"), *kind = moe_xml_attr(l, "tclass");
        uint32_t *to;
        int64_t count;
        size_t b;

        if (strcmp(l->name, "nvlink") != 0)
            continue;
        if ((rc = number(c, l, "count", 1, MOE_TOPO_MAX_NVLINKS, &count)) != 0)
            return rc;
        if (!is_busid(target))
            return bad(c, l, "no PCI address");
        b = gpu_at(c, target);
        if (b == a)
            return bad(c, l, "from a GPU to itself");
        if (b == c->t->n && (kind == NULL || strcmp(kind, NVSWITCH) != 0))
            return bad(c, l, "to a device that is not there and is no switch");
        to = b < c->t->n ? &direct[a * c->t->n + b] : &switched[a];
        if (*to + count > MOE_TOPO_MAX_NVLINKS)
            return bad(c, l, "too many links");
        *to += (uint32_t)count;
    }
    return 0;
}

static int
links(const struct nccl *c)
{
    size_t n = c->t->n;
    uint32_t *direct = calloc(n * n + 1, sizeof(*direct));
    uint32_t *switched = calloc(n + 1, sizeof(*switched));
    int rc = moe_topo_links(c->t, c->e);

    if (rc == 0 && (direct == NULL || switched == NULL))
        rc = moe_err_set(c->e, MOE_ENOMEM, "%s: out of memory", c->file);
    for (size_t a = 0; rc == 0 && a < n; a++) {
        for (size_t b = 0; b < n; b++) {
            if (a != b)
                c->t->link[a * n + b].class = class_of(c->pci[a], c->pci[b]);
        }
        if (c->gpu[a] != NULL)
            rc = nvlinks(c, a, direct, switched);
    }
    if (rc == 0 && (rc = moe_topo_nvlinks(c->t, direct, switched, c->file, c->e)) == 0)
        moe_topo_pci(c->t);
    free(direct);
    free(switched);
    return rc;
}

int
moe_topo_nccl(const struct moe_xml *root, const char *file, struct moe_topo *t,
    struct moe_err *e)
{
    struct nccl *c = calloc(1, sizeof(*c));
    const char *version = moe_xml_attr(root, "version");
    int rc;

    if (c == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", file);
    c->t = t;
    c->file = file;
    c->e = e;
    if (version == NULL || strcmp(version, "1") != 0)
        rc = moe_err_set(e, MOE_EUNSUP, "%s: <system>: only version 1 is known", file);
    else if ((rc = walk(c, root, NULL, -1, 0)) == 0)
        rc = links(c);
    free(c);
    return rc;
}
