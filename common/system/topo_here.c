/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the asking of hwloc; what it answers is read as its XML is. */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/topo.h"

#define NAME "this machine"

/* hwloc's description as text with a NUL behind it; freed by the caller. */
static int
describe(hwloc_topology_t h, char **text, size_t *n, struct moe_err *e)
{
    char *xml;
    int len;

    if (hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
        hwloc_topology_load(h) != 0)
        return moe_err_sys(e, MOE_EIO, errno, NAME);
    if (hwloc_topology_export_xmlbuffer(h, &xml, &len, 0) != 0)
        return moe_err_sys(e, MOE_EIO, errno, NAME);
    if ((*text = malloc((size_t)len + 1)) != NULL) {
        memcpy(*text, xml, (size_t)len);
        (*text)[len] = '\0';
        *n = strlen(*text);
    }
    hwloc_free_xmlbuffer(h, xml);
    return *text != NULL ? 0 : moe_err_set(e, MOE_ENOMEM, "%s: out of memory", NAME);
}

int
moe_topo_here(bool cpus, struct moe_topo *out, struct moe_err *e)
{
    hwloc_topology_t h;
    char *text = NULL;
    size_t n = 0;
    int rc;

    *out = (struct moe_topo){ .n = 0 };
    if (hwloc_topology_init(&h) != 0)
        return moe_err_sys(e, MOE_EIO, errno, NAME);
    rc = describe(h, &text, &n, e);
    hwloc_topology_destroy(h);
    if (rc == 0)
        rc = moe_topo_parse(text, n, NAME, cpus, out, e);
    free(text);
    return rc;
}
