/* SPDX-License-Identifier: Apache-2.0 */
/* Any GGUF header as a configuration: read whole or refused with a reason, nothing kept. */
#include <stdlib.h>
#include <string.h>

#include "common/formats/ggufconfig.h"

#define AFTER ((uint64_t)1 << 40)   /* bytes of data that the header may speak of */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_config c;
    struct moe_gguf *g;
    int rc;

    if (moe_gguf_parse(p, n, n + AFTER, "fuzz", &g, &e) != 0)
        return 0;
    e = (struct moe_err){ 0, "" };
    if ((rc = moe_ggufconfig_read(g, "fuzz", &c, &e)) == 0) {
        if (c.tree == NULL || c.family[0] == '\0' || c.layers < 1 || c.hidden < 1)
            abort();
        moe_config_free(&c);
    } else if (c.tree != NULL || e.code != rc || e.text[0] == '\0') {
        abort();
    }
    moe_gguf_free(g);
    return 0;
}
