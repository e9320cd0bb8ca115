/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the moe.packed keys of __metadata__ and the names of records. What a
 * record holds is packed.c's, what a header is safet.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/formats/packedmeta.h"

#define KEY_LAYOUT "moe.packed"
#define KEY_VERSION "moe.packed.version"
#define KEY_SCHEMES "moe.packed.schemes"
#define INFIX ".packed."

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static const char *const kinds[] = {
    [MOE_PACKED_I4] = "i4", [MOE_PACKED_I8] = "i8", [MOE_PACKED_BF16] = "bf16",
    [MOE_PACKED_E2M1] = "e2m1", [MOE_PACKED_E4M3] = "e4m3"
};

bool
moe_packedmeta_bytes(const struct moe_packedmeta_scheme *s, uint64_t *bytes)
{
    struct moe_packed_expert x;

    if (!s->expert)
        return moe_packed_record_bytes(&s->matrix, bytes);
    if (moe_packed_expert_layout(&s->matrix, &s->down, &x, NULL) != 0)
        return false;
    *bytes = x.bytes;
    return true;
}

/* ---- Writing -------------------------------------------------------------------- */

static void
key_uint(struct moe_jsonw *w, const char *key, uint64_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

static void
key_str(struct moe_jsonw *w, const char *key, const char *v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, v, strlen(v));
}

static void
write_matrix(struct moe_jsonw *w, const char *key, const struct moe_packed *m)
{
    moe_jsonw_key(w, key);
    moe_jsonw_open(w, '{');
    key_str(w, "kind", kinds[m->kind]);
    key_uint(w, "rows", m->rows);
    key_uint(w, "cols", m->cols);
    if (m->kind != MOE_PACKED_BF16) {
        key_str(w, "scale", moe_dtype_name(m->scale_dtype));
        key_uint(w, "group", m->group);
        moe_jsonw_key(w, "zeros");
        moe_jsonw_bool(w, m->zeros);
    }
    moe_jsonw_key(w, "bias");
    moe_jsonw_bool(w, m->bias);
    moe_jsonw_close(w, '}');
}

int
moe_packedmeta_write(const struct moe_packedmeta_scheme *s, size_t n, struct moe_buf *json,
    const char *meta[static MOE_PACKEDMETA_STRINGS], struct moe_err *e)
{
    struct moe_jsonw w = { json, false };
    uint64_t bytes;

    if (n > MOE_PACKEDMETA_MAX_SCHEMES)
        return moe_err_set(e, MOE_ELIMIT, "more than %d schemes of packed records",
            MOE_PACKEDMETA_MAX_SCHEMES);
    moe_buf_clear(json);
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; i < n; i++) {
        if (!moe_packedmeta_bytes(&s[i], &bytes))
            return moe_err_set(e, MOE_EUNSUP, "scheme %zu: not a shape of the packed layout", i);
        moe_jsonw_open(&w, '{');
        key_str(&w, "record", s[i].expert ? "expert" : "matrix");
        write_matrix(&w, s[i].expert ? "gate_up" : "matrix", &s[i].matrix);
        if (s[i].expert)
            write_matrix(&w, "down", &s[i].down);
        moe_jsonw_close(&w, '}');
    }
    moe_jsonw_close(&w, ']');
    if (json->bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    meta[0] = KEY_LAYOUT;
    meta[1] = MOE_PACKEDMETA_LAYOUT;
    meta[2] = KEY_VERSION;
    meta[3] = TEXT(MOE_PACKED_VERSION);
    meta[4] = KEY_SCHEMES;
    meta[5] = json->p;
    meta[6] = NULL;
    return 0;
}

void
moe_packedmeta_name(struct moe_buf *b, const char *module, size_t scheme)
{
    moe_buf_fmt(b, "%s" INFIX "%zu", module, scheme);
}

/* ---- Reading -------------------------------------------------------------------- */

