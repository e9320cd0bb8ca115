/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from GGUF metadata to tokenizer.json; what is in that is tokenizer_file.c's. */
#include <stdlib.h>
#include <string.h>

#include "common/base/jsonw.h"
#include "common/engine/gguftokens.h"

#define PREFIX "tokenizer.ggml."

/* Kinds of tokens, by llama.cpp. */
enum { CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

/* How text is cut before BPE; regex NULL: as ByteLevel itself does. */
static const struct pre {
    const char *name, *regex;
    bool nfc, ignore_merges;
} pres[] = {
    { "qwen2", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", true, false },
    { "gpt-4o", "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}|"
        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", false, true },
    { "gpt-2", NULL, false, false },
};

struct tokens {
    const struct moe_gguf *g;
    const char *name;
    const struct moe_gguf_kv *text, *type, *merges;
    const struct pre *pre;
    struct moe_jsonw w;
    struct moe_err *e;
};

/* ---- Reading -------------------------------------------------------------------- */

static int
string_of(const struct moe_gguf *g, const char *name, const char *key, const char **p, size_t *n,
    struct moe_err *e)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, key);

    if (kv == NULL)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: there is none", name, key);
    if (!moe_ggufkv_str(kv, p, n))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a string", name, key);
    return 0;
}

static int
read_list(const struct tokens *t, const char *key, enum moe_gguf_kind kind, uint64_t n,
    const struct moe_gguf_kv **out)
{
    *out = moe_gguf_find_kv(t->g, key);
    if (*out == NULL || !(*out)->array || (*out)->kind != kind)
        return moe_err_set(t->e, MOE_EFORMAT, "%s: %s: not such a list", t->name, key);
    if (n != 0 && (*out)->n != n)
        return moe_err_set(t->e, MOE_EFORMAT, "%s: %s: %llu of %llu tokens", t->name, key,
            (unsigned long long)(*out)->n, (unsigned long long)n);
    return 0;
}

static int
read_kind(struct tokens *t)
{
    const char *model, *pre;
    size_t n, m;
    int rc;

    if ((rc = string_of(t->g, t->name, PREFIX "model", &model, &n, t->e)) != 0)
        return rc;
    if (n != 4 || memcmp(model, "gpt2", 4) != 0)
        return moe_err_set(t->e, MOE_EUNSUP, "%s: " PREFIX "model: %.*s is not read", t->name,
            (int)n, model);
    if ((rc = string_of(t->g, t->name, PREFIX "pre", &pre, &m, t->e)) != 0)
        return rc;
    for (size_t i = 0; i < sizeof(pres) / sizeof(pres[0]); i++)
        if (strlen(pres[i].name) == m && memcmp(pres[i].name, pre, m) == 0)
            t->pre = &pres[i];
    if (t->pre == NULL)
        return moe_err_set(t->e, MOE_EUNSUP, "%s: " PREFIX "pre: %.*s is not read", t->name,
            (int)m, pre);
    return 0;
}

static int64_t
type_of(const struct tokens *t, uint64_t i)
{
    int64_t v = 0;

    (void)moe_ggufkv_int_at(t->type, i, &v);
    return v;
}

/* ---- Writing -------------------------------------------------------------------- */

static void
put_str(struct moe_jsonw *w, const char *key, const char *v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, v, strlen(v));
}

static void
put_bool(struct moe_jsonw *w, const char *key, bool v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_bool(w, v);
}

static void
put_added(struct tokens *t)
{
    struct moe_jsonw *w = &t->w;
    const char *p;
    size_t at = 0, n;

    moe_jsonw_key(w, "added_tokens");
    moe_jsonw_open(w, '[');
    for (uint64_t i = 0; moe_ggufkv_str_next(t->text, &at, &p, &n); i++) {
        int64_t type = type_of(t, i);

        if (type != CONTROL && type != USER_DEFINED)
            continue;
        moe_jsonw_open(w, '{');
        moe_jsonw_key(w, "id");
        moe_jsonw_uint(w, i);
        moe_jsonw_key(w, "content");
        moe_jsonw_str(w, p, n);
        put_bool(w, "single_word", false);
        put_bool(w, "lstrip", false);
        put_bool(w, "rstrip", false);
        put_bool(w, "normalized", false);
        put_bool(w, "special", type == CONTROL);
        moe_jsonw_close(w, '}');
    }
    moe_jsonw_close(w, ']');
}

static void
put_bytelevel(struct moe_jsonw *w, bool regex)
{
    moe_jsonw_open(w, '{');
    put_str(w, "type", "ByteLevel");
    put_bool(w, "add_prefix_space", false);
    put_bool(w, "trim_offsets", false);
    put_bool(w, "use_regex", regex);
    moe_jsonw_close(w, '}');
}

