/* SPDX-License-Identifier: Apache-2.0 */
/* Text of token lists as the reference library decodes them, at once and in a stream. */
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/decoder.h"
#include "tests/golden.h"
#include "tests/tap.h"

static int
decode(const struct moe_decoder *d, bool stream, const json_t *tokens, struct moe_buf *out)
{
    struct moe_decoder_run *run;
    int rc = moe_decoder_run_new(d, stream, &run, NULL);

    for (size_t i = 0; rc == 0 && i < json_array_size(tokens); i++) {
        const json_t *t = json_array_get(tokens, i);
        size_t at = out->len;

        rc = moe_decoder_put(run, json_string_value(t), json_string_length(t), out, NULL);
        if (rc == 0 && out->len > at && !moe_utf8_valid(out->p + at, out->len - at))
            rc = MOE_EFORMAT;
    }
    if (rc == 0)
        rc = moe_decoder_end(run, out, NULL);
    moe_decoder_run_free(run);
    return rc;
}

static bool
is_text(const struct moe_buf *b, const json_t *want)
{
    return b->len == json_string_length(want) &&
        (b->len == 0 || memcmp(b->p, json_string_value(want), b->len) == 0);
}

static void
check(const json_t *node, const json_t *lists, const json_t *want)
{
    char *name = json_dumps(node, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
    struct moe_decoder *d = NULL;
    struct moe_err e = { 0 };
    int rc = moe_decoder_parse(node, "node", &d, &e);

    tap_ok(rc == 0, "%s is read %s", name, e.text);
    for (size_t i = 0; rc == 0 && i < json_array_size(lists); i++) {
        const json_t *out = json_array_get(want, i), *tokens = json_array_get(lists, i);
        struct moe_buf whole = MOE_BUF_INIT, stream = MOE_BUF_INIT;
        /* A stream has sent x before it learns that the run of bytes is spoilt. */
        bool spoilt = json_array_size(tokens) == 4 && i == 4;

        if (!json_is_string(out))
            continue;       /* the reference ends itself */
        tap_ok(decode(d, false, tokens, &whole) == 0 && is_text(&whole, out), "%s: list %zu",
            name, i);
        tap_ok(decode(d, true, tokens, &stream) == 0 && (spoilt || is_text(&stream, out)),
            "%s: list %zu as a stream", name, i);
        moe_buf_fini(&whole);
        moe_buf_fini(&stream);
    }
    free(name);
    moe_decoder_free(d);
}

static void
refused(const char *json, int want)
{
    json_t *o = json_loads(json, 0, NULL);
    struct moe_decoder *d;

    tap_is_int(moe_decoder_parse(o, "node", &d, NULL), want, "%s", json);
    json_decref(o);
}

/* What a stream releases of a spoilt run, and raw bytes of single tokens. */
static void
test_bytes(void)
{
    json_t *node = json_pack("{s:s}", "type", "ByteFallback");
    json_t *run = json_pack("[s, s, s, s, s]", "<0x41>", "<0xE2>", "<0x42>", "<0x43>", "x");
    struct moe_buf out = MOE_BUF_INIT, b = MOE_BUF_INIT;
    struct moe_decoder *d = NULL;

    if (moe_decoder_parse(node, "node", &d, NULL) == 0) {
        tap_is_int(decode(d, true, run, &out), 0, "a spoilt run streams");
        tap_is_str(out.p, "A\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx", "all from the bad byte on");
        tap_is_int(moe_decoder_bytes(d, "<0xE2>", 6, &b, NULL), 0, "bytes of a byte token");
        tap_is_str(b.p, "\xe2", "the byte");
    }
    moe_decoder_free(d);
    moe_buf_fini(&out);
    moe_buf_fini(&b);
    json_decref(node);
    json_decref(run);
}

int
main(void)
{
    const json_t *all = golden_json("text/parts.json");
    const json_t *list = json_object_get(all, "decoders");

    tap_ok(json_array_size(list) > 0, "there are nodes");
    for (size_t i = 0; i < json_array_size(list); i++)
        check(json_object_get(json_array_get(list, i), "node"), json_object_get(all, "tokens"),
            json_object_get(json_array_get(list, i), "out"));
    refused("{\"type\": \"WordPiece\"}", MOE_EUNSUP);
    refused("{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"},"
        " {\"type\": \"ByteFallback\"}]}", MOE_EUNSUP);
    refused("{\"type\": \"Strip\", \"content\": \"ab\", \"start\": 1, \"stop\": 0}", MOE_EFORMAT);
    refused("{\"type\": \"Strip\", \"content\": \"a\", \"start\": -1}", MOE_EFORMAT);
    test_bytes();
    return tap_done();
}
