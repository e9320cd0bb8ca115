/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns keys, certificate chains and the signatures made with them. It knows no
 * envelope: what is signed is bytes.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "common/base/read.h"
#include "common/trust/keyfile.h"

/* A pass phrase's longest line. */
#define PASS_MAX 1024

static const struct kind { const char *group, *hash; } kinds[] = {
    { "prime256v1", "SHA256" }, { "P-256", "SHA256" }, { "secp384r1", "SHA384" },
    { "P-384", "SHA384" }, { "secp521r1", "SHA512" }, { "P-521", "SHA512" }, { "SM2", "SM3" },
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* The name of the key's hash, "" for Ed25519, NULL for a kind that is not taken. */
static const char *
hash_of(EVP_PKEY *key)
{
    char group[64];
    size_t n;

    if (EVP_PKEY_is_a(key, "ED25519"))
        return "";
    if (EVP_PKEY_is_a(key, "SM2"))
        return "SM3";
    if (!EVP_PKEY_is_a(key, "EC") || EVP_PKEY_get_group_name(key, group, sizeof(group), &n) != 1)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].group, group) == 0)
            return kinds[i].hash;
    return NULL;
}

/* Take key over: its kind and its hint. */
static int
take(struct moe_keyfile *k, EVP_PKEY *key, const char *path, struct moe_err *e)
{
    unsigned char sum[MOE_DIGEST_LEN];
    BIO *b;
    char *text;
    long n;
    int rc = 0;

    k->pkey = key;
    if (hash_of(key) == NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: a kind of key that is not taken (P-256, P-384, "
            "P-521, Ed25519, SM2 are)", path);
    if ((b = BIO_new(BIO_s_mem())) == NULL)
        return no_memory(e);
    if (PEM_write_bio_PUBKEY(b, key) != 1 || (n = BIO_get_mem_data(b, &text)) <= 0)
        rc = no_memory(e);
    else if ((rc = moe_digest_of(text, (size_t)n, sum, e)) == 0)
        (void)moe_digest_hex(sum, k->hint);
    BIO_free(b);
    return rc;
}

int
moe_keyfile_public(struct moe_keyfile *k, const char *path, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    BIO *in = NULL;
    EVP_PKEY *key = NULL;
    int rc = moe_read_file(path, MOE_KEYFILE_MAX, &b, e);

    if (rc == 0 && (in = BIO_new_mem_buf(b.len > 0 ? b.p : "", (int)b.len)) == NULL)
        rc = no_memory(e);
    if (rc == 0 && (key = PEM_read_bio_PUBKEY(in, NULL, NULL, NULL)) == NULL)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no public key in PEM", path);
    if (rc == 0)
        rc = take(k, key, path, e);
    ERR_clear_error();
    BIO_free(in);
    moe_buf_fini(&b);
    return rc;
}

/* The answer to OpenSSL's question: never one at a terminal. */
static int
phrase(char *to, int size, int writing, void *ctx)
{
    const char *pass = ctx;
    size_t n = pass != NULL ? strcspn(pass, "\r\n") : 0;

    (void)writing;
    if (pass == NULL || n > (size_t)size)
        return -1;
    memcpy(to, pass, n);
    return (int)n;
}

/* Read all of a file that only its owner may read into p; *n bytes. */
static int
read_secret(const char *path, char *p, size_t max, size_t *n, struct moe_err *e)
{
    struct stat st;
    int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    *n = 0;
    if (fd < 0)
        return moe_err_set(e, MOE_EIO, "%s: cannot be opened", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no regular file", path);
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: others than its owner may read it (chmod 600)", path);
    else if (st.st_size >= (off_t)max)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: is too large", path);
    else if ((rc = moe_read_at(fd, path, p, (size_t)st.st_size, 0, e)) == 0)
        *n = (size_t)st.st_size;
    (void)close(fd);
    return rc;
}

int
moe_keyfile_private(struct moe_keyfile *k, const char *path, const char *pass, struct moe_err *e)
{
    enum { ROOM = 64 << 10 };
    char word[PASS_MAX] = "";
    char *text = OPENSSL_zalloc(ROOM);
    size_t n = 0, word_n;
    BIO *in = NULL;
    EVP_PKEY *key = NULL;
    int rc = text == NULL ? no_memory(e) : read_secret(path, text, ROOM, &n, e);

    if (rc == 0 && pass != NULL)
        rc = read_secret(pass, word, sizeof(word), &word_n, e);
    if (rc == 0 && (in = BIO_new_mem_buf(text, (int)n)) == NULL)
        rc = no_memory(e);
    if (rc == 0 && (key = PEM_read_bio_PrivateKey(in, NULL, phrase, pass != NULL ? word : NULL)) ==
        NULL)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no private key in PEM, or its pass phrase is "
            "another", path);
    if (rc == 0)
        rc = take(k, key, path, e);
    ERR_clear_error();
    BIO_free(in);
    OPENSSL_cleanse(word, sizeof(word));
    OPENSSL_clear_free(text, ROOM);
    return rc;
}

/* Whether the certificate may sign: one of the two usages must say so and none the contrary. */
static bool
may_sign(X509 *x)
{
    uint32_t flags = X509_get_extension_flags(x), usage = X509_get_key_usage(x);

    if ((flags & (EXFLAG_KUSAGE | EXFLAG_XKUSAGE)) == 0)
        return false;
    if ((flags & EXFLAG_KUSAGE) != 0 && (usage & KU_DIGITAL_SIGNATURE) == 0)
        return false;
    return (flags & EXFLAG_XKUSAGE) == 0 ||
        (X509_get_extended_key_usage(x) & XKU_CODE_SIGN) != 0;
}

static int
judge(struct moe_keyfile *k, X509 *leaf, STACK_OF(X509) *rest, const char *roots, time_t at,
    struct moe_err *e)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    EVP_PKEY *key = NULL;
    int rc = store == NULL || ctx == NULL ? no_memory(e) : 0;

    if (rc == 0 && X509_STORE_load_file(store, roots) != 1)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: holds no certificates in PEM", roots);
    if (rc == 0 && X509_STORE_CTX_init(ctx, store, leaf, rest) != 1)
        rc = no_memory(e);
    if (rc == 0) {
        X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), at);
        if (X509_verify_cert(ctx) != 1) {
            (void)moe_err_set(e, MOE_EFORMAT, "certificate %d of the chain: %s",
                X509_STORE_CTX_get_error_depth(ctx),
                X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
            rc = 1;
        } else if (!may_sign(leaf)) {
            (void)moe_err_set(e, MOE_EFORMAT, "the certificate is not for signing");
            rc = 1;
        } else if ((key = X509_get_pubkey(leaf)) == NULL)
            rc = moe_err_set(e, MOE_EUNSUP, "the certificate's key cannot be used");
        else
            rc = take(k, key, "certificate", e);
    }
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return rc;
}

