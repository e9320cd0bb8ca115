/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of tokenizer.json. The vocabulary and the merges, which are
 * nearly all of it, are pulled straight into their tables; the other members
 * are small and read as trees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/scan.h"
#include "common/engine/tokenizer_file.h"

struct part { const char *p; size_t n; };

enum { ADDED, NORMALIZER, PRE_TOKENIZER, MODEL, POST_PROCESSOR, DECODER, N_TOP };
static const char *const TOP[N_TOP] = { "added_tokens", "normalizer", "pre_tokenizer", "model",
    "post_processor", "decoder" };

enum { TYPE, DROPOUT, UNK, PREFIX, SUFFIX, FUSE, FALLBACK, IGNORE, VOCAB, MERGES, N_MODEL };
static const char *const IN_MODEL[N_MODEL] = { "type", "dropout", "unk_token",
    "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback",
    "ignore_merges", "vocab", "merges" };

struct file {
    struct moe_tokenizer *t;
    const char *json;
    size_t n;
    const char *name;
    struct moe_err *e;
    struct part top[N_TOP], model[N_MODEL];
};

/* ---- Parts ---------------------------------------------------------------------- */

/* A scanner over part p whose messages count lines from the start of the file. */
static void
begin(struct moe_scan *s, const struct file *f, const struct part *p)
{
    moe_scan_init(s, p->p, p->n, f->name);
    s->start = f->json;
}

/* Where the members of object p with the given names are. */
static int
find_parts(struct file *f, struct part whole, const char *const *names, size_t n_names,
    struct part *out)
{
    struct moe_scan s;
    bool more;
    int rc;

    begin(&s, f, &whole);
    rc = moe_scan_enter(&s, MOE_SCAN_OBJECT, f->e);
    while (rc == 0 && (rc = moe_scan_next(&s, &more, f->e)) == 0 && more) {
        enum moe_scan_kind kind;
        size_t i = 0;

        while (i < n_names && strcmp(s.text.p, names[i]) != 0)
            i++;
        if (i < n_names && out[i].p != NULL)
            rc = moe_scan_fail(&s, f->e, "duplicate key");
        if (rc != 0 || (rc = moe_scan_kind(&s, &kind, f->e)) != 0)
            break;
        if (i < n_names)
            out[i].p = s.p;
        rc = moe_scan_skip(&s, f->e);
        if (i < n_names)
            out[i].n = (size_t)(s.p - out[i].p);
    }
    if (rc == 0)
        rc = moe_scan_end(&s, f->e);
    moe_scan_fini(&s);
    return rc;
}

/* A small member as a tree; *out is NULL when it is missing or null. */
static int
tree(const struct file *f, int which, char *name, size_t n_name, json_t **out)
{
    const struct part *p = &f->top[which];
    int rc;

    *out = NULL;
    if (snprintf(name, n_name, "%s: %s", f->name, TOP[which]) >= (int)n_name)
        memcpy(name + n_name - 4, "...", 4);
    if (p->p == NULL)
        return 0;
    if ((rc = moe_json_parse(p->p, p->n, name, out, f->e)) != 0)
        return rc;
    if (json_is_null(*out)) {
        json_decref(*out);
        *out = NULL;
    }
    return 0;
}

/* ---- The model -------------------------------------------------------------------- */

static int
get_flag(struct file *f, int which, bool *out)
{
    const struct part *p = &f->model[which];
    enum moe_scan_kind kind;
    struct moe_scan s;
    int rc;

    *out = false;
    if (p->p == NULL)
        return 0;
    begin(&s, f, p);
    if ((rc = moe_scan_kind(&s, &kind, f->e)) == 0)
        rc = kind == MOE_SCAN_NULL ? 0 : moe_scan_bool(&s, out, f->e);
    moe_scan_fini(&s);
    return rc;
}

/* A string member into out, with *given false when it is missing or null. */
static int
get_text(struct file *f, int which, struct moe_buf *out, bool *given)
{
    const struct part *p = &f->model[which];
    enum moe_scan_kind kind;
    struct moe_scan s;
    int rc;

    *given = false;
    moe_buf_clear(out);
    if (p->p == NULL)
        return 0;
    begin(&s, f, p);
    rc = moe_scan_kind(&s, &kind, f->e);
    if (rc == 0 && kind != MOE_SCAN_NULL && (rc = moe_scan_str(&s, f->e)) == 0) {
        moe_buf_add(out, s.text.p, s.text.len);
        *given = true;
    }
    moe_scan_fini(&s);
    return rc == 0 && out->bad ? moe_err_set(f->e, MOE_ENOMEM, "%s: out of memory", f->name) : rc;
}

