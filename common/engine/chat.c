/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way from a model's files and a conversation to a prompt. The language
 * of templates is in the template files.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/scan.h"
#include "common/engine/chat.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_eval.h"

static const char *const TOKENS[] = { "bos_token", "eos_token", "unk_token", "sep_token",
    "pad_token", "cls_token", "mask_token" };
enum { N_TOKENS = sizeof(TOKENS) / sizeof(*TOKENS) };

struct moe_chat {
    struct moe_template *plain;
    struct moe_template *tools;         /* for conversations with tools, or NULL */
    struct moe_buf token[N_TOKENS];
    bool has[N_TOKENS];
};

/* ---- Reading --------------------------------------------------------------------- */

static int
no_memory(struct moe_err *e, const char *name)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
}

int
moe_chat_compile(const char *src, size_t n, const char *name, struct moe_chat **out,
    struct moe_err *e)
{
    return moe_chat_open(NULL, 0, name, src, n, name, out, e);
}

/* A token: its text, or an object with the text as content; null is none. */
static int
read_token(struct moe_scan *s, struct moe_buf *out, bool *has, struct moe_err *e)
{
    enum moe_scan_kind kind;
    bool more;
    int rc = moe_scan_kind(s, &kind, e);

    moe_buf_clear(out);
    *has = false;
    if (rc != 0)
        return rc;
    if (kind == MOE_SCAN_STRING) {
        if ((rc = moe_scan_str(s, e)) == 0) {
            moe_buf_add(out, s->text.p, s->text.len);
            *has = true;
        }
        return rc;
    }
    if (kind != MOE_SCAN_OBJECT)
        return moe_scan_skip(s, e);
    if ((rc = moe_scan_enter(s, MOE_SCAN_OBJECT, e)) != 0)
        return rc;
    while ((rc = moe_scan_next(s, &more, e)) == 0 && more) {
        bool content = strcmp(s->text.p, "content") == 0;

        rc = content ? moe_scan_str(s, e) : moe_scan_skip(s, e);
        if (rc != 0)
            return rc;
        if (content) {
            moe_buf_clear(out);
            moe_buf_add(out, s->text.p, s->text.len);
            *has = true;
        }
    }
    return rc;
}

struct source { struct moe_buf plain, tools; bool has_plain, has_tools; };

/* One {"name": ..., "template": ...}. */
static int
read_named(struct moe_scan *s, struct source *src, struct moe_err *e)
{
    struct moe_buf name = MOE_BUF_INIT, text = MOE_BUF_INIT;
    bool more;
    int rc = moe_scan_enter(s, MOE_SCAN_OBJECT, e);

    while (rc == 0 && (rc = moe_scan_next(s, &more, e)) == 0 && more) {
        bool is_name = strcmp(s->text.p, "name") == 0;
        bool is_text = strcmp(s->text.p, "template") == 0;
        struct moe_buf *to = is_name ? &name : &text;

        if (!is_name && !is_text) {
            rc = moe_scan_skip(s, e);
            continue;
        }
        if ((rc = moe_scan_str(s, e)) == 0) {
            moe_buf_clear(to);
            moe_buf_add(to, s->text.p, s->text.len);
        }
    }
    if (rc == 0 && (name.bad || text.bad)) {
        rc = no_memory(e, s->name);
    } else if (rc == 0 && name.p != NULL && text.p != NULL) {
        bool tools = strcmp(name.p, "tool_use") == 0;

        if (tools || strcmp(name.p, "default") == 0) {
            struct moe_buf *to = tools ? &src->tools : &src->plain;

            moe_buf_fini(to);
            *to = text;
            text = (struct moe_buf)MOE_BUF_INIT;
            *(tools ? &src->has_tools : &src->has_plain) = true;
        }
    }
    moe_buf_fini(&name);
    moe_buf_fini(&text);
    return rc;
}

/* A template, or a list of named ones. */
static int
read_template(struct moe_scan *s, struct source *src, struct moe_err *e)
{
    enum moe_scan_kind kind;
    bool more;
    int rc = moe_scan_kind(s, &kind, e);

    if (rc != 0)
        return rc;
    if (kind == MOE_SCAN_STRING)
        return read_token(s, &src->plain, &src->has_plain, e);
    if (kind != MOE_SCAN_ARRAY)
        return moe_scan_skip(s, e);
    rc = moe_scan_enter(s, MOE_SCAN_ARRAY, e);
    while (rc == 0 && (rc = moe_scan_next(s, &more, e)) == 0 && more)
        rc = read_named(s, src, e);
    return rc;
}

/* The config has numbers too large for a tree, so it is pulled. */
static int
read_config(struct moe_chat *c, const char *p, size_t n, const char *name, struct source *src,
    struct moe_err *e)
{
    struct moe_scan s;
    bool more;
    int rc;

    if (n > MOE_CHAT_MAX_CONFIG)
        return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name, MOE_CHAT_MAX_CONFIG);
    moe_scan_init(&s, p, n, name);
    rc = moe_scan_enter(&s, MOE_SCAN_OBJECT, e);
    while (rc == 0 && (rc = moe_scan_next(&s, &more, e)) == 0 && more) {
        int i = 0;

        while (i < N_TOKENS && strcmp(s.text.p, TOKENS[i]) != 0)
            i++;
        if (i < N_TOKENS)
            rc = read_token(&s, &c->token[i], &c->has[i], e);
        else if (strcmp(s.text.p, "chat_template") == 0)
            rc = read_template(&s, src, e);
        else
            rc = moe_scan_skip(&s, e);
    }
    if (rc == 0)
        rc = moe_scan_end(&s, e);
    moe_scan_fini(&s);
    for (int i = 0; rc == 0 && i < N_TOKENS; i++)
        if (c->token[i].bad)
            rc = no_memory(e, name);
    return rc == 0 && (src->plain.bad || src->tools.bad) ? no_memory(e, name) : rc;
}

