/* SPDX-License-Identifier: Apache-2.0 */
/* moe-serve: the option table, and which mode runs. */
#include <string.h>

#include "cmd/moe-serve/serve.h"
#include "common/base/num.h"
#include "common/base/opt.h"
#include "common/base/tool.h"
#include "common/engine/speculate.h"

enum {
    ID_ONCE = 1, ID_TOKENIZE, ID_DETOKENIZE, ID_LOGITS, ID_PPL, ID_CHAT, ID_TOKENS, ID_TEMP,
    ID_TOP_K, ID_TOP_P, ID_MIN_P, ID_SEED, ID_REPETITION, ID_PRESENCE, ID_FREQUENCY, ID_BIAS,
    ID_STOP, ID_STOP_ID, ID_LOGPROBS, ID_SPECULATE, ID_GRAMMAR, ID_SCHEMA, ID_GATE_TEMP,
    ID_GATE_SEED, ID_THREADS, ID_CONTEXT, ID_BATCH, ID_ARITH, ID_QUIET
};

static const struct moe_opt opts[] = {
    { ID_ONCE, 0, "once", MOE_OPT_NONE, NULL, "continue the prompt on stdin", NULL, true, false },
    { ID_TOKENIZE, 0, "tokenize", MOE_OPT_NONE, NULL, "text on stdin to token ids", NULL, true,
        false },
    { ID_DETOKENIZE, 0, "detokenize", MOE_OPT_NONE, NULL, "token ids on stdin to text", NULL,
        true, false },
    { ID_LOGITS, 0, "logits", MOE_OPT_NONE, NULL, "logits of lists of ids, as safetensors", NULL,
        true, false },
    { ID_PPL, 0, "ppl", MOE_OPT_NONE, NULL, "perplexity of the text on stdin, as JSON", NULL,
        true, false },
    { ID_CHAT, 0, "chat", MOE_OPT_NONE, NULL, "the prompt is a user's message", NULL, false,
        false },
    { ID_TOKENS, 'N', "tokens", MOE_OPT_WORD, "N", "at most N new tokens (256)", NULL, false,
        false },
    { ID_TEMP, 0, "temp", MOE_OPT_WORD, "T", "temperature, 0 takes the likeliest (0)", NULL,
        false, false },
    { ID_TOP_K, 0, "top-k", MOE_OPT_WORD, "K", "of the K likeliest only, 0 = all (0)", NULL,
        false, false },
    { ID_TOP_P, 0, "top-p", MOE_OPT_WORD, "P", "of the likeliest that make up P (1)", NULL,
        false, false },
    { ID_MIN_P, 0, "min-p", MOE_OPT_WORD, "P", "none below P of the likeliest (0)", NULL, false,
        false },
    { ID_SEED, 0, "seed", MOE_OPT_WORD, "N", "of the random numbers (0)", NULL, false, false },
    { ID_REPETITION, 0, "repetition", MOE_OPT_WORD, "R", "penalty of tokens seen, 1 = none (1)",
        NULL, false, false },
    { ID_PRESENCE, 0, "presence", MOE_OPT_WORD, "P", "penalty of tokens put out, 0 = none (0)",
        NULL, false, false },
    { ID_FREQUENCY, 0, "frequency", MOE_OPT_WORD, "P", "penalty each time put out, 0 = none (0)",
        NULL, false, false },
    { ID_BIAS, 0, "logit-bias", MOE_OPT_WORD, "ID=B", "add B to the logit of token ID", NULL,
        false, true },
    { ID_STOP, 0, "stop", MOE_OPT_WORD, "TEXT", "end before TEXT", NULL, false, true },
    { ID_STOP_ID, 0, "stop-id", MOE_OPT_WORD, "ID", "end at token ID", NULL, false, true },
    { ID_LOGPROBS, 0, "logprobs", MOE_OPT_WORD, "N", "JSON of tokens and the N likeliest", NULL,
        false, false },
    { ID_SPECULATE, 0, "speculate", MOE_OPT_WORD, "N", "guess up to N tokens, 0 = never (8)",
        NULL, false, false },
    { ID_GRAMMAR, 0, "grammar", MOE_OPT_FILE, "FILE", "only texts of this grammar (GBNF)", NULL,
        false, false },
    { ID_SCHEMA, 0, "schema", MOE_OPT_FILE, "FILE", "only JSON of this schema", NULL, false,
        false },
    { ID_GATE_TEMP, 0, "gate-temp", MOE_OPT_WORD, "T", "choose experts with noise, 0 = none (0)",
        NULL, false, false },
    { ID_GATE_SEED, 0, "gate-seed", MOE_OPT_WORD, "N", "of that noise (0)", NULL, false, false },
    { ID_THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads, 0 = all processors (0)", NULL,
        false, false },
    { ID_CONTEXT, 'c', "context", MOE_OPT_WORD, "N", "tokens in sight (the model's, <= 4096)",
        NULL, false, false },
    { ID_BATCH, 'b', "batch", MOE_OPT_WORD, "N", "tokens computed together (512)", NULL, false,
        false },
    { ID_ARITH, 0, "arith", MOE_OPT_CHOICE, "A", "f32, or fast: int8 inputs for INT4",
        "f32|fast", false, false },
    { ID_QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "--once [--chat] [-N N] [--temp T] [--seed N] [options] MODEL",
    "--logits [-j N] [-c N] [-b N] [--arith A] MODEL",
    "--ppl [-j N] [-c N] [-b N] [--arith A] MODEL",
    "--tokenize MODEL",
    "--detokenize MODEL",
    NULL
};

static const struct moe_opt_cmd cmd = {
    .program = "moe-serve",
    .usage = usage,
    .summary = "Run a mixture-of-experts model as a filter.",
    .opts = opts,
    .verbs = NULL,
};

static int
whole(const char *arg, int64_t lo, int64_t hi, const char *what, int64_t *out, struct moe_err *e)
{
    return moe_num_int(arg, lo, hi, what, out, e);
}

/* ID=B into the next bias. */
static int
add_bias(struct serve_options *o, const char *arg, struct moe_err *e)
{
    const char *eq = strchr(arg, '=');
    char id[16];
    int64_t n;
    double v;
    int rc;

    if (eq == NULL || (size_t)(eq - arg) >= sizeof(id))
        return moe_err_set(e, MOE_EUSAGE, "--logit-bias: %s: not ID=B", arg);
    if (o->sampler.n_bias == SERVE_MAX_BIAS)
        return moe_err_set(e, MOE_ELIMIT, "--logit-bias: more than %d", SERVE_MAX_BIAS);
    memcpy(id, arg, (size_t)(eq - arg));
    id[eq - arg] = '\0';
    if ((rc = whole(id, 0, UINT32_MAX, "--logit-bias", &n, e)) != 0
        || (rc = moe_num_real(eq + 1, -1e6, 1e6, "--logit-bias", &v, e)) != 0)
        return rc;
    o->bias[o->sampler.n_bias++] = (struct moe_sampler_bias){ (uint32_t)n, (float)v };
    return 0;
}

static int
add_stop(struct serve_options *o, int id, const char *arg, struct moe_err *e)
{
    int64_t n;
    int rc;

    if ((id == ID_STOP ? o->n_stop : o->n_stop_id) == SERVE_MAX_STOPS)
        return moe_err_set(e, MOE_ELIMIT, "--stop: more than %d", SERVE_MAX_STOPS);
    if (id == ID_STOP) {
        o->stop[o->n_stop++] = arg;
        return 0;
    }
    if ((rc = whole(arg, 0, UINT32_MAX, "--stop-id", &n, e)) == 0)
        o->stop_id[o->n_stop_id++] = (uint32_t)n;
    return rc;
}

/* Options of --once about the choice of tokens. */
static int
on_choice(struct serve_options *o, int id, const char *arg, struct moe_err *e)
{
    struct moe_sampler_options *s = &o->sampler;
    int64_t seed;
    int rc;

    switch (id) {
    case ID_TEMP: return moe_num_real(arg, 0, 1e6, "--temp", &s->temperature, e);
    case ID_TOP_K: return whole(arg, 0, INT32_MAX, "--top-k", &s->top_k, e);
    case ID_TOP_P: return moe_num_real(arg, 1e-9, 1, "--top-p", &s->top_p, e);
    case ID_MIN_P: return moe_num_real(arg, 0, 1, "--min-p", &s->min_p, e);
    case ID_SEED:
        if ((rc = whole(arg, 0, INT64_MAX, "--seed", &seed, e)) == 0)
            s->seed = (uint64_t)seed;
        return rc;
    case ID_REPETITION: return moe_num_real(arg, 0.01, 100, "--repetition", &s->repetition, e);
    case ID_PRESENCE: return moe_num_real(arg, -100, 100, "--presence", &s->presence, e);
    case ID_FREQUENCY: return moe_num_real(arg, -100, 100, "--frequency", &s->frequency, e);
    case ID_BIAS: return add_bias(o, arg, e);
    case ID_STOP:
    case ID_STOP_ID: return add_stop(o, id, arg, e);
    case ID_LOGPROBS:
        o->logprobs = true;
        return whole(arg, 0, MOE_LOGPROB_MAX, "--logprobs", &o->top_logprobs, e);
    case ID_SPECULATE:
        return whole(arg, 0, MOE_SPECULATE_MAX, "--speculate", &o->speculate, e);
    case ID_GRAMMAR: o->grammar = arg; return 0;
    case ID_SCHEMA: o->schema = arg; return 0;
    default: return 0;
    }
}

static int
on_option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct serve_options *o = ctx;
    int64_t seed;
    int rc;

    switch (id) {
    case ID_ONCE: o->mode = SERVE_ONCE; return 0;
    case ID_TOKENIZE: o->mode = SERVE_TOKENIZE; return 0;
    case ID_DETOKENIZE: o->mode = SERVE_DETOKENIZE; return 0;
    case ID_LOGITS: o->mode = SERVE_LOGITS; return 0;
    case ID_PPL: o->mode = SERVE_PPL; return 0;
    case ID_CHAT: o->chat = true; return 0;
    case ID_TOKENS: return whole(arg, 1, INT32_MAX, "--tokens", &o->tokens, e);
    case ID_GATE_TEMP: return moe_num_real(arg, 0, 1000, "--gate-temp", &o->gate.temperature, e);
    case ID_GATE_SEED:
        if ((rc = whole(arg, 0, INT64_MAX, "--gate-seed", &seed, e)) == 0)
            o->gate.seed = (uint64_t)seed;
        return rc;
    case ID_THREADS: return whole(arg, 0, MOE_POOL_MAX, "--threads", &o->threads, e);
    case ID_CONTEXT: return whole(arg, 1, INT32_MAX, "--context", &o->context, e);
    case ID_BATCH: return whole(arg, 1, 65536, "--batch", &o->batch, e);
    case ID_ARITH:
        o->arith_given = true;
        o->arith = arg[1] == 'a' ? MOE_ARITH_FAST : MOE_ARITH_F32;
        return 0;
    case ID_QUIET: o->quiet = true; return 0;
    default: return on_choice(o, id, arg, e);
    }
}