static int
read_vocab(struct file *f)
{
    struct moe_scan s;
    bool more;
    int rc;

    if (f->model[VOCAB].p == NULL)
        return moe_err_set(f->e, MOE_EFORMAT, "%s: model: no vocab", f->name);
    begin(&s, f, &f->model[VOCAB]);
    rc = moe_scan_enter(&s, MOE_SCAN_OBJECT, f->e);
    while (rc == 0 && (rc = moe_scan_next(&s, &more, f->e)) == 0 && more) {
        uint64_t id;

        if ((rc = moe_scan_uint(&s, &id, f->e)) != 0)
            break;
        /* An id costs memory: there cannot be more than the file has bytes. */
        rc = moe_vocab_add(&f->t->vocab, s.text.p, s.text.len, id, f->n, f->e);
        if (rc != 0)
            moe_err_at(f->e, "%s: model: vocab", f->name);
    }
    moe_scan_fini(&s);
    return rc;
}

/* One merge: ["a", "b"] or "a b". left is room. */
static int
read_merge(struct file *f, struct moe_scan *s, struct moe_buf *left)
{
    enum moe_scan_kind kind;
    const char *space;
    bool more;
    int rc;

    if ((rc = moe_scan_kind(s, &kind, f->e)) != 0)
        return rc;
    if (kind != MOE_SCAN_ARRAY) {
        if ((rc = moe_scan_str(s, f->e)) != 0)
            return rc;
        if (strncmp(s->text.p, "#version", strlen("#version")) == 0)
            return 0;
        space = memchr(s->text.p, ' ', s->text.len);
        if (space == NULL || strchr(space + 1, ' ') != NULL)
            return moe_scan_fail(s, f->e, "a merge has two parts");
        return moe_bpe_add(&f->t->bpe, s->text.p, (size_t)(space - s->text.p), space + 1,
            s->text.len - (size_t)(space + 1 - s->text.p), f->e);
    }
    moe_buf_clear(left);
    if ((rc = moe_scan_enter(s, MOE_SCAN_ARRAY, f->e)) != 0 ||
        (rc = moe_scan_next(s, &more, f->e)) != 0)
        return rc;
    if (!more)
        return moe_scan_fail(s, f->e, "a merge has two parts");
    if ((rc = moe_scan_str(s, f->e)) != 0)
        return rc;
    moe_buf_add(left, s->text.p, s->text.len);
    if (left->bad)
        return moe_err_set(f->e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_scan_next(s, &more, f->e)) != 0)
        return rc;
    if (!more)
        return moe_scan_fail(s, f->e, "a merge has two parts");
    if ((rc = moe_scan_str(s, f->e)) != 0 ||
        (rc = moe_bpe_add(&f->t->bpe, left->p, left->len, s->text.p, s->text.len, f->e)) != 0 ||
        (rc = moe_scan_next(s, &more, f->e)) != 0)
        return rc;
    return more ? moe_scan_fail(s, f->e, "a merge has two parts") : 0;
}

static int
read_merges(struct file *f)
{
    struct moe_buf left = MOE_BUF_INIT;
    struct moe_scan s;
    bool more;
    int rc;

    if (f->model[MERGES].p == NULL)
        return moe_err_set(f->e, MOE_EFORMAT, "%s: model: no merges", f->name);
    begin(&s, f, &f->model[MERGES]);
    rc = moe_scan_enter(&s, MOE_SCAN_ARRAY, f->e);
    for (size_t i = 0; rc == 0 && (rc = moe_scan_next(&s, &more, f->e)) == 0 && more; i++)
        if ((rc = read_merge(f, &s, &left)) != 0)
            moe_err_at(f->e, "%s: model: merge %zu", f->name, i);
    moe_scan_fini(&s);
    moe_buf_fini(&left);
    return rc;
}

/* What would change the result and is not done here. */
static int
check_model(struct file *f, struct moe_buf *b)
{
    static const int affix[] = { PREFIX, SUFFIX };
    bool given;
    int rc;

    if ((rc = get_text(f, TYPE, b, &given)) != 0)
        return rc;
    if (given && strcmp(b->p, "BPE") != 0)
        return moe_err_set(f->e, MOE_EUNSUP, "%s: model: type %s is not supported", f->name, b->p);
    for (int i = 0; i < 2; i++) {
        if ((rc = get_text(f, affix[i], b, &given)) != 0)
            return rc;
        if (given && b->len > 0)
            return moe_err_set(f->e, MOE_EUNSUP, "%s: model: %s is not supported", f->name,
                IN_MODEL[affix[i]]);
    }
    return 0;
}

