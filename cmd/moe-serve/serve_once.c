/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns --once: a prompt on stdin, the model's continuation, and what ends it.
 * Writing is serve_emit.c's.
 */
#include <stdlib.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/read.h"
#include "common/engine/speculate.h"

#define MAX_STOPS 64

struct stops {              /* ids that end a text */
    uint32_t id[MAX_STOPS];
    size_t n;
};

static int
add_stop(struct stops *s, const json_t *v, const char *name, struct moe_err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT32_MAX)
        return moe_err_set(e, MOE_EFORMAT, "%s: eos_token_id: not a token id", name);
    if (s->n == MAX_STOPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: eos_token_id: more than %d", name, MAX_STOPS);
    s->id[s->n++] = (uint32_t)json_integer_value(v);
    return 0;
}

/* eos_token_id of o: an id, a list, or nothing. */
static int
stops_of(const json_t *o, const char *name, struct stops *s, struct moe_err *e)
{
    const json_t *eos = json_object_get(o, "eos_token_id"), *v;
    size_t i;
    int rc;

    if (eos == NULL || json_is_null(eos))
        return 0;
    s->n = 0;
    if (!json_is_array(eos))
        return add_stop(s, eos, name, e);
    json_array_foreach (eos, i, v) {
        if ((rc = add_stop(s, v, name, e)) != 0)
            return rc;
    }
    return 0;
}

/* config.json says what ends a text; generation_config.json knows better. */
static int
read_stops(const struct moe_model *m, struct stops *s, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    json_t *tree = NULL;
    int rc;

    *s = (struct stops){ { 0 }, 0 };
    if ((rc = stops_of(m->config.text, m->config.name, s, e)) != 0)
        return rc;
    rc = moe_source_aux(m->source, "generation_config.json", MOE_JSON_MAX_BYTES, &b, e);
    if (rc == 0 && (rc = moe_json_parse(b.p, b.len, "generation_config.json", &tree, e)) == 0)
        rc = stops_of(tree, "generation_config.json", s, e);
    json_decref(tree);
    moe_buf_fini(&b);
    return rc == MOE_ENOENT ? 0 : rc;
}

static int
read_prompt(const struct serve_options *o, const struct moe_model *m,
    const struct moe_tokenizer *t, struct moe_tokens *ids, struct moe_err *e)
{
    struct moe_buf in = MOE_BUF_INIT, chat = MOE_BUF_INIT;
    struct moe_spans outside = MOE_SPANS_INIT;
    int rc;

    if ((rc = moe_read_file("-", SERVE_MAX_STDIN, &in, e)) != 0)
        goto out;
    if (o->chat) {
        if ((rc = serve_chat_render(m->source, in.p, in.len, &chat, &outside, e)) != 0)
            goto out;
        rc = moe_tokenizer_encode_prompt(t, chat.p, chat.len, &outside, false, ids, e);
    } else {
        rc = moe_tokenizer_encode(t, in.p, in.len, MOE_ADDED_ALL, true, ids, e);
    }
    if (rc != 0)
        rc = moe_err_at(e, "stdin");
    else if (ids->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "stdin: the prompt is empty");
out:
    moe_buf_fini(&in);
    moe_buf_fini(&chat);
    moe_span_fini(&outside);
    return rc;
}

struct going {
    struct serve_emit *emit;
    size_t n;               /* tokens so far */
    bool ended;
};

static int
on_token(void *ctx, struct moe_session *s, uint32_t id, struct moe_err *e)
{
    struct moe_chooser *c = moe_session_chooser(s);
    struct going *g = ctx;
    int rc;

    g->n++;
    if (g->ended || (g->ended = moe_chooser_is_end(c, id)))
        return 0;
    rc = serve_emit_token(g->emit, id, moe_chooser_logprobs(c), &g->ended, e);
    g->ended = g->ended || moe_chooser_ended(c);
    return rc;
}