int
moe_keyfile_chain(struct moe_keyfile *k, const struct moe_keyfile_der *der, size_t n,
    const char *roots, time_t at, struct moe_err *e)
{
    STACK_OF(X509) *rest = sk_X509_new_null();
    X509 *leaf = NULL;
    int rc = rest == NULL ? no_memory(e) : 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const unsigned char *p = (const unsigned char *)der[i].p, *end = p + der[i].n;
        X509 *x = d2i_X509(NULL, &p, (long)der[i].n);
        if (x == NULL || p != end) {
            X509_free(x);
            rc = moe_err_set(e, MOE_EFORMAT, "certificate %zu: is not DER", i);
        } else if (i == 0)
            leaf = x;
        else if (sk_X509_push(rest, x) <= 0) {
            X509_free(x);
            rc = no_memory(e);
        }
    }
    if (rc == 0)
        rc = leaf == NULL ? moe_err_set(e, MOE_EFORMAT, "no certificate") :
            judge(k, leaf, rest, roots, at, e);
    ERR_clear_error();
    X509_free(leaf);
    sk_X509_pop_free(rest, X509_free);
    return rc;
}

/* A context for the key, or NULL. */
static EVP_MD_CTX *
begin(const struct moe_keyfile *k, bool sign)
{
    const char *hash = hash_of(k->pkey);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    EVP_PKEY_CTX *pc = c != NULL ? EVP_PKEY_CTX_new_from_pkey(NULL, k->pkey, NULL) : NULL;
    bool ok = pc != NULL;

    /* Only OpenSSL's own empty default would be used without it. */
    if (ok && strcmp(hash, "SM3") == 0)
        ok = EVP_PKEY_CTX_set1_id(pc, MOE_KEYFILE_SM2_ID, (int)strlen(MOE_KEYFILE_SM2_ID)) == 1;
    if (ok) {
        const char *md = hash[0] != '\0' ? hash : NULL;
        EVP_MD_CTX_set_pkey_ctx(c, pc);
        ok = sign ? EVP_DigestSignInit_ex(c, NULL, md, NULL, NULL, k->pkey, NULL) == 1 :
            EVP_DigestVerifyInit_ex(c, NULL, md, NULL, NULL, k->pkey, NULL) == 1;
    }
    if (!ok) {
        EVP_MD_CTX_free(c);
        EVP_PKEY_CTX_free(pc);
        return NULL;
    }
    return c;
}

