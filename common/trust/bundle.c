/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the form of bundles and envelopes. Keys and signatures are keyfile's,
 * the statement in the payload is statement's.
 */
#include <string.h>

#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/trust/base64.h"
#include "common/trust/bundle.h"

static const char media[] = "application/vnd.dev.sigstore.bundle.v0.3+json";

static int
bad(const char *name, const char *what, struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: %s", name, what);
}

/* A member in base64. */
static int
bytes(struct moe_json_at at, const char *key, struct moe_buf *to, struct moe_err *e)
{
    const char *s;
    int rc = moe_json_str(at, key, true, NULL, &s, e);

    if (rc == 0 && !moe_base64_get(to, s, strlen(s)))
        rc = moe_err_set(e, to->bad ? MOE_ENOMEM : MOE_EFORMAT, "%s: %s: is not base64", at.name,
            key);
    return rc;
}

static int
read_key(struct moe_bundle *b, struct moe_json_at at, struct moe_err *e)
{
    static const char *const keys[] = { "hint", "rawBytes", "keyDetails", NULL };
    struct moe_buf raw = MOE_BUF_INIT;
    const char *hint;
    int rc = moe_json_only(at, keys, e);

    if (rc == 0 && (rc = moe_json_str(at, "hint", false, "", &hint, e)) == 0) {
        if (strlen(hint) >= sizeof(b->hint))
            rc = bad(at.name, "hint: is too long", e);
        else
            memcpy(b->hint, hint, strlen(hint) + 1);
    }
    if (rc == 0 && b->hint[0] == '\0')      /* before model_signing 1.1 */
        rc = bytes(at, "rawBytes", &raw, e);
    moe_buf_fini(&raw);
    return rc;
}

static int
read_certs(struct moe_bundle *b, struct moe_json_at at, struct moe_err *e)
{
    static const char *const keys[] = { "certificates", NULL }, *const one[] = { "rawBytes", NULL };
    const json_t *list;
    int rc = moe_json_only(at, keys, e);

    if (rc != 0 || (rc = moe_json_arr(at, "certificates", true, &list, e)) != 0)
        return rc;
    if (json_array_size(list) == 0 || json_array_size(list) > MOE_BUNDLE_MAX_CERTS)
        return bad(at.name, "certificates: none, or too many", e);
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        struct moe_json_at c = { json_array_get(list, i), at.name };
        if (!json_is_object(c.o))
            return bad(at.name, "certificates: not an object", e);
        if ((rc = moe_json_only(c, one, e)) == 0)
            rc = bytes(c, "rawBytes", &b->cert[b->n_certs++], e);
    }
    return rc;
}

static int
read_material(struct moe_bundle *b, struct moe_json_at at, struct moe_err *e)
{
    static const char *const keys[] = { "publicKey", "x509CertificateChain", "certificate",
        "tlogEntries", "timestampVerificationData", NULL };
    const json_t *key, *chain, *log, *leaf;
    int rc = moe_json_only(at, keys, e);

    if (rc != 0 || (rc = moe_json_obj(at, "publicKey", false, &key, e)) != 0 ||
        (rc = moe_json_obj(at, "x509CertificateChain", false, &chain, e)) != 0 ||
        (rc = moe_json_obj(at, "certificate", false, &leaf, e)) != 0 ||
        (rc = moe_json_arr(at, "tlogEntries", false, &log, e)) != 0)
        return rc;
    if (leaf != NULL)
        return moe_err_set(e, MOE_EUNSUP, "%s: keyless signatures are not supported", at.name);
    if ((key == NULL) == (chain == NULL))
        return bad(at.name, "verificationMaterial: holds not one key or one chain", e);
    if (key != NULL)
        return read_key(b, (struct moe_json_at){ key, at.name }, e);
    return read_certs(b, (struct moe_json_at){ chain, at.name }, e);
}

static int
read_envelope(struct moe_bundle *b, struct moe_json_at at, struct moe_err *e)
{
    static const char *const keys[] = { "payload", "payloadType", "signatures", NULL };
    static const char *const one[] = { "sig", "keyid", NULL };
    const json_t *list;
    const char *type, *id;
    int rc = moe_json_only(at, keys, e);

    if (rc != 0 || (rc = moe_json_str(at, "payloadType", true, NULL, &type, e)) != 0 ||
        (rc = bytes(at, "payload", &b->payload, e)) != 0 ||
        (rc = moe_json_arr(at, "signatures", true, &list, e)) != 0)
        return rc;
    if (strcmp(type, MOE_BUNDLE_TYPE) != 0)
        return bad(at.name, "payloadType: is not " MOE_BUNDLE_TYPE, e);
    if (json_array_size(list) == 0 || json_array_size(list) > MOE_BUNDLE_MAX_SIGS)
        return bad(at.name, "signatures: none, or too many", e);
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        struct moe_json_at s = { json_array_get(list, i), at.name };
        if (!json_is_object(s.o))
            return bad(at.name, "signatures: not an object", e);
        if ((rc = moe_json_only(s, one, e)) == 0 &&
            (rc = moe_json_str(s, "keyid", false, "", &id, e)) == 0)
            rc = bytes(s, "sig", &b->sig[b->n_sigs++], e);
    }
    return rc;
}

