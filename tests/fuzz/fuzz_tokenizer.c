/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any tokenizer.json is read or refused; one that is read encodes any text, and
 * decodes what it encoded in one piece as it does token by token. The input is
 * the file, a byte FF and the text.
 */
/* covers: common/engine/tokenizer.c common/engine/tokenizer_file.c common/engine/vocab.c */
/* covers: common/engine/bpe.c common/engine/added.c common/engine/normalizer.c */
/* covers: common/engine/pretokenizer.c common/engine/decoder.c common/engine/detokenizer.c */
/* covers: common/engine/regex.c common/engine/regex_syntax.c common/engine/regex_class.c */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/detokenizer.h"
#include "common/engine/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
decode(const struct moe_tokenizer *t, const struct moe_tokens *ids, bool skip)
{
    struct moe_buf whole = MOE_BUF_INIT, stream = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_detokenizer *d = NULL;
    int rc = moe_tokenizer_decode(t, ids->id, ids->n, skip, &whole, &e);

    if (rc != 0 && rc != MOE_ELIMIT)
        abort();
    if (rc == 0 && (rc = moe_detokenizer_new(t, skip, &d, &e)) != 0)
        abort();
    for (size_t i = 0; rc == 0 && i < ids->n; i++) {
        size_t at = stream.len;

        rc = moe_detokenizer_put(d, ids->id[i], &stream, &e);
        if (rc == 0 && stream.len > at && !moe_utf8_valid(stream.p + at, stream.len - at))
            abort();
    }
    if (rc == 0 && moe_detokenizer_end(d, &stream, &e) != 0)
        abort();
    if (rc == 0 && whole.len > 0 && !moe_utf8_valid(whole.p, whole.len))
        abort();
    moe_detokenizer_free(d);
    moe_buf_fini(&whole);
    moe_buf_fini(&stream);
}

static void
encode(const struct moe_tokenizer *t, const char *text, size_t n)
{
    struct moe_spans outside = MOE_SPANS_INIT;
    struct moe_tokens ids = MOE_TOKENS_INIT;
    struct moe_err e = { 0, "" };

    for (int which = MOE_ADDED_ALL; which <= MOE_ADDED_NONE; which++) {
        int rc;

        ids.n = 0;
        rc = moe_tokenizer_encode(t, text, n, (enum moe_added)which, which == MOE_ADDED_ALL, &ids,
            &e);
        if (rc != 0 && (e.code != rc || ids.n != 0))
            abort();
        for (size_t i = 0; i < ids.n; i++) {
            struct moe_buf b = MOE_BUF_INIT;

            if (ids.id[i] >= moe_tokenizer_size(t))
                abort();
            rc = moe_tokenizer_bytes(t, ids.id[i], &b, &e);
            if (rc != 0 && rc != MOE_ELIMIT)
                abort();
            moe_buf_fini(&b);
        }
        decode(t, &ids, which == MOE_ADDED_ALL);
    }
    ids.n = 0;
    (void)moe_span_add(&outside, n / 3, n / 2, &e);
    (void)moe_tokenizer_encode_prompt(t, text, n, &outside, true, &ids, &e);
    moe_span_fini(&outside);
    moe_tokens_fini(&ids);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    const uint8_t *cut = n == 0 ? NULL : memchr(p, 0xff, n);
    size_t n_json = cut == NULL ? n : (size_t)(cut - p);
    struct moe_tokenizer *t;
    struct moe_err e = { 0, "" };
    uint32_t id;
    int rc = moe_tokenizer_parse((const char *)p, n_json, "t", &t, &e);

    if (rc != 0) {
        if (t != NULL || e.code != rc || e.text[0] == '\0')
            abort();
        return 0;
    }
    (void)moe_tokenizer_find(t, "a", 1, &id);
    if (cut != NULL)
        encode(t, (const char *)cut + 1, n - n_json - 1);
    moe_tokenizer_free(t);
    return 0;
}