/* Of the scales: a kind without them may not have their keys either. */
static int
read_scales(struct moe_json_at at, struct moe_packed *m, struct moe_err *e)
{
    static const char *const plain[] = { "kind", "rows", "cols", "bias", NULL };
    const char *scale;
    int64_t group;
    int rc;

    if (m->kind == MOE_PACKED_BF16) {
        m->scale_dtype = MOE_BF16;
        return moe_json_only(at, plain, e);
    }
    if ((rc = moe_json_str(at, "scale", true, NULL, &scale, e)) != 0 ||
        (rc = moe_json_int(at, "group", true, 0, 1, INT64_MAX, &group, e)) != 0 ||
        (rc = moe_json_bool(at, "zeros", false, false, &m->zeros, e)) != 0)
        return rc;
    if (strcmp(scale, "BF16") != 0 && strcmp(scale, "F16") != 0 && strcmp(scale, "F32") != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: scale: %s is not BF16, F16 or F32", at.name,
            scale);
    m->scale_dtype = scale[0] == 'B' ? MOE_BF16 : scale[1] == '1' ? MOE_F16 : MOE_F32;
    m->group = (uint64_t)group;
    return 0;
}

/* One matrix of a scheme. */
static int
read_matrix(struct moe_json_at scheme, const char *key, struct moe_packed *m, struct moe_err *e)
{
    static const char *const keys[] = { "kind", "rows", "cols", "scale", "group", "zeros", "bias",
        NULL };
    char where[320];
    struct moe_json_at at = { NULL, where };
    const char *kind;
    int64_t rows, cols;
    size_t i = 0;
    int rc = moe_json_obj(scheme, key, true, &at.o, e);

    (void)snprintf(where, sizeof(where), "%.280s.%s", scheme.name, key);
    *m = (struct moe_packed){ .kind = MOE_PACKED_I4 };
    if (rc != 0 || (rc = moe_json_only(at, keys, e)) != 0 ||
        (rc = moe_json_str(at, "kind", true, NULL, &kind, e)) != 0 ||
        (rc = moe_json_int(at, "rows", true, 0, 1, INT64_MAX, &rows, e)) != 0 ||
        (rc = moe_json_int(at, "cols", true, 0, 1, INT64_MAX, &cols, e)) != 0 ||
        (rc = moe_json_bool(at, "bias", false, false, &m->bias, e)) != 0)
        return rc;
    while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[i], kind) != 0)
        i++;
    if (i == sizeof(kinds) / sizeof(kinds[0]))
        return moe_err_set(e, MOE_EFORMAT, "%s: kind: %s is not a kind of the layout", where, kind);
    m->kind = (enum moe_packed_kind)i;
    m->rows = (uint64_t)rows;
    m->cols = (uint64_t)cols;
    return read_scales(at, m, e);
}

static int
read_scheme(struct moe_json_at at, struct moe_packedmeta_scheme *s, struct moe_err *e)
{
    static const char *const expert[] = { "record", "gate_up", "down", NULL };
    static const char *const matrix[] = { "record", "matrix", NULL };
    const char *record;
    uint64_t bytes;
    int rc;

    if (!json_is_object(at.o))
        return moe_err_set(e, MOE_EFORMAT, "%s: not an object", at.name);
    if ((rc = moe_json_str(at, "record", true, NULL, &record, e)) != 0)
        return rc;
    s->expert = strcmp(record, "expert") == 0;
    if (!s->expert && strcmp(record, "matrix") != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: record: %s is not expert or matrix", at.name,
            record);
    if ((rc = moe_json_only(at, s->expert ? expert : matrix, e)) != 0 ||
        (rc = read_matrix(at, s->expert ? "gate_up" : "matrix", &s->matrix, e)) != 0 ||
        (s->expert && (rc = read_matrix(at, "down", &s->down, e)) != 0))
        return rc;
    if (!moe_packedmeta_bytes(s, &bytes))
        return moe_err_set(e, MOE_EFORMAT, "%s: not a shape of the packed layout", at.name);
    return 0;
}

static int
read_schemes(const char *text, size_t len, const char *name, struct moe_packedmeta *p,
    struct moe_err *e)
{
    char where[256];
    json_t *tree = NULL;
    int rc;

