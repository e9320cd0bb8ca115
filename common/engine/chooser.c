/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what a request's choice of tokens depends on beside the logits. The
 * changes to logits are here, the filters and the draw in sampler.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/chooser.h"
#include "common/engine/tokens.h"

struct seen {
    uint32_t output;        /* times in the output */
    bool any;               /* in prompt or output: listed */
};

struct moe_chooser {
    struct moe_sampler_options o;
    struct moe_sampler_bias *bias;
    size_t vocab;
    uint64_t taken;
    bool ended;
    uint32_t ends[MOE_CHOOSER_MAX_ENDS];
    size_t n_ends;
    bool penalties;
    struct seen *seen;          /* [vocab] with penalties */
    uint32_t *listed;           /* [vocab] ids seen, in order of appearance */
    size_t n_listed;
    float *row;                 /* [vocab] logits as changed, when something changes them */
    struct moe_candidate *candidates;   /* [vocab] unless greedy */
    struct moe_matcher *matcher;        /* borrowed, or NULL */
    bool watch;
    size_t top;
    struct moe_logprobs logprobs;
};

static bool
changes(const struct moe_chooser *c)
{
    return c->penalties || c->o.n_bias > 0 || c->matcher != NULL;
}

static int
copy_bias(struct moe_chooser *c, const struct moe_sampler_options *o, struct moe_err *e)
{
    if (o->n_bias > MOE_CHOOSER_MAX_BIAS)
        return moe_err_set(e, MOE_ELIMIT, "bias of more than %d tokens", MOE_CHOOSER_MAX_BIAS);
    for (size_t i = 0; i < o->n_bias; i++) {
        if (o->bias[i].id >= c->vocab)
            return moe_err_set(e, MOE_EUSAGE, "bias: token %lu is not in the vocabulary of %zu",
                (unsigned long)o->bias[i].id, c->vocab);
    }
    c->o.bias = NULL;
    if (o->n_bias == 0)
        return 0;
    if ((c->bias = malloc(o->n_bias * sizeof(*c->bias))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "sampling: out of memory");
    memcpy(c->bias, o->bias, o->n_bias * sizeof(*c->bias));
    c->o.bias = c->bias;
    return 0;
}

int
moe_chooser_new(const struct moe_sampler_options *o, size_t vocab, struct moe_chooser **out,
    struct moe_err *e)
{
    struct moe_chooser *c = NULL;
    int rc;

    *out = NULL;
    if ((rc = moe_sampler_check(o, e)) != 0)
        return rc;
    if ((c = calloc(1, sizeof(*c))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "sampling: out of memory");
    c->o = *o;
    c->vocab = vocab;
    c->penalties = o->repetition != 1 || o->presence != 0 || o->frequency != 0;
    if ((rc = copy_bias(c, o, e)) != 0)
        goto out;
    if (o->temperature > 0)
        c->candidates = malloc(vocab * sizeof(*c->candidates));
    if (changes(c))
        c->row = malloc(vocab * sizeof(*c->row));
    if (c->penalties) {
        c->seen = calloc(vocab, sizeof(*c->seen));
        c->listed = malloc(vocab * sizeof(*c->listed));
    }
    if ((o->temperature > 0 && c->candidates == NULL) || (changes(c) && c->row == NULL)
        || (c->penalties && (c->seen == NULL || c->listed == NULL))) {
        rc = moe_err_set(e, MOE_ENOMEM, "sampling: out of memory");
        goto out;
    }
    *out = c;
    c = NULL;
out:
    moe_chooser_free(c);
    return rc;
}

void
moe_chooser_free(struct moe_chooser *c)
{
    if (c == NULL)
        return;
    free(c->bias);
    free(c->seen);
    free(c->listed);
    free(c->row);
    free(c->candidates);
    free(c);
}

int
moe_chooser_ends(struct moe_chooser *c, const uint32_t *id, size_t n, struct moe_err *e)
{
    if (n > MOE_CHOOSER_MAX_ENDS - c->n_ends)
        return moe_err_set(e, MOE_ELIMIT, "more than %d tokens that end the text",
            MOE_CHOOSER_MAX_ENDS);
    for (size_t i = 0; i < n; i++) {
        if (id[i] >= c->vocab)
            return moe_err_set(e, MOE_EUSAGE, "token %lu, to end the text, is not in the "
                "vocabulary of %zu", (unsigned long)id[i], c->vocab);
        c->ends[c->n_ends++] = id[i];
    }
    return 0;
}

int
moe_chooser_constrain(struct moe_chooser *c, struct moe_matcher *m, struct moe_err *e)
{
    if (moe_matcher_ids(m) != c->vocab)
        return moe_err_set(e, MOE_EUSAGE, "grammar: a lexicon of %lu ids for a vocabulary of %zu",
            (unsigned long)moe_matcher_ids(m), c->vocab);
    if (c->row == NULL && (c->row = malloc(c->vocab * sizeof(*c->row))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "sampling: out of memory");
    c->matcher = m;
    return 0;
}

int
moe_chooser_watch(struct moe_chooser *c, size_t top, struct moe_err *e)
{
    if (top > MOE_LOGPROB_MAX || top > c->vocab)
        return moe_err_set(e, MOE_EUSAGE, "probabilities of %zu tokens: at most %d", top,
            MOE_LOGPROB_MAX);
    c->watch = true;
    c->top = top;
    return 0;
}

static void
see(struct moe_chooser *c, uint32_t id, uint32_t output)
{
    if (!c->penalties)
        return;
    if (!c->seen[id].any)
        c->listed[c->n_listed++] = id;
    c->seen[id].any = true;
    c->seen[id].output += output;
}

void
moe_chooser_prompt(struct moe_chooser *c, const uint32_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        see(c, id[i], 0);
}

/* In float, each step rounded, as the reference computes them. */
static void
change(struct moe_chooser *c)
{
    float rep = (float)c->o.repetition;

    for (size_t i = 0; i < c->n_listed; i++) {
        uint32_t id = c->listed[i], times = c->seen[id].output;
        float v = c->row[id];

        v = v < 0 ? v * rep : v / rep;
        if (times > 0) {
            v -= (float)c->o.presence;
            v -= (float)(c->o.frequency * (double)times);
        }
        c->row[id] = v;
    }
    for (size_t i = 0; i < c->o.n_bias; i++)
        c->row[c->bias[i].id] += c->bias[i].bias;
}

const float *
moe_chooser_row(struct moe_chooser *c, const float *logits)
{
    if (!changes(c))
        return logits;
    memcpy(c->row, logits, c->vocab * sizeof(*c->row));
    change(c);
    return c->row;
}

int
moe_chooser_pick(struct moe_chooser *c, const float *logits, uint32_t *id, struct moe_err *e)
{
    const float *row = moe_chooser_row(c, logits);
    size_t left = 1;
    int rc;

    if (c->matcher != NULL
        && (rc = moe_matcher_mask(c->matcher, c->ends, c->n_ends, c->row, &left, e)) != 0)
        return rc;
    if (left == 0)
        return moe_err_set(e, MOE_EFORMAT, "grammar: no token is a way on");
    if ((rc = moe_sampler_draw(&c->o, c->taken, row, c->vocab, c->candidates, id, e)) != 0)
        return rc;
    if (c->watch)
        moe_logprob_get(logits, c->vocab, *id, c->top, &c->logprobs);
    return 0;
}

int
moe_chooser_take(struct moe_chooser *c, uint32_t id, struct moe_err *e)
{
    int rc;

    if (id >= c->vocab)
        return moe_err_set(e, MOE_EUSAGE, "token %lu is not in the vocabulary of %zu",
            (unsigned long)id, c->vocab);
    c->ended = moe_chooser_is_end(c, id);
    see(c, id, 1);
    c->taken++;
    if (c->matcher == NULL || c->ended)
        return 0;
    rc = moe_matcher_token(c->matcher, id, e);
    c->ended = rc == 0 && moe_matcher_over(c->matcher);
    return rc;
}

bool
moe_chooser_is_end(const struct moe_chooser *c, uint32_t id)
{
    for (size_t i = 0; i < c->n_ends; i++) {
        if (c->ends[i] == id)
            return true;
    }
    return false;
}

bool
moe_chooser_ended(const struct moe_chooser *c)
{
    return c->ended;
}

uint64_t
moe_chooser_taken(const struct moe_chooser *c)
{
    return c->taken;
}

const struct moe_logprobs *
moe_chooser_logprobs(const struct moe_chooser *c)
{
    return c->watch ? &c->logprobs : NULL;
}
