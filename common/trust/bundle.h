/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sigstore bundles, version 0.3, around a DSSE envelope: what a signature of a
 * model is stored in. Reading tells what is claimed; nothing is checked here
 * but the form. Unknown keys are refused, as nothing signs them.
 *
 * A struct moe_bundle owns its texts.
 */
#ifndef MOE_TRUST_BUNDLE_H
#define MOE_TRUST_BUNDLE_H

#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_BUNDLE_MAX ((size_t)256 << 20)  /* bytes of a bundle */
#define MOE_BUNDLE_MAX_SIGS 16              /* signatures of an envelope */
#define MOE_BUNDLE_MAX_CERTS 16
#define MOE_BUNDLE_TYPE "application/vnd.in-toto+json"

struct moe_bundle {
    char hint[129];             /* of the key; "" if there is none */
    struct moe_buf payload;     /* decoded */
    struct moe_buf pae;         /* what is signed: the payload and its type */
    struct moe_buf sig[MOE_BUNDLE_MAX_SIGS];
    size_t n_sigs;
    struct moe_buf cert[MOE_BUNDLE_MAX_CERTS];  /* DER, the signer's first */
    size_t n_certs;             /* 0: a bare key */
};

#define MOE_BUNDLE_INIT { .hint = "" }

/*
 * Read n bytes; name is for messages. Errors: MOE_EFORMAT, MOE_ELIMIT,
 * MOE_ENOMEM, MOE_EUNSUP (a keyless bundle).
 */
int moe_bundle_read(struct moe_bundle *b, const char *p, size_t n, const char *name,
    struct moe_err *e);

/* What DSSE signs for a payload, added to pae. */
void moe_bundle_pae(struct moe_buf *pae, const char *payload, size_t n);

/* Add the text of a bundle with b's hint, certificates, payload and signatures to out. */
void moe_bundle_write(const struct moe_bundle *b, struct moe_buf *out);

void moe_bundle_fini(struct moe_bundle *b);

#endif
