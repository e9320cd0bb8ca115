/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers against the reference library: the texts of the golden models, the
 * strings, byte runs and the corpus of the two real tokenizers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/engine/detokenizer.h"
#include "common/engine/tokenizer.h"
#include "tests/golden.h"
#include "tests/tap.h"

static const char *const MODELS[] = { "kjv-moe", "models/deepseek_v2", "models/deepseek_v3",
    "models/deepseek_v3_fp8", "models/gpt_oss", "models/gpt_oss_mxfp4", "models/granitemoe",
    "models/mixtral", "models/olmoe", "models/phimoe", "models/qwen2_moe", "models/qwen3_moe" };

/* The content of a zstd file under tests/data. */
static struct moe_buf
unpacked(const char *path)
{
    struct moe_buf b = MOE_BUF_INIT;
    char cmd[256], block[65536];
    size_t n;
    FILE *f;

    (void)snprintf(cmd, sizeof(cmd), "zstd -dcq tests/data/%s", path);
    if ((f = popen(cmd, "r")) == NULL)
        return b;
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        moe_buf_add(&b, block, n);
    tap_ok(pclose(f) == 0 && b.len > 0, "%s unpacks", path);
    return b;
}

static struct moe_tokenizer *
parsed(const char *json, size_t n, const char *name)
{
    struct moe_tokenizer *t = NULL;
    struct moe_err e = { 0 };

    tap_ok(moe_tokenizer_parse(json, n, name, &t, &e) == 0, "%s is read %s", name, e.text);
    return t;
}

static struct moe_tokenizer *
opened(const char *path)
{
    size_t n;
    char *p = (char *)golden_file(path, &n);
    struct moe_tokenizer *t = parsed(p, n, path);

    free(p);
    return t;
}

static bool
same_ids(const struct moe_tokens *got, const json_t *want)
{
    if (got->n != json_array_size(want))
        return false;
    for (size_t i = 0; i < got->n; i++)
        if ((json_int_t)got->id[i] != json_integer_value(json_array_get(want, i)))
            return false;
    return true;
}

static void
show_ids(const struct moe_tokens *got, const json_t *want)
{
    struct moe_buf b = MOE_BUF_INIT;
    char *s = json_dumps(want, JSON_COMPACT);

    for (size_t i = 0; i < got->n; i++)
        moe_buf_fmt(&b, " %u", got->id[i]);
    tap_diag("got %s", b.len > 0 ? b.p : "nothing");
    tap_diag("want %s", s);
    free(s);
    moe_buf_fini(&b);
}

/* The ids of text are `want`, if that is given. */
static void
check_ids(const struct moe_tokenizer *t, const json_t *text, enum moe_added added,
    const json_t *want, const char *what, size_t i)
{
    struct moe_tokens got = MOE_TOKENS_INIT;
    struct moe_err e = { 0 };
    int rc;

    if (want == NULL)
        return;
    rc = moe_tokenizer_encode(t, json_string_value(text), json_string_length(text), added, false,
        &got, &e);
    if (!tap_ok(rc == 0 && same_ids(&got, want), "%s: text %zu %s", what, i, e.text))
        show_ids(&got, want);
    moe_tokens_fini(&got);
}

static struct moe_tokens
listed(const json_t *ids)
{
    struct moe_tokens t = MOE_TOKENS_INIT;

    for (size_t i = 0; i < json_array_size(ids); i++)
        (void)moe_tokens_add(&t, (uint32_t)json_integer_value(json_array_get(ids, i)), NULL);
    return t;
}

static bool
is_text(const struct moe_buf *b, const json_t *want)
{
    return !b->bad && b->len == json_string_length(want) &&
        (b->len == 0 || memcmp(b->p, json_string_value(want), b->len) == 0);
}

/* Decoding at once and token by token both give `want`. */
static void
check_text(const struct moe_tokenizer *t, const json_t *ids, bool skip, const json_t *want,
    const char *what, size_t i)
{
    struct moe_buf whole = MOE_BUF_INIT, stream = MOE_BUF_INIT;
    struct moe_tokens list = listed(ids);
    struct moe_detokenizer *d = NULL;
    int rc;

    if (want == NULL)
        return;
    rc = moe_tokenizer_decode(t, list.id, list.n, skip, &whole, NULL);
    tap_ok(rc == 0 && is_text(&whole, want), "%s: text of ids %zu", what, i);
    rc = moe_detokenizer_new(t, skip, &d, NULL);
    for (size_t k = 0; rc == 0 && k < list.n; k++)
        rc = moe_detokenizer_put(d, list.id[k], &stream, NULL);
    if (rc == 0)
        rc = moe_detokenizer_end(d, &stream, NULL);
    tap_ok(rc == 0 && is_text(&stream, want), "%s: streamed text of ids %zu", what, i);
    moe_detokenizer_free(d);
    moe_tokens_fini(&list);
    moe_buf_fini(&whole);
    moe_buf_fini(&stream);
}