static int
check_dropout(struct file *f)
{
    const struct part *p = &f->model[DROPOUT];
    enum moe_scan_kind kind;
    struct moe_scan s;
    double v = 0;
    int rc;

    if (p->p == NULL)
        return 0;
    begin(&s, f, p);
    rc = moe_scan_kind(&s, &kind, f->e);
    if (rc == 0 && kind != MOE_SCAN_NULL)
        rc = moe_scan_real(&s, &v, f->e);
    moe_scan_fini(&s);
    if (rc == 0 && v != 0)
        return moe_err_set(f->e, MOE_EUNSUP, "%s: model: dropout is not supported", f->name);
    return rc;
}

static int
read_model(struct file *f)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_bpe *bpe = &f->t->bpe;
    bool given;
    int rc;

    if (f->top[MODEL].p == NULL)
        return moe_err_set(f->e, MOE_EFORMAT, "%s: no model", f->name);
    if ((rc = find_parts(f, f->top[MODEL], IN_MODEL, N_MODEL, f->model)) != 0 ||
        (rc = check_model(f, &b)) != 0 || (rc = check_dropout(f)) != 0 ||
        (rc = read_vocab(f)) != 0)
        goto out;
    moe_bpe_init(bpe, &f->t->vocab);
    if ((rc = get_flag(f, FALLBACK, &bpe->byte_fallback)) != 0 ||
        (rc = get_flag(f, FUSE, &bpe->fuse_unk)) != 0 ||
        (rc = get_flag(f, IGNORE, &bpe->ignore_merges)) != 0 ||
        (rc = get_text(f, UNK, &b, &given)) != 0)
        goto out;
    if (given) {
        bpe->unk = moe_vocab_find(&f->t->vocab, b.p, b.len);
        if (bpe->unk == MOE_VOCAB_NONE) {
            rc = moe_err_set(f->e, MOE_EFORMAT, "%s: model: unk_token is not in vocab", f->name);
            goto out;
        }
    }
    rc = read_merges(f);
out:
    moe_buf_fini(&b);
    return rc;
}

/* ---- Added tokens ------------------------------------------------------------------ */

static int
normal_form(struct file *f, struct moe_added_token *tok)
{
    struct moe_buf out = MOE_BUF_INIT, tmp = MOE_BUF_INIT;
    int rc = moe_normalizer_run(f->t->normalizer, tok->text.p, tok->text.len, &out, &tmp, f->e);

    moe_buf_fini(&tmp);
    moe_buf_fini(&tok->text);
    tok->text = out;
    return rc;
}

static int
read_token(struct file *f, const json_t *o, const char *name)
{
    struct moe_json_at at = { o, name };
    struct moe_added_token tok = { .text = MOE_BUF_INIT };
    struct moe_vocab *v = &f->t->vocab;
    const char *text;
    int64_t id;
    uint32_t have;
    int rc;

    if ((rc = moe_json_int(at, "id", true, 0, 0, UINT32_MAX, &id, f->e)) != 0 ||
        (rc = moe_json_str(at, "content", true, NULL, &text, f->e)) != 0 ||
        (rc = moe_json_bool(at, "special", false, false, &tok.special, f->e)) != 0 ||
        (rc = moe_json_bool(at, "single_word", false, false, &tok.single_word, f->e)) != 0 ||
        (rc = moe_json_bool(at, "lstrip", false, false, &tok.lstrip, f->e)) != 0 ||
        (rc = moe_json_bool(at, "rstrip", false, false, &tok.rstrip, f->e)) != 0 ||
        (rc = moe_json_bool(at, "normalized", false, !tok.special, &tok.normalized, f->e)) != 0)
        return rc;
    have = moe_vocab_find(v, text, strlen(text));
    if (have != MOE_VOCAB_NONE && have != id)
        return moe_err_set(f->e, MOE_EFORMAT, "%s: \"%s\" has ids %lld and %u", name, text,
            (long long)id, have);
    if (have == MOE_VOCAB_NONE &&
        (rc = moe_vocab_add(v, text, strlen(text), (uint64_t)id, f->n, f->e)) != 0) {
        moe_err_at(f->e, "%s", name);
        return rc;
    }
    tok.id = (uint32_t)id;
    moe_buf_str(&tok.text, text);
    if (tok.text.bad)
        rc = moe_err_set(f->e, MOE_ENOMEM, "%s: out of memory", name);
    else if (!tok.normalized || (rc = normal_form(f, &tok)) == 0)
        rc = moe_added_add(&f->t->added, &tok, f->e);
    moe_buf_fini(&tok.text);
    return rc;
}

static int
read_added(struct file *f)
{
    struct moe_tokenizer *t = f->t;
    char name[256];
    json_t *list;
    int rc;

    if ((rc = tree(f, ADDED, name, sizeof(name), &list)) != 0)
        return rc;
    if (list != NULL && !json_is_array(list))
        rc = moe_err_set(f->e, MOE_EFORMAT, "%s: not an array", name);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = read_token(f, json_array_get(list, i), name);
    json_decref(list);
    if (rc != 0 || (rc = moe_added_done(&t->added, f->e)) != 0)
        return rc;
    if ((t->special = calloc((size_t)t->vocab.n + 1, sizeof(*t->special))) == NULL)
        return moe_err_set(f->e, MOE_ENOMEM, "%s: out of memory", f->name);
    for (size_t i = 0; i < t->added.n; i++)
        t->special[t->added.tok[i].id] = t->added.tok[i].special;
    return 0;
}

