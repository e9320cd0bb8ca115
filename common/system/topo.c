/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns devices and links, which form a file has, that a description is whole,
 * and the lines it is written as.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/base/read.h"
#include "common/system/topo_form.h"

static const char *const class_name[] = { "X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS" };

/* ---- Building -------------------------------------------------------------------- */

size_t
moe_topo_find(const struct moe_topo *t, const char *name, size_t len)
{
    size_t i = 0;

    while (i < t->n && (strlen(t->device[i].name) != len ||
        memcmp(t->device[i].name, name, len) != 0))
        i++;
    return i;
}

int
moe_topo_add(struct moe_topo *t, const char *name, const char *kind, const char *file,
    struct moe_err *e)
{
    struct moe_topo_device *more, *d;

    if (*name == '\0' || *kind == '\0' || strlen(name) >= MOE_TOPO_NAME ||
        strlen(kind) >= MOE_TOPO_NAME || strpbrk(name, "\t\n,") != NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: a device of no usable name or kind", file);
    if (moe_topo_find(t, name, strlen(name)) < t->n)
        return moe_err_set(e, MOE_EFORMAT, "%s: two devices are %s", file, name);
    if (t->n == MOE_TOPO_MAX_DEVICES)
        return moe_err_set(e, MOE_ELIMIT, "%s: over %d devices", file, MOE_TOPO_MAX_DEVICES);
    if ((more = realloc(t->device, (t->n + 1) * sizeof(*more))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", file);
    t->device = more;
    d = &more[t->n++];
    *d = (struct moe_topo_device){ .numa = -1, .speed = 1 };
    (void)snprintf(d->name, sizeof(d->name), "%s", name);
    (void)snprintf(d->kind, sizeof(d->kind), "%s", kind);
    return 0;
}

int
moe_topo_links(struct moe_topo *t, struct moe_err *e)
{
    if ((t->link = calloc(t->n * t->n + 1, sizeof(*t->link))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "topology: out of memory");
    return 0;
}

bool
moe_topo_class_read(const char *p, size_t n, struct moe_topo_link *out)
{
    char word[8];
    int64_t v;

    *out = (struct moe_topo_link){ .links = 0 };
    if (n == 0 || n >= sizeof(word))
        return false;
    memcpy(word, p, n);
    word[n] = '\0';
    for (int c = MOE_TOPO_PIX; c <= MOE_TOPO_SYS; c++) {
        if (strcmp(word, class_name[c]) == 0) {
            out->class = (enum moe_topo_class)c;
            return true;
        }
    }
    if (strncmp(word, "NV", 2) != 0 ||
        moe_num_int(word + 2, 1, MOE_TOPO_MAX_NVLINKS, "", &v, NULL) != 0)
        return false;
    out->class = MOE_TOPO_NV;
    out->links = (uint32_t)v;
    return true;
}

/* Bytes a second of an NVLink, by compute capability: what NCCL reckons with (topo.h). */
static double
nvlink_bandwidth(int sm)
{
    static const struct { int from; double gb; } table[] = {
        { 100, 40.1 }, { 90, 20.6 }, { 86, 12 }, { 70, 20 }, { 60, 18 },
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        if (sm >= table[i].from)
            return table[i].gb * 1e9;
    }
    return 0;
}

static void
set_nvlink(struct moe_topo *t, size_t a, size_t b, uint32_t links)
{
    struct moe_topo_link *l = &t->link[a * t->n + b];
    int sm = t->device[a].sm < t->device[b].sm ? t->device[a].sm : t->device[b].sm;

    l->class = MOE_TOPO_NV;
    l->links = links;
    l->bandwidth = nvlink_bandwidth(sm) * links;
    if (l->bandwidth > 0)
        (void)snprintf(l->source, sizeof(l->source), "NCCL's table, sm_%d", sm);
}

int
moe_topo_nvlinks(struct moe_topo *t, const uint32_t *direct, const uint32_t *switched,
    const char *file, struct moe_err *e)
{
    for (size_t a = 0; a < t->n; a++) {
        for (size_t b = 0; b < t->n; b++) {
            uint32_t there = direct[a * t->n + b], back = direct[b * t->n + a];
            uint32_t both = switched[a] < switched[b] ? switched[a] : switched[b];

            if (there != back)
                return moe_err_set(e, MOE_EFORMAT, "%s: %u NVLinks from %s to %s, %u back", file,
                    there, t->device[a].name, t->device[b].name, back);
            if (a != b && (there > 0 || both > 0))
                set_nvlink(t, a, b, there > 0 ? there : both);
        }
    }
    return 0;
}

void
moe_topo_pci(struct moe_topo *t)
{
    for (size_t a = 0; a < t->n; a++) {
        for (size_t b = 0; b < t->n; b++) {
            struct moe_topo_link *l = &t->link[a * t->n + b];
            double x = t->device[a].pci, y = t->device[b].pci;

            if (l->class < MOE_TOPO_PIX || l->bandwidth > 0 || x <= 0 || y <= 0)
                continue;
            l->bandwidth = x < y ? x : y;
            (void)snprintf(l->source, sizeof(l->source), "PCIe links of both");
        }
    }
}

/* ---- Whole ------------------------------------------------------------------------ */

/* A class for every two, the same both ways. */
static int
check(const struct moe_topo *t, const char *file, struct moe_err *e)
{
    for (size_t a = 0; a < t->n; a++) {
        for (size_t b = 0; b < t->n; b++) {
            const struct moe_topo_link *x = &t->link[a * t->n + b], *y = &t->link[b * t->n + a];

            if ((x->class == MOE_TOPO_SELF) != (a == b))
                return moe_err_set(e, MOE_EFORMAT, "%s: nothing is said of %s and %s", file,
                    t->device[a].name, t->device[b].name);
            if (x->class != y->class || x->links != y->links)
                return moe_err_set(e, MOE_EFORMAT, "%s: from %s to %s is not as back", file,
                    t->device[a].name, t->device[b].name);
        }
    }
    return 0;
}

static int
read_xml(const char *p, size_t n, const char *file, bool cpus, struct moe_topo *t,
    struct moe_err *e)
{
    struct moe_xml_doc d;
    int rc = moe_xml_parse(p, n, file, &d, e);

    if (rc != 0)
        return rc;
    if (strcmp(d.root->name, "system") == 0)
        rc = moe_topo_nccl(d.root, file, t, e);
    else if (strcmp(d.root->name, "topology") == 0)
        rc = moe_topo_hwloc(d.root, file, cpus, t, e);
    else
        rc = moe_err_set(e, MOE_EFORMAT, "%s: neither NCCL's <system> nor hwloc's <topology>",
            file);
    moe_xml_fini(&d);
    return rc;
}

/* Whether the first line that is neither empty nor a comment begins so. */
static bool
begins(const char *p, const char *word)
{
    while (*p == '#' || *p == '\n') {
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    return strncmp(p, word, strlen(word)) == 0;
}

int
moe_topo_parse(char *p, size_t n, const char *name, bool cpus, struct moe_topo *out,
    struct moe_err *e)
{
    int rc;

    *out = (struct moe_topo){ .n = 0 };
    if (n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: empty", name);
    else if (p[strspn(p, " \t\r\n")] == '<' || (unsigned char)p[0] >= 0xef)
        rc = read_xml(p, n, name, cpus, out, e);
    else if (strlen(p) != n)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: a NUL in a text", name);
    else if (strncmp(p, "# moe-topo", 10) == 0 || begins(p, "device\t"))
        rc = moe_topo_lines(p, name, out, e);
    else if (begins(p, "devices:") || begins(p, "---"))
        rc = moe_topo_yaml(p, n, name, out, e);
    else
        rc = moe_topo_smi(p, name, out, e);
    if (rc == 0)
        rc = check(out, name, e);
    if (rc != 0)
        moe_topo_fini(out);
    return rc;
}

int
moe_topo_read(const char *path, bool cpus, struct moe_topo *out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = moe_read_file(path, MOE_TOPO_MAX_BYTES, &b, e);

    if (rc == 0)
        rc = moe_topo_parse(b.p, b.len, path, cpus, out, e);
    else
        *out = (struct moe_topo){ .n = 0 };
    moe_buf_fini(&b);
    return rc;
}

void
moe_topo_fini(struct moe_topo *t)
{
    free(t->device);
    free(t->link);
    *t = (struct moe_topo){ .n = 0 };
}

/* ---- Writing ------------------------------------------------------------------------- */

/* Devices that NVLinks connect to `from`, directly or over others, into list; returns how many. */
static size_t
island(const struct moe_topo *t, size_t from, bool *seen, size_t *list)
{
    size_t n = 0;

    seen[from] = true;
    list[n++] = from;
    for (size_t i = 0; i < n; i++) {
        for (size_t b = 0; b < t->n; b++) {
            if (!seen[b] && t->link[list[i] * t->n + b].class == MOE_TOPO_NV) {
                seen[b] = true;
                list[n++] = b;
            }
        }
    }
    return n;
}

static void
write_islands(const struct moe_topo *t, struct moe_buf *b)
{
    bool *seen = calloc(t->n + 1, sizeof(*seen));
    size_t *list = calloc(t->n + 1, sizeof(*list));

    for (size_t a = 0; seen != NULL && list != NULL && a < t->n; a++) {
        size_t n = seen[a] ? 0 : island(t, a, seen, list);

        for (size_t i = 0; n > 1 && i < n; i++)
            moe_buf_fmt(b, "%s%s", i == 0 ? "island\t" : ",", t->device[list[i]].name);
        if (n > 1)
            moe_buf_byte(b, '\n');
    }
    if (seen == NULL || list == NULL)
        b->bad = true;
    free(seen);
    free(list);
}

/* A whole number, or '-' when it is not known. */
static void
write_known(struct moe_buf *b, bool known, double v)
{
    if (known)
        moe_buf_fmt(b, "\t%.0f", v);
    else
        moe_buf_str(b, "\t-");
}

void
moe_topo_write(const struct moe_topo *t, struct moe_buf *b)
{
    moe_buf_str(b, "# moe-topo 1\n");
    for (size_t a = 0; a < t->n; a++) {
        const struct moe_topo_device *d = &t->device[a];

        moe_buf_fmt(b, "device\t%s\t%s", d->name, d->kind);
        write_known(b, d->numa >= 0, d->numa);
        write_known(b, d->memory > 0, (double)d->memory);
        moe_buf_fmt(b, "\t%g\n", d->speed);
    }
    for (size_t a = 0; a < t->n; a++) {
        for (size_t c = a + 1; c < t->n; c++) {
            const struct moe_topo_link *l = &t->link[a * t->n + c];

            moe_buf_fmt(b, "link\t%s\t%s\t%s", t->device[a].name, t->device[c].name,
                class_name[l->class]);
            if (l->class == MOE_TOPO_NV)
                moe_buf_fmt(b, "%u", l->links);
            write_known(b, l->bandwidth > 0, l->bandwidth);
            moe_buf_fmt(b, "\t%s\n", l->source[0] != '\0' ? l->source : "-");
        }
    }
    write_islands(t, b);
}
