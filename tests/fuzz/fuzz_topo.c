/* SPDX-License-Identifier: Apache-2.0 */
/* Topologies from any bytes; one that is accepted is written and read back the same. */
/* covers: common/system/topo.c common/system/topo_smi.c common/system/topo_lines.c */
/* covers: common/system/topo_nccl.c common/system/topo_hwloc.c common/base/xml.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
again(const struct moe_topo *t)
{
    struct moe_buf a = MOE_BUF_INIT, b = MOE_BUF_INIT, copy = MOE_BUF_INIT;
    struct moe_topo back;
    struct moe_err e;

    moe_topo_write(t, &a);
    if (!a.bad && a.len > 0) {
        moe_buf_add(&copy, a.p, a.len);
        if (moe_topo_parse(copy.p, copy.len, "again", false, &back, &e) != 0)
            abort();
        moe_topo_write(&back, &b);
        if (a.len != b.len || memcmp(a.p, b.p, a.len) != 0)
            abort();
        moe_topo_fini(&back);
    }
    moe_buf_fini(&a);
    moe_buf_fini(&b);
    moe_buf_fini(&copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *text = malloc(n + 1);
    struct moe_topo t;
    struct moe_err e;

    if (text == NULL)
        return 0;
    if (n > 0)
        memcpy(text, p, n);
    text[n] = '\0';
    if (moe_topo_parse(text, n, "fuzz", true, &t, &e) == 0) {
        again(&t);
        moe_topo_fini(&t);
    }
    free(text);
    return 0;
}