/* One step: guessed tokens where the text repeats itself, else the next token. */
static int
advance(struct serve_engine *g, struct moe_session *s, struct moe_speculate *guess, size_t most,
    struct going *to, struct moe_err *e)
{
    size_t room = most - to->n - 1, rows = moe_forward_rows(g->forward) - 1, n = 0;
    uint32_t draft[MOE_SPECULATE_MAX], id;
    bool prompt = moe_session_pending(s) > 1;
    uint64_t begun = moe_clock_ns();
    size_t before = to->n;
    int rc;

    if (!prompt)
        n = moe_speculate_draft(guess, moe_session_tokens(s), moe_session_len(s),
            room < rows ? room : rows, draft);
    if (n > 0)
        rc = moe_session_try(g->forward, s, draft, n, on_token, to, e);
    else if ((rc = moe_session_next(g->forward, s, &id, e)) == 0)
        rc = on_token(to, s, id, e);
    if (rc == 0 && !prompt)
        moe_speculate_learn(guess, n, to->n - before, moe_clock_ns() - begun);
    return rc;
}

/* At most so many tokens, their text as it becomes whole. */
static int
generate(struct serve_engine *g, struct moe_session *s, const struct moe_tokenizer *t,
    const struct serve_options *o, size_t most, struct moe_err *e)
{
    struct going to = { NULL, 0, false };
    struct moe_speculate guess;
    int rc;

    moe_speculate_init(&guess, (size_t)o->speculate);
    if (o->logprobs
        && (rc = moe_chooser_watch(moe_session_chooser(s), (size_t)o->top_logprobs, e)) != 0)
        return rc;
    if ((rc = serve_emit_new(o, t, &to.emit, e)) != 0)
        return rc;
    while (rc == 0 && !to.ended && to.n < most)
        rc = advance(g, s, &guess, most, &to, e);
    if (rc == 0)
        rc = serve_emit_end(to.emit, e);
    serve_emit_free(to.emit);
    return rc;
}

int
serve_once_run(const struct serve_options *o, struct moe_err *e)
{
    struct serve_engine g;
    struct moe_tokenizer *t = NULL;
    struct moe_tokens ids = MOE_TOKENS_INIT;
    struct moe_session *s = NULL;
    struct serve_grammar *grammar = NULL;
    struct stops stops;
    size_t room, most;
    int rc;

    if ((rc = serve_engine_open(o, &g, e)) != 0)
        return rc;
    if ((rc = read_stops(g.model, &stops, e)) != 0)
        goto out;
    if ((rc = serve_text_tokenizer(g.model->source, &t, e)) != 0)
        goto out;
    if ((rc = serve_grammar_open(o, t, g.model->hp.vocab, &grammar, e)) != 0)
        goto out;
    if ((rc = read_prompt(o, g.model, t, &ids, e)) != 0)
        goto out;
    if (ids.n >= g.context) {
        rc = moe_err_set(e, MOE_ELIMIT, "stdin: a prompt of %zu tokens leaves no room in a "
            "context of %zu", ids.n, g.context);
        goto out;
    }
    room = g.context - ids.n;
    most = room < (size_t)o->tokens ? room : (size_t)o->tokens;
    if ((rc = moe_session_new(g.model, g.kv, g.context, ids.n + most, &o->sampler, &s, e)) != 0)
        goto out;
    if (moe_session_add(s, ids.id, ids.n, e) != 0) {
        rc = moe_err_at(e, "stdin");
        goto out;
    }
    if ((rc = moe_chooser_ends(moe_session_chooser(s), stops.id, stops.n, e)) != 0
        || (rc = moe_chooser_ends(moe_session_chooser(s), o->stop_id, o->n_stop_id, e)) != 0)
        goto out;
    if ((rc = serve_grammar_bind(grammar, s, e)) == 0)
        rc = generate(&g, s, t, o, most, e);
out:
    moe_session_free(s);
    serve_grammar_close(grammar);
    moe_tokens_fini(&ids);
    moe_tokenizer_free(t);
    serve_engine_close(&g);
    return rc;
}