int
moe_bundle_read(struct moe_bundle *b, const char *p, size_t n, const char *name,
    struct moe_err *e)
{
    static const char *const keys[] = { "mediaType", "verificationMaterial", "dsseEnvelope", NULL };
    struct moe_json_at at = { NULL, name };
    const json_t *material, *envelope;
    const char *type;
    json_t *o = NULL;
    int rc;

    if (n > MOE_BUNDLE_MAX)
        return moe_err_set(e, MOE_ELIMIT, "%s: is too large for a bundle", name);
    if ((rc = moe_json_parse(p, n, name, &o, e)) != 0)
        return rc;
    at.o = o;
    if (!json_is_object(o))
        rc = bad(name, "is no bundle", e);
    if (rc == 0 && (rc = moe_json_only(at, keys, e)) == 0 &&
        (rc = moe_json_str(at, "mediaType", true, NULL, &type, e)) == 0 &&
        strcmp(type, media) != 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: mediaType: is not %s", name, media);
    if (rc == 0 && (rc = moe_json_obj(at, "verificationMaterial", true, &material, e)) == 0 &&
        (rc = moe_json_obj(at, "dsseEnvelope", true, &envelope, e)) == 0 &&
        (rc = read_material(b, (struct moe_json_at){ material, name }, e)) == 0)
        rc = read_envelope(b, (struct moe_json_at){ envelope, name }, e);
    if (rc == 0) {
        moe_bundle_pae(&b->pae, b->payload.p != NULL ? b->payload.p : "", b->payload.len);
        if (b->pae.bad)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    json_decref(o);
    return rc;
}

void
moe_bundle_pae(struct moe_buf *pae, const char *payload, size_t n)
{
    moe_buf_fmt(pae, "DSSEv1 %zu %s %zu ", strlen(MOE_BUNDLE_TYPE), MOE_BUNDLE_TYPE, n);
    moe_buf_add(pae, payload, n);
}

static void
write_bytes(struct moe_jsonw *w, const char *key, const struct moe_buf *b)
{
    moe_jsonw_key(w, key);
    moe_buf_byte(w->b, '"');
    moe_base64_put(w->b, b->p, b->len);
    moe_buf_byte(w->b, '"');
    w->comma = true;
}

static void
write_material(const struct moe_bundle *b, struct moe_jsonw *w)
{
    moe_jsonw_key(w, "verificationMaterial");
    moe_jsonw_open(w, '{');
    moe_jsonw_key(w, b->n_certs > 0 ? "x509CertificateChain" : "publicKey");
    moe_jsonw_open(w, '{');
    if (b->n_certs == 0) {
        moe_jsonw_key(w, "hint");
        moe_jsonw_str(w, b->hint, strlen(b->hint));
    } else {
        moe_jsonw_key(w, "certificates");
        moe_jsonw_open(w, '[');
        for (size_t i = 0; i < b->n_certs; i++) {
            moe_jsonw_open(w, '{');
            write_bytes(w, "rawBytes", &b->cert[i]);
            moe_jsonw_close(w, '}');
        }
        moe_jsonw_close(w, ']');
    }
    moe_jsonw_close(w, '}');
    moe_jsonw_key(w, "tlogEntries");
    moe_jsonw_open(w, '[');
    moe_jsonw_close(w, ']');
    moe_jsonw_close(w, '}');
}

void
moe_bundle_write(const struct moe_bundle *b, struct moe_buf *out)
{
    struct moe_jsonw w = { out, false };

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "mediaType");
    moe_jsonw_str(&w, media, strlen(media));
    write_material(b, &w);
    moe_jsonw_key(&w, "dsseEnvelope");
    moe_jsonw_open(&w, '{');
    write_bytes(&w, "payload", &b->payload);
    moe_jsonw_key(&w, "payloadType");
    moe_jsonw_str(&w, MOE_BUNDLE_TYPE, strlen(MOE_BUNDLE_TYPE));
    moe_jsonw_key(&w, "signatures");
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; i < b->n_sigs; i++) {
        moe_jsonw_open(&w, '{');
        write_bytes(&w, "sig", &b->sig[i]);
        moe_jsonw_key(&w, "keyid");
        moe_jsonw_str(&w, "", 0);
        moe_jsonw_close(&w, '}');
    }
    moe_jsonw_close(&w, ']');
    moe_jsonw_close(&w, '}');
    moe_jsonw_close(&w, '}');
    moe_buf_byte(out, '\n');
}

void
moe_bundle_fini(struct moe_bundle *b)
{
    moe_buf_fini(&b->payload);
    moe_buf_fini(&b->pae);
    for (size_t i = 0; i < MOE_BUNDLE_MAX_SIGS; i++)
        moe_buf_fini(&b->sig[i]);
    for (size_t i = 0; i < MOE_BUNDLE_MAX_CERTS; i++)
        moe_buf_fini(&b->cert[i]);
}
