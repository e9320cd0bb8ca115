/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of moe-serve share. */
#ifndef MOE_SERVE_SERVE_H
#define MOE_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/engine/kv.h"
#include "common/engine/model.h"
#include "common/engine/sampler.h"
#include "common/engine/session.h"
#include "common/engine/tokenizer.h"
#include "common/formats/source.h"

#define SERVE_MAX_STDIN ((size_t)256 << 20)     /* bytes of text or ids */
#define SERVE_MAX_BIAS 256                      /* tokens with --logit-bias */
#define SERVE_MAX_STOPS 64                      /* texts of --stop, ids of --stop-id */

enum serve_mode {
    SERVE_NONE, SERVE_ONCE, SERVE_TOKENIZE, SERVE_DETOKENIZE, SERVE_LOGITS, SERVE_PPL
};

struct serve_options {
    enum serve_mode mode;
    const char *model;
    int64_t threads;                /* 0 = what there is */
    int64_t context;                /* 0 = the default */
    int64_t batch;                  /* rows of a step */
    bool arith_given;
    enum moe_arith arith;
    bool quiet, chat;
    int64_t tokens;                 /* most new ones */
    struct moe_sampler_options sampler;
    struct moe_sampler_bias bias[SERVE_MAX_BIAS];
    const char *stop[SERVE_MAX_STOPS];
    size_t n_stop;
    uint32_t stop_id[SERVE_MAX_STOPS];
    size_t n_stop_id;
    bool logprobs;
    int64_t top_logprobs;
    int64_t speculate;              /* most tokens of a guess */
    const char *grammar, *schema;   /* a file, or NULL: of one or the other */
    struct moe_forward_gate gate;   /* noise in the choice of experts */
};

/* ---- serve_engine.c: a model ready for steps ---- */

struct serve_engine {
    struct moe_pool *pool;
    struct moe_backend *backend;
    struct moe_model *model;
    struct moe_kv *kv;
    struct moe_forward *forward;
    size_t context;
    enum moe_arith arith;
};

int serve_engine_open(const struct serve_options *o, struct serve_engine *g, struct moe_err *e);
void serve_engine_close(struct serve_engine *g);

/* ---- serve_text.c: tokenizer, text and ids ---- */

/* The tokenizer beside the weights of s. */
int serve_text_tokenizer(const struct moe_source *s, struct moe_tokenizer **out,
    struct moe_err *e);

/* The next whole number from *p on (before end), past blanks; false: none is left, or *bad. */
bool serve_text_id(const char **p, const char *end, uint32_t *id, bool *bad);

int serve_text_tokenize(const struct serve_options *o, struct moe_err *e);
int serve_text_detokenize(const struct serve_options *o, struct moe_err *e);

/* Write to stdout at once. Errors: MOE_EIO. */
int serve_text_put(const void *p, size_t n, struct moe_err *e);

/* ---- serve_chat.c: the model's template ---- */

/* One user message as the model wants to read it; outside gets where the user's words stand. */
int serve_chat_render(const struct moe_source *s, const char *text, size_t n,
    struct moe_buf *out, struct moe_spans *outside, struct moe_err *e);

/* ---- serve_emit.c: what --once writes ---- */

struct serve_emit;

/* t is borrowed. With o->logprobs a line of JSON a token, else their text. */
int serve_emit_new(const struct serve_options *o, const struct moe_tokenizer *t,
    struct serve_emit **out, struct moe_err *e);
void serve_emit_free(struct serve_emit *w);

/* The next token, lp when logarithms are due. *ended: a stop text is complete. */
int serve_emit_token(struct serve_emit *w, uint32_t id, const struct moe_logprobs *lp,
    bool *ended, struct moe_err *e);

/* The output ended otherwise. */
int serve_emit_end(struct serve_emit *w, struct moe_err *e);

/* ---- serve_grammar.c: what the output may be ---- */

struct serve_grammar;

/* *out is NULL when o asks for nothing. t is borrowed; vocab: ids of the model. */
int serve_grammar_open(const struct serve_options *o, const struct moe_tokenizer *t, size_t vocab,
    struct serve_grammar **out, struct moe_err *e);
void serve_grammar_close(struct serve_grammar *g);

/* Bind the choice of a session to it. NULL: nothing is bound. */
int serve_grammar_bind(struct serve_grammar *g, struct moe_session *s, struct moe_err *e);

/* ---- The other modes ---- */

int serve_once_run(const struct serve_options *o, struct moe_err *e);
int serve_logits_run(const struct serve_options *o, struct moe_err *e);
int serve_ppl_run(const struct serve_options *o, struct moe_err *e);

#endif