static void
end(EVP_MD_CTX *c)
{
    EVP_PKEY_CTX *pc = EVP_MD_CTX_get_pkey_ctx(c);

    EVP_MD_CTX_free(c);         /* a context that was set stays the caller's */
    EVP_PKEY_CTX_free(pc);
}

int
moe_keyfile_check(const struct moe_keyfile *k, const void *p, size_t n, const void *sig,
    size_t sig_n, struct moe_err *e)
{
    EVP_MD_CTX *c = begin(k, false);
    int ok;

    if (c == NULL)
        return no_memory(e);
    ok = EVP_DigestVerify(c, sig, sig_n, p, n);
    end(c);
    ERR_clear_error();
    return ok == 1 ? 0 : 1;
}

int
moe_keyfile_sign(const struct moe_keyfile *k, const void *p, size_t n, struct moe_buf *sig,
    struct moe_err *e)
{
    EVP_MD_CTX *c = begin(k, true);
    size_t len = 0;
    char *to;
    int rc = 0;

    if (c == NULL)
        return no_memory(e);
    if (EVP_DigestSign(c, NULL, &len, p, n) != 1 || (to = moe_buf_room(sig, len)) == NULL ||
        EVP_DigestSign(c, (unsigned char *)to, &len, p, n) != 1)
        rc = moe_err_set(e, MOE_EIO, "OpenSSL cannot sign with this key");
    else {
        sig->len += len;
        sig->p[sig->len] = '\0';
    }
    end(c);
    ERR_clear_error();
    return rc;
}

int
moe_keyfile_certs(const struct moe_keyfile *k, const char *path, struct moe_buf *der, size_t max,
    size_t *n, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    BIO *in = NULL;
    X509 *x = NULL;
    int rc = moe_read_file(path, MOE_KEYFILE_MAX, &b, e);

    *n = 0;
    if (rc == 0 && (in = BIO_new_mem_buf(b.len > 0 ? b.p : "", (int)b.len)) == NULL)
        rc = no_memory(e);
    while (rc == 0 && (x = PEM_read_bio_X509(in, NULL, NULL, NULL)) != NULL) {
        unsigned char *p = NULL;
        int len = i2d_X509(x, &p);
        if (*n == max)
            rc = moe_err_set(e, MOE_ELIMIT, "%s: too many certificates", path);
        else if (*n == 0 && X509_check_private_key(x, k->pkey) != 1)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: its first certificate is of another key", path);
        else if (len > 0)
            moe_buf_add(&der[(*n)++], p, (size_t)len);
        OPENSSL_free(p);
        X509_free(x);
    }
    if (rc == 0 && *n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: holds no certificates in PEM", path);
    ERR_clear_error();
    BIO_free(in);
    moe_buf_fini(&b);
    return rc;
}

void
moe_keyfile_fini(struct moe_keyfile *k)
{
    EVP_PKEY_free(k->pkey);
    k->pkey = NULL;
}