static int
run(const struct serve_options *o, struct moe_err *e)
{
    switch (o->mode) {
    case SERVE_ONCE: return serve_once_run(o, e);
    case SERVE_TOKENIZE: return serve_text_tokenize(o, e);
    case SERVE_DETOKENIZE: return serve_text_detokenize(o, e);
    case SERVE_LOGITS: return serve_logits_run(o, e);
    case SERVE_PPL: return serve_ppl_run(o, e);
    case SERVE_NONE: break;
    }
    return moe_err_set(e, MOE_EUSAGE,
        "one of --once, --logits, --ppl, --tokenize, --detokenize is needed");
}

int
main(int argc, char **argv)
{
    struct serve_options o = { .tokens = 256, .batch = MOE_FORWARD_ROWS,
        .sampler = MOE_SAMPLER_GREEDY, .speculate = 8 };
    struct moe_err e = { 0 };
    bool done;
    int first, rc;

    o.sampler.bias = o.bias;
    moe_tool_start(cmd.program);
    rc = moe_opt_parse(&cmd, argc, argv, on_option, &o, &first, &done, &e);
    if (rc != 0 || done)
        return moe_tool_end(rc, &e);
    if (argc - first != 1) {
        rc = moe_err_set(&e, MOE_EUSAGE, argc == first ? "which model?" : "one model at a time");
        return moe_tool_end(rc, &e);
    }
    o.model = argv[first];
    return moe_tool_end(run(&o, &e), &e);
}
