/* SPDX-License-Identifier: Apache-2.0 */
/* Statements from any bytes. What is read has canonical names in order, none twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_statement s = MOE_STATEMENT_INIT;

    if (moe_statement_read(&s, (const char *)p, n, "statement", NULL) == 0)
        for (size_t i = 0; i < s.n; i++) {
            const char *name = s.f[i].name;
            if (strcmp(name, ".") != 0 && !moe_statement_canonical(name))
                abort();
            if (i > 0 && strcmp(s.f[i - 1].name, name) > 0)
                abort();
        }
    moe_statement_fini(&s);
    return 0;
}
