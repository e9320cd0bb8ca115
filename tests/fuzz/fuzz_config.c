/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as config.json. What is read is within its ranges. */
#include <math.h>
#include <stdlib.h>

#include "common/formats/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_config c;

    if (moe_config_parse((const char *)p, n, "fuzz", &c, &e) != 0) {
        if (c.tree != NULL || e.text[0] == '\0')
            abort();
        return 0;
    }
    if (c.hidden < 1 || c.layers < 1 || c.vocab < 1 || c.heads < 1 || c.kv_heads < 1 ||
        c.kv_heads > c.heads || c.head_dim < 1 || c.inter < 0 || c.max_pos < 0 ||
        (c.experts > 0 && (c.top_k < 1 || c.top_k > c.experts || c.expert_inter < 1)) ||
        c.shared_inter < 0 || !(c.norm_eps > 0) || !isfinite(c.rope_theta) ||
        (c.rope != NULL && !json_is_object(c.rope)) || !json_is_object(c.text))
        abort();
    moe_config_free(&c);
    return 0;
}
