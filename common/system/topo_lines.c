/* SPDX-License-Identifier: Apache-2.0 */
/* Owns our own lines: devices first, then every link once. */
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/system/topo_form.h"

#define MAX_CELLS 6

/* The cells of a line; how many, MAX_CELLS + 1 when there are more. */
static size_t
cells(char *line, char *cell[MAX_CELLS])
{
    size_t n = 0;

    for (char *p = line; p != NULL && n <= MAX_CELLS; n++) {
        char *tab = strchr(p, '\t');

        if (tab != NULL)
            *tab++ = '\0';
        if (n < MAX_CELLS)
            cell[n] = p;
        p = tab;
    }
    return n;
}

static bool
known(const char *word)
{
    return strcmp(word, "-") != 0;
}

static int
device(char *cell[MAX_CELLS], size_t n, const char *file, struct moe_topo *t, struct moe_err *e)
{
    struct moe_topo_device *d;
    int64_t numa = -1;
    int rc;

    if (n != 6 || t->link != NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: wanted: device, name, kind, numa, memory, speed;"
            " all devices before the links", file);
    if ((rc = moe_topo_add(t, cell[1], cell[2], file, e)) != 0)
        return rc;
    d = &t->device[t->n - 1];
    if ((known(cell[3]) && moe_num_int(cell[3], 0, 65535, "numa", &numa, e) != 0) ||
        (known(cell[4]) &&
        moe_num_size(cell[4], 1, UINT64_C(1) << 60, "memory", &d->memory, e) != 0) ||
        moe_num_real(cell[5], 1e-6, 1e6, "speed", &d->speed, e) != 0)
        return moe_err_at(e, "%s", file);
    d->numa = (int)numa;
    return 0;
}

static int
link_of(char *cell[MAX_CELLS], size_t n, const char *file, struct moe_topo *t, struct moe_err *e)
{
    size_t a = n == 6 ? moe_topo_find(t, cell[1], strlen(cell[1])) : t->n;
    size_t b = n == 6 ? moe_topo_find(t, cell[2], strlen(cell[2])) : t->n;
    struct moe_topo_link l;
    uint64_t bandwidth = 0;

    if (a == t->n || b == t->n || a == b)
        return moe_err_set(e, MOE_EFORMAT, "%s: wanted: link, two devices, class, bandwidth,"
            " source", file);
    if (t->link == NULL && moe_topo_links(t, e) != 0)
        return MOE_ENOMEM;
    if (t->link[a * t->n + b].class != MOE_TOPO_SELF)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s and %s twice", file, cell[1], cell[2]);
    if (!moe_topo_class_read(cell[3], strlen(cell[3]), &l) || strlen(cell[5]) >= sizeof(l.source))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s and %s: no such class, or a source of over %d"
            " bytes", file, cell[1], cell[2], MOE_TOPO_NAME - 1);
    if (known(cell[4]) &&
        moe_num_size(cell[4], 1, UINT64_C(1) << 60, "bandwidth", &bandwidth, e) != 0)
        return moe_err_at(e, "%s", file);
    l.bandwidth = (double)bandwidth;
    if (known(cell[5]))
        memcpy(l.source, cell[5], strlen(cell[5]) + 1);
    t->link[a * t->n + b] = t->link[b * t->n + a] = l;
    return 0;
}

int
moe_topo_lines(char *text, const char *file, struct moe_topo *t, struct moe_err *e)
{
    int rc = 0;

    for (char *p = text, *end; rc == 0 && p != NULL; p = end) {
        char *cell[MAX_CELLS];
        size_t n;

        if ((end = strchr(p, '\n')) != NULL)
            *end++ = '\0';
        if (*p == '\0' || *p == '#')
            continue;
        n = cells(p, cell);
        if (strcmp(cell[0], "device") == 0)
            rc = device(cell, n, file, t, e);
        else if (strcmp(cell[0], "link") == 0)
            rc = link_of(cell, n, file, t, e);
        else if (strcmp(cell[0], "island") != 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: '%.20s' is none of device, link, island", file,
                cell[0]);
    }
    return rc != 0 || t->link != NULL ? rc : moe_topo_links(t, e);
}
