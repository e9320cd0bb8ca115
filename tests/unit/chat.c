/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates against jinja2 and transformers: tiny templates, conversations
 * in eight templates, the chats of the golden models.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/chat.h"
#include "tests/golden.h"
#include "tests/tap.h"

/* 2025-03-09 08:07:06, the clock of the data. */
#define NOW 1741507626LL

static const char *const MODELS[] = { "kjv-moe", "models/deepseek_v2", "models/deepseek_v3",
    "models/deepseek_v3_fp8", "models/gpt_oss", "models/gpt_oss_mxfp4", "models/granitemoe",
    "models/mixtral", "models/olmoe", "models/phimoe", "models/qwen2_moe", "models/qwen3_moe" };

/* Compile and render; rc of the first that fails. */
static int
render(const json_t *src, const char *name, const json_t *vars, struct moe_buf *out,
    struct moe_err *e)
{
    struct moe_chat *c = NULL;
    int rc = moe_chat_compile(json_string_value(src), json_string_length(src), name, &c, e);

    if (rc == 0)
        rc = moe_chat_render(c, vars, NOW, out, NULL, e);
    moe_chat_free(c);
    return rc;
}

/* The result is the text or fails as `want` says. */
static void
check(int rc, const struct moe_buf *out, const struct moe_err *e, const json_t *text,
    const json_t *want, const char *what, size_t i)
{
    const char *error = json_string_value(json_object_get(want, "error"));
    bool ok;

    if (error != NULL) {
        /* The template's own words are ours as well. */
        ok = rc == MOE_EFORMAT || rc == MOE_EUNSUP;
        if (ok && strcmp(error, "TemplateError") == 0)
            ok = strcmp(e->text, json_string_value(json_object_get(want, "message"))) == 0;
    } else {
        ok = rc == 0 && out->len == json_string_length(text) &&
            (out->len == 0 || memcmp(out->p, json_string_value(text), out->len) == 0);
    }
    if (tap_ok(ok, "%s: %zu", what, i))
        return;
    tap_diag("got %s", rc == 0 ? (out->p != NULL ? out->p : "nothing") : e->text);
    tap_diag("want %s", error != NULL ? error : json_string_value(text));
}

static void
test_jinja(const char *path)
{
    const json_t *all = golden_json(path), *cases = json_object_get(all, "cases");
    const json_t *common = json_object_get(all, "variables");

    tap_ok(json_array_size(cases) > 250, "%s has templates", path);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *o = json_array_get(cases, i), *v = json_object_get(o, "v");
        struct moe_buf out = MOE_BUF_INIT;
        struct moe_err e = { 0 };
        int rc = render(json_object_get(o, "t"), "t", v != NULL ? v : common, &out, &e);

        check(rc, &out, &e, json_object_get(o, "out"), o, path, i);
        moe_buf_fini(&out);
    }
}

/* The variables that transformers makes of one input. */
static json_t *
variables(const json_t *input, const json_t *special)
{
    static const char *const keys[] = { "messages", "tools", "documents" };
    json_t *vars = json_deep_copy(special);
    const char *key;
    json_t *v;

    for (int i = 0; i < 3; i++) {
        v = json_object_get(input, keys[i]);
        (void)json_object_set_new(vars, keys[i], v == NULL ? json_null() : json_incref(v));
    }
    (void)json_object_set_new(vars, "add_generation_prompt",
        json_boolean(json_is_true(json_object_get(input, "add_generation_prompt"))));
    json_object_foreach(json_object_get(input, "kwargs"), key, v)
        (void)json_object_set(vars, key, v);
    return vars;
}

static json_t *
source_of(const json_t *t)
{
    const char *file = json_string_value(json_object_get(t, "template"));
    json_t *src = json_object_get(t, "source");
    char path[128];
    size_t n;
    char *p;

    if (src != NULL)
        return json_incref(src);
    (void)snprintf(path, sizeof(path), "text/templates/%s", file);
    p = (char *)golden_file(path, &n);
    src = json_stringn(p, n);
    free(p);
    return src;
}

static void
test_chats(void)
{
    const json_t *all = golden_json("text/chats.json"), *inputs = json_object_get(all, "inputs");
    const char *name;
    json_t *t;

    json_object_foreach(json_object_get(all, "templates"), name, t) {
        const json_t *cases = json_object_get(t, "cases");
        json_t *src = source_of(t);

        tap_is_str(golden_sha256(json_string_value(src), json_string_length(src)),
            json_string_value(json_object_get(t, "sha256")), "%s: the template", name);
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *want = json_array_get(cases, i);
            json_t *vars = variables(json_array_get(inputs, i), json_object_get(t, "special"));
            struct moe_buf out = MOE_BUF_INIT;
            struct moe_err e = { 0 };
            int rc = render(src, name, vars, &out, &e);

            check(rc, &out, &e, json_object_get(want, "text"), want, name, i);
            moe_buf_fini(&out);
            json_decref(vars);
        }
        json_decref(src);
    }
}

static void
test_model(const char *dir)
{
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    struct moe_chat *c = NULL;
    char path[128];
    char *config, *src;
    size_t n_config, n_src;
    const json_t *chat;
    bool prompt;
    int rc;

    (void)snprintf(path, sizeof(path), "%s/golden.json", dir);
    chat = json_object_get(golden_json(path), "chat");
    (void)snprintf(path, sizeof(path), "%s/tokenizer_config.json", dir);
    config = (char *)golden_file(path, &n_config);
    (void)snprintf(path, sizeof(path), "%s/chat_template.jinja", dir);
    src = (char *)golden_file(path, &n_src);
    prompt = !json_is_false(json_object_get(chat, "add_generation_prompt"));
    rc = moe_chat_open(config, n_config, "config", src, n_src, "template", &c, &e);
    tap_ok(rc == 0, "%s is opened %s", dir, e.text);
    if (rc == 0)
        rc = moe_chat_messages(c, json_object_get(chat, "messages"), prompt, NOW, &out, NULL, &e);
    check(rc, &out, &e, json_object_get(chat, "rendered"), NULL, dir, 0);
    moe_chat_free(c);
    moe_buf_fini(&out);
    free(config);
    free(src);
}

