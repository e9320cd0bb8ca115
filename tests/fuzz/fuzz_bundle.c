/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles from any bytes: one that is read is written, and reads the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/bundle.h"
#include "common/trust/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
again(const struct moe_bundle *b)
{
    struct moe_bundle back = MOE_BUNDLE_INIT;
    struct moe_buf out = MOE_BUF_INIT;

    moe_bundle_write(b, &out);
    if (!out.bad && (moe_bundle_read(&back, out.p, out.len, "again", NULL) != 0 ||
        back.n_sigs != b->n_sigs || back.pae.len != b->pae.len ||
        memcmp(back.pae.p, b->pae.p, b->pae.len) != 0))
        abort();
    moe_buf_fini(&out);
    moe_bundle_fini(&back);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_bundle b = MOE_BUNDLE_INIT;
    struct moe_statement s = MOE_STATEMENT_INIT;

    if (moe_bundle_read(&b, (const char *)p, n, "bundle", NULL) == 0) {
        (void)moe_statement_read(&s, b.payload.p != NULL ? b.payload.p : "", b.payload.len,
            "bundle", NULL);
        if (b.n_certs > 0 || b.hint[0] != '\0')
            again(&b);
    }
    moe_bundle_fini(&b);
    moe_statement_fini(&s);
    return 0;
}