static void
test_model(const char *dir)
{
    struct moe_tokenizer *t;
    char path[128];
    json_t *texts;

    (void)snprintf(path, sizeof(path), "%s/golden.json", dir);
    texts = json_object_get(golden_json(path), "texts");
    (void)snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
    if ((t = opened(path)) == NULL)
        return;
    tap_ok(json_array_size(texts) > 0, "%s has texts", dir);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *o = json_array_get(texts, i), *ids = json_object_get(o, "ids");

        check_ids(t, json_object_get(o, "text"), MOE_ADDED_ALL, ids, dir, i);
        check_text(t, ids, false, json_object_get(o, "decoded"), dir, i);
    }
    moe_tokenizer_free(t);
}

static void
hex(struct moe_buf *out, const struct moe_buf *in)
{
    for (size_t i = 0; i < in->len; i++)
        moe_buf_fmt(out, "%02x", (unsigned char)in->p[i]);
}

static void
check_pieces(const struct moe_tokenizer *t, const json_t *ids, const json_t *pieces,
    const char *what, size_t i)
{
    bool same = json_array_size(ids) == json_array_size(pieces);

    for (size_t k = 0; same && k < json_array_size(ids); k++) {
        struct moe_buf b = MOE_BUF_INIT, x = MOE_BUF_INIT;
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, k));

        same = moe_tokenizer_bytes(t, id, &b, NULL) == 0;
        hex(&x, &b);
        same = same && is_text(&x, json_array_get(pieces, k));
        moe_buf_fini(&b);
        moe_buf_fini(&x);
    }
    tap_ok(same, "%s: pieces of text %zu", what, i);
}

/*
 * Ids whose bytes are no whole text: what each releases. Of a UTF-16 surrogate
 * the reference waits for the third byte, though the second has spoilt it.
 */
static void
check_stream(const struct moe_tokenizer *t, const json_t *o, const char *what, size_t i)
{
    const json_t *want = json_object_get(o, "stream");
    struct moe_tokens list = listed(json_object_get(o, "ids"));
    struct moe_detokenizer *d = NULL;
    bool same = moe_detokenizer_new(t, false, &d, NULL) == 0 &&
        json_array_size(want) == list.n + 1;

    for (size_t k = 0; same && k <= list.n; k++) {
        struct moe_buf b = MOE_BUF_INIT;
        int rc = k < list.n ? moe_detokenizer_put(d, list.id[k], &b, NULL)
            : moe_detokenizer_end(d, &b, NULL);

        same = rc == 0 && is_text(&b, json_array_get(want, k));
        moe_buf_fini(&b);
    }
    if (strncmp(json_string_value(json_object_get(o, "bytes")), "eda0", 4) != 0)
        tap_ok(same, "%s: stream of ids %zu", what, i);
    moe_detokenizer_free(d);
    moe_tokens_fini(&list);
}

static void
test_strings(const struct moe_tokenizer *t, const char *name)
{
    char path[128];
    json_t *all, *list;

    (void)snprintf(path, sizeof(path), "text/strings.%s.json", name);
    all = golden_json(path);
    list = json_object_get(all, "strings");
    tap_ok(json_array_size(list) > 100, "%s has strings", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i), *text = json_object_get(o, "text");
        const json_t *ids = json_object_get(o, "ids");

        check_ids(t, text, MOE_ADDED_ALL, ids, name, i);
        check_ids(t, text, MOE_ADDED_NOT_SPECIAL, json_object_get(o, "ids_special_as_text"),
            name, i);
        check_ids(t, text, MOE_ADDED_NONE, json_object_get(o, "ids_no_added_tokens"), name, i);
        check_pieces(t, ids, json_object_get(o, "pieces"), name, i);
        check_text(t, ids, false, json_object_get(o, "decoded"), name, i);
        check_text(t, ids, true, json_object_get(o, "decoded_skip"), name, i);
    }
    list = json_object_get(all, "decode");
    tap_ok(json_array_size(list) > 0, "%s has byte runs", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);

        check_text(t, json_object_get(o, "ids"), false, json_object_get(o, "text"), name, i);
        check_stream(t, o, name, i);
    }
}

