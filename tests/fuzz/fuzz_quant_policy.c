/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies of moe-quant from any bytes, matched with a few names. The program's
 * parser is no part of the library: it is compiled in.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/moe-quant/quant_policy.c"
#include "cmd/moe-quant/quant_scheme.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const names[] = { "model.layers.0.mlp.experts.3.up_proj",
        "model.layers.11.self_attn.q_proj", "model.layers.2.mlp.gate", "lm_head", "" };
    const struct quant_policy_options opt = { .format = quant_scheme_find("int4"),
        .shared = quant_scheme_find("int8"), .group = QUANT_POLICY_AUTO };
    struct moe_err e = { 0, "" };
    struct quant_policy *policy;
    char path[64];
    int fd = memfd_create("policy", MFD_CLOEXEC);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (quant_policy_open(path, &opt, &policy, &e) != 0) {
        if (policy != NULL || e.code == 0 || e.text[0] == '\0')
            abort();
        close(fd);
        return 0;
    }
    for (int role = 0; role < MOE_ROLE_N; role++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            struct quant_scheme s;
            char name[QUANT_SCHEME_NAME];

            if (quant_policy_find(policy, names[i], (enum moe_role)role, &s, &e) == 0)
                (void)quant_scheme_name(&s, name);
            (void)quant_policy_named(policy, names[i], (enum moe_role)role);
        }
    }
    (void)quant_policy_check(policy, &e);
    quant_policy_free(policy);
    close(fd);
    return 0;
}