/* ---- What is ours ---------------------------------------------------------------- */

static json_t *
parsed(const char *text)
{
    return json_loads(text, 0, NULL);
}

/* The marks of what came from outside cut the text as shown, with brackets around. */
static void
test_outside(const char *src, const char *vars, const char *want)
{
    struct moe_spans spans = MOE_SPANS_INIT;
    struct moe_buf out = MOE_BUF_INIT, shown = MOE_BUF_INIT;
    struct moe_chat *c = NULL;
    json_t *v = parsed(vars);
    size_t at = 0;
    int rc = moe_chat_compile(src, strlen(src), "t", &c, NULL);

    if (rc == 0)
        rc = moe_chat_render(c, v, NOW, &out, &spans, NULL);
    for (size_t i = 0; rc == 0 && i < spans.n; i++) {
        moe_buf_add(&shown, out.p + at, spans.p[i].from - at);
        moe_buf_byte(&shown, '[');
        moe_buf_add(&shown, out.p + spans.p[i].from, spans.p[i].to - spans.p[i].from);
        moe_buf_byte(&shown, ']');
        at = spans.p[i].to;
    }
    if (rc == 0)
        moe_buf_add(&shown, out.p + at, out.len - at);
    tap_is_str(shown.p, want, "outside: %s", src);
    json_decref(v);
    moe_chat_free(c);
    moe_span_fini(&spans);
    moe_buf_fini(&out);
    moe_buf_fini(&shown);
}

static void
test_limit(const char *src, const char *what)
{
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    json_t *src_json = json_string(src), *vars = json_object();

    tap_is_int(render(src_json, "t", vars, &out, &e), MOE_ELIMIT, "%s: %s", what, e.text);
    json_decref(src_json);
    json_decref(vars);
    moe_buf_fini(&out);
}

static void
test_config(const char *config, const char *src, const char *vars, int want_rc, const char *want)
{
    struct moe_buf out = MOE_BUF_INIT;
    struct moe_chat *c = NULL;
    struct moe_err e = { 0 };
    json_t *v = parsed(vars);
    int rc = moe_chat_open(config, config == NULL ? 0 : strlen(config), "config", src,
        src == NULL ? 0 : strlen(src), "template", &c, &e);

    if (rc == 0)
        rc = moe_chat_render(c, v, NOW, &out, NULL, &e);
    tap_is_int(rc, want_rc, "config %s: %s", config, e.text);
    if (want != NULL)
        tap_is_str(out.p, want, "config %s: text", config);
    json_decref(v);
    moe_chat_free(c);
    moe_buf_fini(&out);
}

int
main(void)
{
    test_jinja("text/jinja.json");
    test_jinja("text/jinja_random.json");
    test_chats();
    for (size_t i = 0; i < sizeof(MODELS) / sizeof(*MODELS); i++)
        test_model(MODELS[i]);

    test_outside("<|a|>{{ x }}<|b|>", "{\"x\": \"hi\"}", "<|a|>[hi]<|b|>");
    test_outside("{{ '<' + x + '>' ~ x[1:] }}", "{\"x\": \"hi\"}", "<[hi]>[i]");
    test_outside("{{ ('  ' + x + ' ') | trim }}|{{ x | upper }}|{{ x | tojson }}",
        "{\"x\": \"a\\\"b\"}", "[a\"b]|[A\"B]|\"[a\\\"b]\"");
    test_outside("{% set y %}({{ x }}){% endset %}{{ y.split('b')[0] }}|{{ y.replace('a', '-') }}",
        "{\"x\": \"abc\"}", "([a]|(-[bc])");
    test_outside("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(x) }}{{ [x] }}{{ [x, 'c'] | join }}",
        "{\"x\": \"ab\"}", "<[ab]>['[ab]'][ab]c");

    test_limit("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "a macro without end");
    test_limit("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "many steps");
    test_limit("{% set n = namespace(x='a') %}{% for i in range(64) %}"
        "{% set n.x = n.x ~ n.x %}{% endfor %}", "a text that doubles");
    test_limit("{% set n = namespace(x=[]) %}{% for i in range(5000) %}"
        "{% set n.x = [n.x] %}{% endfor %}{{ n.x }}", "lists in lists");
    test_limit("{{ 10 ** 100000 }}", "a large number");
    test_limit("{{ 'x' * 1000000000 }}", "a long text");

    test_config("{\"chat_template\": \"{{ bos_token }}|{{ eos_token }}|{{ tools is none }}\","
        " \"bos_token\": {\"content\": \"<s>\", \"lstrip\": false}, \"eos_token\": \"</s>\","
        " \"model_max_length\": 1000000000000000019884624838656}", NULL, "{}", 0,
        "<s>|</s>|True");
    test_config("{\"chat_template\": \"old\", \"bos_token\": null}", "new{{ bos_token }}", "{}", 0,
        "new");
    test_config("{\"chat_template\": [{\"name\": \"default\", \"template\": \"d\"},"
        " {\"name\": \"tool_use\", \"template\": \"t\"}]}", NULL, "{\"tools\": []}", 0, "t");
    test_config("{}", NULL, "{}", MOE_ENOENT, NULL);
    test_config("{\"chat_template\": 5", NULL, "{}", MOE_EFORMAT, NULL);
    return tap_done();
}