/* Whole corpus, and each of its lines; `raw` has a digest only. */
static void
test_corpus(const struct moe_tokenizer *t, const char *name, const struct moe_buf *text)
{
    const json_t *raw = json_object_get(json_object_get(json_object_get(
        golden_json("text/corpus.json"), "tokenizers"), name), "raw");
    struct moe_tokens got = MOE_TOKENS_INIT;
    struct moe_buf want;
    char path[128];
    size_t at = 0;

    (void)snprintf(path, sizeof(path), "text/corpus.%s.u32.zst", name);
    want = unpacked(path);
    tap_is_int(moe_tokenizer_encode(t, text->p, text->len, MOE_ADDED_ALL, false, &got, NULL), 0,
        "%s: the corpus is encoded", name);
    tap_ok(got.n * 4 == want.len && memcmp(got.id, want.p, want.len) == 0,
        "%s: ids of the corpus", name);
    moe_buf_fini(&want);
    got.n = 0;
    tap_is_int(moe_tokenizer_encode(t, text->p, text->len, MOE_ADDED_NONE, false, &got, NULL), 0,
        "%s: the corpus is encoded as text", name);
    tap_is_str(golden_sha256(got.id, got.n * 4), json_string_value(json_object_get(raw, "sha256")),
        "%s: ids of the corpus as text", name);

    (void)snprintf(path, sizeof(path), "text/corpus.%s.lines.u32.zst", name);
    want = unpacked(path);
    got.n = 0;
    while (at <= text->len) {
        const char *end = at == text->len ? NULL : memchr(text->p + at, '\n', text->len - at);
        size_t n = end == NULL ? text->len - at : (size_t)(end - text->p) - at, was = got.n;

        (void)moe_tokens_add(&got, 0, NULL);
        if (moe_tokenizer_encode(t, text->p + at, n, MOE_ADDED_ALL, false, &got, NULL) != 0)
            break;
        got.id[was] = (uint32_t)(got.n - was - 1);
        at += n + 1;
    }
    tap_ok(got.n * 4 == want.len && memcmp(got.id, want.p, want.len) == 0,
        "%s: ids of the lines", name);
    moe_buf_fini(&want);
    moe_tokens_fini(&got);
}

static void
test_real(const char *name, const struct moe_buf *corpus)
{
    struct moe_tokenizer *t;
    struct moe_buf json;
    char path[128];

    (void)snprintf(path, sizeof(path), "tokenizers/%s/tokenizer.json.zst", name);
    json = unpacked(path);
    t = parsed(json.p, json.len, name);
    moe_buf_fini(&json);
    if (t == NULL)
        return;
    test_strings(t, name);
    test_corpus(t, name, corpus);
    moe_tokenizer_free(t);
}

/* Control tokens count in the template's text and not in the client's. */
static void
test_prompt(void)
{
    static const char text[] = "<|im_start|>user\n<|im_start|>x<|im_end|>";
    struct moe_tokenizer *t = opened("kjv-moe/tokenizer.json");
    struct moe_spans outside = MOE_SPANS_INIT;
    struct moe_tokens got = MOE_TOKENS_INIT, want = MOE_TOKENS_INIT;
    size_t from = strlen("<|im_start|>user\n"), to = from + strlen("<|im_start|>x");
    int rc;

    if (t == NULL)
        return;
    rc = moe_tokenizer_encode_prompt(t, text, strlen(text), &outside, false, &got, NULL);
    if (rc == 0)
        rc = moe_tokenizer_encode(t, text, strlen(text), MOE_ADDED_ALL, false, &want, NULL);
    tap_ok(rc == 0 && got.n == want.n && memcmp(got.id, want.id, 4 * got.n) == 0,
        "prompt: nothing from outside is as usual");
    got.n = want.n = 0;
    (void)moe_span_add(&outside, from, to, NULL);
    rc = moe_tokenizer_encode_prompt(t, text, strlen(text), &outside, false, &got, NULL);
    /* The same text, the middle of it without added tokens. */
    if (rc == 0)
        rc = moe_tokenizer_encode(t, "<|im_start|>", 12, MOE_ADDED_ALL, false, &want, NULL);
    if (rc == 0)
        rc = moe_tokenizer_encode(t, text + 12, to - 12, MOE_ADDED_NONE, false, &want, NULL);
    if (rc == 0)
        rc = moe_tokenizer_encode(t, "<|im_end|>", 10, MOE_ADDED_ALL, false, &want, NULL);
    tap_ok(rc == 0 && got.n == want.n && memcmp(got.id, want.id, 4 * got.n) == 0,
        "prompt: a control token from outside is text");
    outside.n = got.n = 0;
    (void)moe_span_add(&outside, 5, 6, NULL);
    rc = moe_tokenizer_encode_prompt(t, text, strlen(text), &outside, false, &got, NULL);
    tap_ok(rc == 0 && got.n > 0 && !moe_tokenizer_is_special(t, got.id[0]),
        "prompt: a control token made half outside is text");
    moe_tokens_fini(&got);
    moe_tokens_fini(&want);
    moe_span_fini(&outside);
    moe_tokenizer_free(t);
}

int
main(void)
{
    struct moe_buf corpus;

    for (size_t i = 0; i < sizeof(MODELS) / sizeof(*MODELS); i++)
        test_model(MODELS[i]);
    test_prompt();
    corpus = unpacked("text/corpus.txt.zst");
    test_real("qwen3", &corpus);
    test_real("gptoss", &corpus);
    moe_buf_fini(&corpus);
    return tap_done();
}
