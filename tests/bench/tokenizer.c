/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokenizers of Qwen3 and gpt-oss: reading the file (against scanning its
 * JSON), encoding and decoding of mixed text and of English (against checking
 * that it is UTF-8), of one letter a quarter and one million times (the second
 * takes four times the first), and rendering a chat. One thread. Needs zstd to
 * unpack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/read.h"
#include "common/base/scan.h"
#include "common/base/utf8.h"
#include "common/engine/chat.h"
#include "common/engine/tokenizer.h"
#include "common/system/measure.h"

#define DATA "tests/data/"

static void
check(int rc, const struct moe_err *e)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench: tokenizer: %s\n", e->text);
    exit(2);
}

static struct moe_buf
unpacked(const char *path)
{
    struct moe_buf b = MOE_BUF_INIT;
    char cmd[256], block[65536];
    size_t n;
    FILE *f;

    (void)snprintf(cmd, sizeof(cmd), "zstd -dcq " DATA "%s", path);
    if ((f = popen(cmd, "r")) == NULL)
        exit(2);
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        moe_buf_add(&b, block, n);
    if (pclose(f) != 0 || b.bad)
        exit(2);
    return b;
}

static void
report(const char *op, const char *shape, const struct moe_measure_case *c, size_t n)
{
    struct moe_measure_plan plan = { 9, 20000000 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_measure m;

    check(moe_measure_run(c, n, &plan, &m, &e), &e);
    check(moe_measure_lines(&b, op, shape, c, n, &m, 0, MOE_MEASURE_BYTES, &e), &e);
    fputs(b.p, stdout);
    fflush(stdout);
    moe_buf_fini(&b);
    moe_measure_fini(&m);
}

/* ---- Cases ----------------------------------------------------------------------- */

struct work {
    const struct moe_buf *json, *text;
    struct moe_tokenizer *t;
    struct moe_tokens ids;
    struct moe_buf out;
};

static void
scan(void *ctx)
{
    const struct work *w = ctx;
    struct moe_err e = { 0, "" };
    struct moe_scan s;

    moe_scan_init(&s, w->json->p, w->json->len, "tokenizer.json");
    check(moe_scan_skip(&s, &e), &e);
    moe_scan_fini(&s);
}

static void
load(void *ctx)
{
    const struct work *w = ctx;
    struct moe_tokenizer *t;
    struct moe_err e = { 0, "" };

    check(moe_tokenizer_parse(w->json->p, w->json->len, "tokenizer.json", &t, &e), &e);
    moe_tokenizer_free(t);
}

static void
utf8(void *ctx)
{
    const struct work *w = ctx;

    if (!moe_utf8_valid(w->text->p, w->text->len))
        exit(2);
}

static void
encode(void *ctx)
{
    struct work *w = ctx;
    struct moe_err e = { 0, "" };

    w->ids.n = 0;
    check(moe_tokenizer_encode(w->t, w->text->p, w->text->len, MOE_ADDED_ALL, false, &w->ids, &e),
        &e);
}

static void
decode(void *ctx)
{
    struct work *w = ctx;
    struct moe_err e = { 0, "" };

    moe_buf_clear(&w->out);
    check(moe_tokenizer_decode(w->t, w->ids.id, w->ids.n, false, &w->out, &e), &e);
}

static void
measure(const char *name, const struct moe_buf *texts, const char *const *labels, size_t n)
{
    struct moe_buf json;
    char path[128], shape[128];
    struct moe_err e = { 0, "" };
    struct work w = { .json = &json };

    (void)snprintf(path, sizeof(path), "tokenizers/%s/tokenizer.json.zst", name);
    json = unpacked(path);
    report("tokenizer_load", name, (const struct moe_measure_case[]){
        { "scan", scan, NULL, &w, json.len, 0 }, { "load", load, NULL, &w, json.len, 0 } }, 2);
    check(moe_tokenizer_parse(json.p, json.len, name, &w.t, &e), &e);
    for (size_t i = 0; i < n; i++) {
        w.text = &texts[i];
        encode(&w);
        (void)snprintf(shape, sizeof(shape), "%s %s", name, labels[i]);
        report("tokenizer", shape, (const struct moe_measure_case[]){
            { "utf8", utf8, NULL, &w, texts[i].len, 0 },
            { "encode", encode, NULL, &w, texts[i].len, 0 },
            { "decode", decode, NULL, &w, texts[i].len, 0 } }, 3);
    }
    moe_tokenizer_free(w.t);
    moe_tokens_fini(&w.ids);
    moe_buf_fini(&w.out);
    moe_buf_fini(&json);
}

/* ---- A chat ---------------------------------------------------------------------- */

struct chat { struct moe_chat *c; json_t *messages; struct moe_buf out; };

static void
copy(void *ctx)
{
    struct chat *w = ctx;
    char *s = json_dumps(w->messages, JSON_COMPACT);

    free(s);
}

static void
render(void *ctx)
{
    struct chat *w = ctx;
    struct moe_err e = { 0, "" };

    moe_buf_clear(&w->out);
    check(moe_chat_messages(w->c, w->messages, true, 0, &w->out, NULL, &e), &e);
}

/* Qwen3's own template over 200 turns of text. */
static void
measure_chat(const struct moe_buf *text)
{
    struct chat w = { .messages = json_array() };
    struct moe_buf config = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    size_t bytes = 0, turn = 500;

    check(moe_read_file(DATA "tokenizers/qwen3/tokenizer_config.json", 1 << 20, &config, &e), &e);
    check(moe_chat_open(config.p, config.len, "config", NULL, 0, "t", &w.c, &e), &e);
    for (size_t i = 0; i < 200 && (i + 1) * turn < text->len; i++) {
        json_t *s = json_stringn_nocheck(text->p + i * turn, turn);

        (void)json_array_append_new(w.messages, json_pack("{s:s, s:o}", "role",
            i % 2 == 0 ? "user" : "assistant", "content", s));
        bytes += turn;
    }
    report("chat", "qwen3 200 turns", (const struct moe_measure_case[]){
        { "json", copy, NULL, &w, bytes, 0 }, { "render", render, NULL, &w, bytes, 0 } }, 2);
    json_decref(w.messages);
    moe_chat_free(w.c);
    moe_buf_fini(&w.out);
    moe_buf_fini(&config);
}

int
main(void)
{
    static const char *const labels[] = { "mixed", "English", "letter 250k", "letter 1M" };
    struct moe_buf texts[4] = { MOE_BUF_INIT, MOE_BUF_INIT, MOE_BUF_INIT, MOE_BUF_INIT };
    struct moe_err e = { 0, "" };

    texts[0] = unpacked("text/corpus.txt.zst");
    check(moe_read_file(DATA "kjv-moe/heldout.txt", 1 << 24, &texts[1], &e), &e);
    for (int i = 0; i < 1000000; i++) {
        moe_buf_byte(&texts[3], 'a');
        if (i < 250000)
            moe_buf_byte(&texts[2], 'a');
    }
    measure("qwen3", texts, labels, 4);
    measure("gptoss", texts, labels, 4);
    measure_chat(&texts[1]);
    for (int i = 0; i < 4; i++)
        moe_buf_fini(&texts[i]);
    return 0;
}