int
moe_chat_open(const char *config, size_t n_config, const char *config_name, const char *src,
    size_t n, const char *name, struct moe_chat **out, struct moe_err *e)
{
    struct source from = { MOE_BUF_INIT, MOE_BUF_INIT, false, false };
    struct moe_chat *c = calloc(1, sizeof(*c));
    int rc = 0;

    *out = NULL;
    if (c == NULL)
        return no_memory(e, name);
    if (config != NULL && (rc = read_config(c, config, n_config, config_name, &from, e)) != 0)
        goto out;
    if (src != NULL)
        rc = moe_template_parse(src, n, name, &c->plain, e);
    else if (from.has_plain)
        rc = moe_template_parse(from.plain.p == NULL ? "" : from.plain.p, from.plain.len,
            config_name, &c->plain, e);
    else
        rc = moe_err_set(e, MOE_ENOENT, "%s: no chat template", config_name);
    if (rc == 0 && src == NULL && from.has_tools)
        rc = moe_template_parse(from.tools.p == NULL ? "" : from.tools.p, from.tools.len,
            config_name, &c->tools, e);
    if (rc != 0)
        goto out;
    *out = c;
    c = NULL;
out:
    moe_chat_free(c);
    moe_buf_fini(&from.plain);
    moe_buf_fini(&from.tools);
    return rc;
}

void
moe_chat_free(struct moe_chat *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < N_TOKENS; i++)
        moe_buf_fini(&c->token[i]);
    moe_template_parse_free(c->plain);
    moe_template_parse_free(c->tools);
    free(c);
}

const char *
moe_chat_token(const struct moe_chat *c, const char *which)
{
    for (int i = 0; i < N_TOKENS; i++)
        if (c->has[i] && strcmp(which, TOKENS[i]) == 0)
            return c->token[i].p;
    return NULL;
}

/* ---- Rendering ------------------------------------------------------------------- */

/* tools and documents that are not given are none, as in transformers. */
static int
set_none(struct moe_trun *r, const char *name)
{
    struct moe_tval k;
    int rc = moe_template_value_str(r, name, strlen(name), false, &k);

    return rc != 0 ? rc : moe_template_dict_set(r, r->vars.u.d, k, moe_template_value_none());
}

static int
set_vars(struct moe_trun *r, const struct moe_chat *c, const json_t *vars)
{
    struct moe_tval all;
    int rc;

    if ((rc = moe_template_dict_new(r, &r->vars)) != 0 || (rc = set_none(r, "tools")) != 0 ||
        (rc = set_none(r, "documents")) != 0)
        return rc;
    for (int i = 0; rc == 0 && i < N_TOKENS; i++) {
        struct moe_tval k, v;

        if (!c->has[i])
            continue;
        if ((rc = moe_template_value_str(r, TOKENS[i], strlen(TOKENS[i]), false, &k)) == 0 &&
            (rc = moe_template_value_str(r, c->token[i].p, c->token[i].len, false, &v)) == 0)
            rc = moe_template_dict_set(r, r->vars.u.d, k, v);
    }
    if (rc != 0 || (rc = moe_template_value_import(r, vars, true, &all)) != 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < all.u.d->n; i++)
        rc = moe_template_dict_set(r, r->vars.u.d, all.u.d->k[i], all.u.d->v[i]);
    return rc;
}

static int
hand_over(const struct moe_tbuf *text, struct moe_buf *out, struct moe_spans *outside,
    struct moe_err *e)
{
    size_t at = out->len;
    int rc = 0;

    moe_buf_add(out, text->p, text->n);
    if (out->bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && outside != NULL && i < text->n_span; i++)
        rc = moe_span_add(outside, at + text->span[i].from, at + text->span[i].to, e);
    return rc;
}

int
moe_chat_render(const struct moe_chat *c, const json_t *vars, long long now,
    struct moe_buf *out, struct moe_spans *outside, struct moe_err *e)
{
    const json_t *tools = json_object_get(vars, "tools");
    const struct moe_template *t = c->tools != NULL && tools != NULL && !json_is_null(tools)
        ? c->tools : c->plain;
    struct moe_trun r = { .now = now, .name = t->run.name, .line = 1, .e = e };
    enum moe_tflow flow = MOE_FLOW_ON;
    struct moe_tscope *s;
    struct moe_tbuf text;
    int rc;

    if (!json_is_object(vars))
        return moe_err_set(e, MOE_EFORMAT, "%s: the variables are no object", t->run.name);
    moe_template_value_begin(&r, &text);
    if ((rc = set_vars(&r, c, vars)) == 0 && (s = moe_template_eval_scope(&r, NULL)) != NULL)
        rc = moe_template_eval(&r, t->body, s, &text, &flow);
    if (r.rc != 0)
        rc = r.rc;
    if (rc == 0)
        rc = hand_over(&text, out, outside, e);
    moe_arena_fini(&r.arena);
    return rc;
}

int
moe_chat_messages(const struct moe_chat *c, const json_t *messages, bool add_generation_prompt,
    long long now, struct moe_buf *out, struct moe_spans *outside, struct moe_err *e)
{
    json_t *vars = json_object();
    int rc;

    if (vars == NULL ||
        json_object_set(vars, "messages", (json_t *)(uintptr_t)messages) != 0 ||
        json_object_set_new(vars, "add_generation_prompt",
            json_boolean(add_generation_prompt)) != 0)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else
        rc = moe_chat_render(c, vars, now, out, outside, e);
    json_decref(vars);
    return rc;
}