static void
put_pre(struct tokens *t)
{
    struct moe_jsonw *w = &t->w;

    if (t->pre->nfc) {
        moe_jsonw_key(w, "normalizer");
        moe_jsonw_open(w, '{');
        put_str(w, "type", "NFC");
        moe_jsonw_close(w, '}');
    }
    moe_jsonw_key(w, "pre_tokenizer");
    if (t->pre->regex == NULL) {
        put_bytelevel(w, true);
        return;
    }
    moe_jsonw_open(w, '{');
    put_str(w, "type", "Sequence");
    moe_jsonw_key(w, "pretokenizers");
    moe_jsonw_open(w, '[');
    moe_jsonw_open(w, '{');
    put_str(w, "type", "Split");
    moe_jsonw_key(w, "pattern");
    moe_jsonw_open(w, '{');
    put_str(w, "Regex", t->pre->regex);
    moe_jsonw_close(w, '}');
    put_str(w, "behavior", "Isolated");
    put_bool(w, "invert", false);
    moe_jsonw_close(w, '}');
    put_bytelevel(w, false);
    moe_jsonw_close(w, ']');
    moe_jsonw_close(w, '}');
}

/* A token's text as a key: strings are what a key of JSON is. */
static void
put_vocab(struct tokens *t)
{
    struct moe_jsonw *w = &t->w;
    const char *p;
    size_t at = 0, n;

    moe_jsonw_key(w, "vocab");
    moe_jsonw_open(w, '{');
    for (uint64_t i = 0; moe_ggufkv_str_next(t->text, &at, &p, &n); i++) {
        int64_t type = type_of(t, i);

        if (type == CONTROL || type == USER_DEFINED || type == UNUSED)
            continue;
        moe_jsonw_str(w, p, n);
        moe_buf_byte(w->b, ':');
        w->comma = false;
        moe_jsonw_uint(w, i);
    }
    moe_jsonw_close(w, '}');
}

static void
put_model(struct tokens *t)
{
    struct moe_jsonw *w = &t->w;
    const char *p;
    size_t at = 0, n;

    moe_jsonw_key(w, "model");
    moe_jsonw_open(w, '{');
    put_str(w, "type", "BPE");
    put_bool(w, "ignore_merges", t->pre->ignore_merges);
    put_vocab(t);
    moe_jsonw_key(w, "merges");
    moe_jsonw_open(w, '[');
    while (moe_ggufkv_str_next(t->merges, &at, &p, &n))
        moe_jsonw_str(w, p, n);
    moe_jsonw_close(w, ']');
    moe_jsonw_close(w, '}');
}

int
moe_gguftokens_json(const struct moe_gguf *g, const char *name, struct moe_buf *json,
    struct moe_err *e)
{
    struct tokens t = { .g = g, .name = name, .w = { json, false }, .e = e };
    const struct moe_gguf_kv *bos = moe_gguf_find_kv(g, PREFIX "add_bos_token");
    bool add = false;
    int rc;

    if ((rc = read_kind(&t)) != 0 ||
        (rc = read_list(&t, PREFIX "tokens", MOE_GGUF_STRING, 0, &t.text)) != 0 ||
        (rc = read_list(&t, PREFIX "token_type", MOE_GGUF_I32, t.text->n, &t.type)) != 0 ||
        (rc = read_list(&t, PREFIX "merges", MOE_GGUF_STRING, 0, &t.merges)) != 0)
        return rc;
    if (bos != NULL && moe_ggufkv_bool(bos, &add) && add)
        return moe_err_set(e, MOE_EUNSUP, "%s: " PREFIX "add_bos_token: true is not read", name);
    moe_jsonw_open(&t.w, '{');
    put_str(&t.w, "version", "1.0");
    put_added(&t);
    put_pre(&t);
    moe_jsonw_key(&t.w, "decoder");
    put_bytelevel(&t.w, false);
    put_model(&t);
    moe_jsonw_close(&t.w, '}');
    return json->bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name) : 0;
}

/* ---- For templates -------------------------------------------------------------- */

/* The text of the token under a key, if there is one. */
static void
put_token(struct moe_jsonw *w, const struct moe_gguf *g, const char *key, const char *to)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, key);
    const struct moe_gguf_kv *text = moe_gguf_find_kv(g, PREFIX "tokens");
    int64_t id, i = 0;
    const char *p;
    size_t at = 0, n;

    if (kv == NULL || text == NULL || !moe_ggufkv_int(kv, &id))
        return;
    while (moe_ggufkv_str_next(text, &at, &p, &n))
        if (i++ == id) {
            moe_jsonw_key(w, to);
            moe_jsonw_str(w, p, n);
            return;
        }
}

int
moe_gguftokens_config(const struct moe_gguf *g, const char *name, struct moe_buf *json,
    struct moe_err *e)
{
    const struct moe_gguf_kv *kv = moe_gguf_find_kv(g, "tokenizer.chat_template");
    struct moe_jsonw w = { json, false };
    const char *p;
    size_t n;

    moe_jsonw_open(&w, '{');
    put_token(&w, g, PREFIX "bos_token_id", "bos_token");
    put_token(&w, g, PREFIX "eos_token_id", "eos_token");
    put_token(&w, g, PREFIX "unknown_token_id", "unk_token");
    put_token(&w, g, PREFIX "padding_token_id", "pad_token");
    if (kv != NULL && !moe_ggufkv_str(kv, &p, &n))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a string", name, kv->key);
    if (kv != NULL) {
        moe_jsonw_key(&w, "chat_template");
        moe_jsonw_str(&w, p, n);
    }
    moe_jsonw_close(&w, '}');
    return json->bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name) : 0;
}