    (void)snprintf(where, sizeof(where), "%.200s: " KEY_SCHEMES, name);
    if (len > MOE_PACKEDMETA_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %zu bytes", where,
            MOE_PACKEDMETA_MAX_BYTES);
    if ((rc = moe_json_parse(text, len, where, &tree, e)) != 0)
        return rc;
    p->n = json_array_size(tree);
    if (!json_is_array(tree))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: not a list", where);
    else if (p->n > MOE_PACKEDMETA_MAX_SCHEMES)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: more than %d", where, MOE_PACKEDMETA_MAX_SCHEMES);
    else if ((p->schemes = calloc(p->n + 1, sizeof(*p->schemes))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", where);
    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        (void)snprintf(where, sizeof(where), "%.200s: " KEY_SCHEMES "[%zu]", name, i);
        rc = read_scheme((struct moe_json_at){ json_array_get(tree, i), where }, &p->schemes[i],
            e);
    }
    json_decref(tree);
    return rc;
}

/* A value of __metadata__ with its length, so that a NUL inside does not end it. */
static const struct moe_safet_pair *
pair_of(const struct moe_safet *s, const char *key)
{
    const struct moe_safet_pair *p;

    for (size_t i = 0; (p = moe_safet_meta_at(s, i)) != NULL; i++)
        if (p->key_len == strlen(key) && memcmp(p->key, key, p->key_len) == 0)
            return p;
    return NULL;
}

/* The value of key is `want`, or this is another layout. */
static int
must_be(const struct moe_safet *s, const char *key, const char *want, const char *name,
    struct moe_err *e)
{
    const struct moe_safet_pair *p = pair_of(s, key);

    if (p == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s is missing", name, key);
    if (p->value_len != strlen(want) || memcmp(p->value, want, p->value_len) != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: %s: %s is not read", name, key, p->value);
    return 0;
}

int
moe_packedmeta_read(const struct moe_safet *s, const char *name, struct moe_packedmeta **out,
    struct moe_err *e)
{
    const struct moe_safet_pair *schemes = pair_of(s, KEY_SCHEMES);
    struct moe_packedmeta *p;
    int rc;

    *out = NULL;
    if (pair_of(s, KEY_LAYOUT) == NULL)
        return 0;
    if ((rc = must_be(s, KEY_LAYOUT, MOE_PACKEDMETA_LAYOUT, name, e)) != 0 ||
        (rc = must_be(s, KEY_VERSION, TEXT(MOE_PACKED_VERSION), name, e)) != 0)
        return rc;
    if (schemes == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: " KEY_SCHEMES " is missing", name);
    if ((p = calloc(1, sizeof(*p))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if ((rc = read_schemes(schemes->value, schemes->value_len, name, p, e)) == 0)
        *out = p;
    else
        moe_packedmeta_free(p);
    return rc;
}

void
moe_packedmeta_free(struct moe_packedmeta *p)
{
    if (p == NULL)
        return;
    free(p->schemes);
    free(p);
}

/* ---- Records -------------------------------------------------------------------- */

/* Split MODULE.packed.N; false: not such a name. N is SIZE_MAX where it is no scheme's. */
static bool
split(const struct moe_tensor *t, size_t *module, size_t *n)
{
    size_t len = t->name_len, digits = 0, infix = strlen(INFIX);

    while (digits < len && t->name[len - 1 - digits] >= '0' && t->name[len - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || len - digits <= infix ||
        memcmp(t->name + len - digits - infix, INFIX, infix) != 0)
        return false;
    *module = len - digits - infix;
    *n = 0;
    for (size_t i = len - digits; i < len && *n <= MOE_PACKEDMETA_MAX_SCHEMES; i++)
        *n = *n * 10 + (size_t)(t->name[i] - '0');
    if (digits > 1 && t->name[len - digits] == '0')
        *n = SIZE_MAX;
    return true;
}

int
moe_packedmeta_record(const struct moe_packedmeta *p, const struct moe_safet *s,
    const struct moe_tensor *t, const char *name, const struct moe_packedmeta_scheme **scheme,
    size_t *module, struct moe_err *e)
{
    uint64_t bytes = 0;
    size_t i;

    *scheme = NULL;
    if (!split(t, module, &i))
        return 0;
    if (i >= p->n)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: no such scheme", name, t->name);
    if (t->dtype != MOE_U8 || t->rank != 1)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a row of U8", name, t->name);
    if (!moe_packedmeta_bytes(&p->schemes[i], &bytes) || t->shape[0] != bytes)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %" PRIu64 " bytes, not %" PRIu64, name,
            t->name, t->shape[0], bytes);
    if ((moe_safet_data_at(s) + t->begin) % MOE_PACKED_ALIGN != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not at a multiple of %d", name, t->name,
            MOE_PACKED_ALIGN);
    *scheme = &p->schemes[i];
    return 0;
}