/* ---- Post-processor ---------------------------------------------------------------- */

/* Ids that special token `id` of a template stands for. */
static int
special_ids(struct file *f, const json_t *o, const char *id, const char *name,
    struct moe_tokens *out)
{
    const json_t *ids =
        json_object_get(json_object_get(json_object_get(o, "special_tokens"), id), "ids");
    int rc = 0;

    if (!json_is_array(ids))
        return moe_err_set(f->e, MOE_EFORMAT, "%s: no special token %s", name, id);
    for (size_t i = 0; rc == 0 && i < json_array_size(ids); i++) {
        const json_t *v = json_array_get(ids, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= f->t->vocab.n)
            return moe_err_set(f->e, MOE_EFORMAT, "%s: special token %s: no such id", name, id);
        rc = moe_tokens_add(out, (uint32_t)json_integer_value(v), f->e);
    }
    return rc;
}

static int
read_template(struct file *f, const json_t *o, const char *name)
{
    struct moe_tokens *to = &f->t->before;
    const json_t *list;
    int rc = moe_json_arr((struct moe_json_at){ o, name }, "single", true, &list, f->e);

    if (rc == 0 && f->t->before.n + f->t->after.n > 0)
        return moe_err_set(f->e, MOE_EUNSUP, "%s: two templates are not supported", name);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const json_t *special = json_object_get(v, "SpecialToken");

        if (special != NULL) {
            const char *id;

            rc = moe_json_str((struct moe_json_at){ special, name }, "id", true, NULL, &id, f->e);
            if (rc == 0)
                rc = special_ids(f, o, id, name, to);
        } else if (json_object_get(v, "Sequence") != NULL && to == &f->t->before) {
            to = &f->t->after;
        } else {
            rc = moe_err_set(f->e, MOE_EUNSUP, "%s: this template is not supported", name);
        }
    }
    if (rc == 0 && to == &f->t->before)
        rc = moe_err_set(f->e, MOE_EUNSUP, "%s: a template without the text", name);
    return rc;
}

static int
read_post(struct file *f, const json_t *o, const char *name, int depth)
{
    struct moe_json_at at = { o, name };
    const json_t *list;
    const char *type;
    int rc = moe_json_str(at, "type", true, NULL, &type, f->e);

    if (rc != 0 || strcmp(type, "ByteLevel") == 0)
        return rc;              /* ByteLevel moves offsets only */
    if (strcmp(type, "TemplateProcessing") == 0)
        return read_template(f, o, name);
    if (strcmp(type, "Sequence") != 0 || depth > 8)
        return moe_err_set(f->e, MOE_EUNSUP, "%s: type %s is not supported", name, type);
    rc = moe_json_arr(at, "processors", true, &list, f->e);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = read_post(f, json_array_get(list, i), name, depth + 1);
    return rc;
}

/* ---- All ------------------------------------------------------------------------ */

static int
read_small(struct file *f, int which)
{
    char name[256];
    json_t *o;
    int rc = tree(f, which, name, sizeof(name), &o);

    if (rc != 0)
        return rc;
    if (which == NORMALIZER)
        rc = moe_normalizer_parse(o, name, &f->t->normalizer, f->e);
    else if (which == PRE_TOKENIZER)
        rc = moe_pretokenizer_parse(o, name, &f->t->pretokenizer, f->e);
    else if (which == DECODER)
        rc = moe_decoder_parse(o, name, &f->t->decoder, f->e);
    else if (o != NULL)
        rc = read_post(f, o, name, 0);
    json_decref(o);
    return rc;
}

int
moe_tokenizer_file(struct moe_tokenizer *t, const char *json, size_t n, const char *name,
    struct moe_err *e)
{
    struct file f = { .t = t, .json = json, .n = n, .name = name, .e = e };
    int rc;

    if (n > MOE_TOKENIZER_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name,
            MOE_TOKENIZER_MAX_BYTES);
    if ((rc = find_parts(&f, (struct part){ json, n }, TOP, N_TOP, f.top)) != 0 ||
        (rc = read_small(&f, NORMALIZER)) != 0 || (rc = read_small(&f, PRE_TOKENIZER)) != 0 ||
        (rc = read_small(&f, DECODER)) != 0 || (rc = read_model(&f)) != 0 ||
        (rc = read_added(&f)) != 0)
        return rc;
    return read_small(&f, POST_PROCESSOR);
}
