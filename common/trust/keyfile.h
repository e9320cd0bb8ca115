/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys in PEM files, and what they sign: ECDSA (P-256 with SHA-256, P-384 with
 * SHA-384, P-521 with SHA-512), Ed25519, and SM2 with SM3 under the identifier
 * 1234567812345678 of GM/T 0009. All of it is OpenSSL's.
 *
 * A struct moe_keyfile owns its key.
 */
#ifndef MOE_TRUST_KEYFILE_H
#define MOE_TRUST_KEYFILE_H

#include <stddef.h>
#include <time.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/trust/digest.h"

#define MOE_KEYFILE_MAX ((size_t)1 << 20)   /* bytes of a file of keys or certificates */
#define MOE_KEYFILE_SM2_ID "1234567812345678"

struct moe_keyfile {
    void *pkey;                 /* OpenSSL's */
    char hint[MOE_DIGEST_HEX];  /* SHA-256 of the public key's PEM text */
};

#define MOE_KEYFILE_INIT { NULL, "" }

/* Read a public key (SubjectPublicKeyInfo). Errors: of reading, MOE_EFORMAT, MOE_EUNSUP. */
int moe_keyfile_public(struct moe_keyfile *k, const char *path, struct moe_err *e);

/*
 * Read a private key: PKCS#8, encrypted too, with the pass phrase in the first
 * line of file `pass` (NULL: none). A file that the group or others may read
 * is refused. What was read is wiped. Errors: as above, MOE_EFORMAT (readable).
 */
int moe_keyfile_private(struct moe_keyfile *k, const char *path, const char *pass,
    struct moe_err *e);

/*
 * The key of the first of n certificates (DER) that a chain through the others
 * binds to one in the PEM file `roots`, at the time `at`. The first must be
 * for signing. Errors: MOE_EFORMAT; 1: there is no such chain, with why in e.
 */
struct moe_keyfile_der { const char *p; size_t n; };
int moe_keyfile_chain(struct moe_keyfile *k, const struct moe_keyfile_der *der, size_t n,
    const char *roots, time_t at, struct moe_err *e);

/*
 * Read the certificates of a PEM file into der[max], *n of them; the first must
 * be of k's key. Errors: of reading, MOE_EFORMAT, MOE_ELIMIT.
 */
int moe_keyfile_certs(const struct moe_keyfile *k, const char *path, struct moe_buf *der,
    size_t max, size_t *n, struct moe_err *e);

/* 0: sig is k's signature of n bytes, 1: it is not. Errors: MOE_ENOMEM. */
int moe_keyfile_check(const struct moe_keyfile *k, const void *p, size_t n,
    const void *sig, size_t sig_n, struct moe_err *e);

/* Add k's signature of n bytes to sig. Errors: MOE_EIO (OpenSSL failed). */
int moe_keyfile_sign(const struct moe_keyfile *k, const void *p, size_t n, struct moe_buf *sig,
    struct moe_err *e);

void moe_keyfile_fini(struct moe_keyfile *k);

#endif
