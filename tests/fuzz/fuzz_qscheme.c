/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantization_config from any JSON: what is accepted has a rule for every
 * module, the same each time.
 */
/* covers: common/formats/qscheme.c common/formats/qscheme_ct.c common/formats/qscheme_pattern.c */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/formats/qscheme.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
must(int yes)
{
    if (!yes)
        abort();
}

static void
ask(const struct moe_qscheme *s, const char *module)
{
    struct moe_err e = { 0, "" };
    struct moe_qrule a, b;
    int rc = moe_qscheme_rule(s, module, &a, &e);

    must(rc == 0 || (e.code == rc && e.text[0] != '\0'));
    must(moe_qscheme_rule(s, module, &b, NULL) == rc);
    if (rc == 0)
        must(a.enc < MOE_ENC_N && a.enc == b.enc && a.bits == b.bits && a.group == b.group);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const modules[] = {
        "", "lm_head", "model.layers.0.mlp.gate", "model.layers.11.mlp.experts.3.gate_proj",
        "model.layers.0.block_sparse_moe.experts.1.w2", "model.layers.2.self_attn.q_proj",
        "a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"
    };
    struct moe_err e = { 0, "" };
    struct moe_qscheme *s;
    json_t *tree;

    if (moe_json_parse((const char *)p, n, "fuzz", &tree, &e) != 0)
        return 0;
    if (moe_qscheme_new(tree, "fuzz", &s, &e) == 0) {
        must(moe_qscheme_method(s) != NULL);
        for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
            ask(s, modules[i]);
        moe_qscheme_free(s);
    } else {
        must(s == NULL && e.code < 0 && e.text[0] != '\0');
    }
    json_decref(tree);
    return 0;
}
