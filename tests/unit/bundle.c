/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bundles of model_signing (tests/data/oms): read, checked with their key,
 * written and read back; with any bit changed they are never accepted.
 */
#include <string.h>

#include "common/base/read.h"
#include "common/trust/bundle.h"
#include "common/trust/keyfile.h"
#include "common/trust/statement.h"
#include "tests/tap.h"

/* Whether the bytes are a bundle that the key signed and whose statement reads. */
static bool
accepted(const struct moe_keyfile *k, const char *p, size_t n)
{
    struct moe_bundle b = MOE_BUNDLE_INIT;
    struct moe_statement s = MOE_STATEMENT_INIT;
    bool yes = moe_bundle_read(&b, p, n, "bundle", NULL) == 0 && b.n_certs == 0 &&
        strcmp(b.hint, k->hint) == 0 &&
        moe_keyfile_check(k, b.pae.p, b.pae.len, b.sig[0].p, b.sig[0].len, NULL) == 0 &&
        moe_statement_read(&s, b.payload.p, b.payload.len, "bundle", NULL) == 0;

    moe_statement_fini(&s);
    moe_bundle_fini(&b);
    return yes;
}

static void
flipped(const struct moe_keyfile *k, struct moe_buf *text)
{
    size_t passed = 0;

    for (size_t i = 0; i < text->len; i++) {
        char was = text->p[i];
        text->p[i] = (char)(was ^ (1 << (i % 8)));
        passed += accepted(k, text->p, text->len);
        text->p[i] = was;
    }
    tap_is_int((long)passed, 0, "a bit of each byte changed");
    passed = 0;
    for (size_t n = 0; n < text->len; n++)
        passed += accepted(k, text->p, n);
    tap_is_int((long)passed, 0, "cut anywhere");
}

static void
again(const struct moe_keyfile *k, const struct moe_buf *text)
{
    struct moe_bundle b = MOE_BUNDLE_INIT;
    struct moe_buf out = MOE_BUF_INIT;

    tap_is_int(moe_bundle_read(&b, text->p, text->len, "bundle", NULL), 0, "read");
    moe_bundle_write(&b, &out);
    tap_ok(accepted(k, out.p, out.len), "written and read back");
    moe_buf_fini(&out);
    moe_bundle_fini(&b);
}

int
main(void)
{
    struct moe_keyfile k = MOE_KEYFILE_INIT;
    struct moe_buf text = MOE_BUF_INIT;

    tap_is_int(moe_keyfile_public(&k, "tests/data/oms/keys/p256.pub", NULL), 0, "key");
    tap_is_int(moe_read_file("tests/data/oms/valid/small.sig", MOE_BUNDLE_MAX, &text, NULL), 0,
        "bundle");
    tap_ok(accepted(&k, text.p, text.len), "accepted");
    again(&k, &text);
    flipped(&k, &text);
    moe_buf_fini(&text);
    moe_keyfile_fini(&k);
    return tap_done();
}
