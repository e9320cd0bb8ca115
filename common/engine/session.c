/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns sequences: what they hold, and how parts of several become the rows of
 * one step.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/session.h"

struct moe_session {
    const struct moe_model *m;
    struct moe_kv_seq seq;
    struct moe_rope rope;
    uint32_t *id;               /* [cap] */
    size_t n, cap, done;        /* tokens, room, tokens computed */
    size_t context;
    struct moe_chooser *chooser;
};

int
moe_session_new(const struct moe_model *m, struct moe_kv *kv, size_t context, size_t len,
    const struct moe_sampler_options *sampler, struct moe_session **out, struct moe_err *e)
{
    struct moe_session *s = NULL;
    int rc;

    *out = NULL;
    if (context < 1 || context > UINT32_MAX)
        return moe_err_set(e, MOE_EUSAGE, "a context of %zu tokens", context);
    if ((s = calloc(1, sizeof(*s))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "session: out of memory");
    s->m = m;
    s->context = context;
    moe_kv_seq_init(&s->seq, kv);
    if ((rc = moe_rope_init(&s->rope, &m->config, m->hp.rope_dim, len == 0 ? context : len,
        e)) != 0)
        goto out;
    if ((rc = moe_chooser_new(sampler, m->hp.vocab, &s->chooser, e)) != 0)
        goto out;
    *out = s;
    s = NULL;
out:
    moe_session_free(s);
    return rc;
}

void
moe_session_free(struct moe_session *s)
{
    if (s == NULL)
        return;
    moe_kv_seq_fini(&s->seq);
    free(s->id);
    moe_chooser_free(s->chooser);
    free(s);
}

struct moe_chooser *
moe_session_chooser(struct moe_session *s)
{
    return s->chooser;
}

static int
append(struct moe_session *s, const uint32_t *id, size_t n, struct moe_err *e)
{
    if (n > s->context - s->n)
        return moe_err_set(e, MOE_ELIMIT, "%zu tokens do not fit a context of %zu", s->n + n,
            s->context);
    for (size_t i = 0; i < n; i++) {
        if (id[i] >= s->m->hp.vocab)
            return moe_err_set(e, MOE_EUSAGE, "token %lu is not in the vocabulary of %zu",
                (unsigned long)id[i], s->m->hp.vocab);
    }
    if (s->n + n > s->cap) {
        size_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        uint32_t *p;

        cap = s->n + n > cap ? s->n + n : cap;
        if ((p = realloc(s->id, cap * sizeof(*p))) == NULL)
            return moe_err_set(e, MOE_ENOMEM, "session: out of memory");
        s->id = p;
        s->cap = cap;
    }
    memcpy(s->id + s->n, id, n * sizeof(*id));
    s->n += n;
    return 0;
}

int
moe_session_add(struct moe_session *s, const uint32_t *id, size_t n, struct moe_err *e)
{
    int rc = append(s, id, n, e);

    if (rc == 0)
        moe_chooser_prompt(s->chooser, id, n);
    return rc;
}

const uint32_t *
moe_session_tokens(const struct moe_session *s)
{
    return s->id;
}

size_t
moe_session_len(const struct moe_session *s)
{
    return s->n;
}

size_t
moe_session_pending(const struct moe_session *s)
{
    return s->n - s->done;
}

/* Whose row of a step it is. */
struct owner {
    struct moe_session *s;
    size_t at;
};

struct step {
    struct owner *owners;
    moe_session_fn *fn;
    void *ctx;
};

static int
pass_on(void *ctx, size_t i, const float *logits, struct moe_err *e)
{
    const struct step *t = ctx;

    return t->fn(t->ctx, t->owners[i].s, t->owners[i].at, logits, e);
}

static int
fill(const struct moe_session_part *parts, size_t count, struct moe_row *rows,
    struct owner *owners, struct moe_err *e)
{
    size_t k = 0;
    int rc;

    for (size_t i = 0; i < count; i++) {
        struct moe_session *s = parts[i].s;

        if ((rc = moe_kv_seq_grow(&s->seq, s->done + parts[i].n, e)) != 0)
            return rc;
        for (size_t at = s->done; at < s->done + parts[i].n; at++, k++) {
            owners[k] = (struct owner){ s, at };
            rows[k] = (struct moe_row){ .seq = &s->seq, .rope = &s->rope, .pos = (uint32_t)at,
                .token = s->id[at], .want = parts[i].every || at + 1 == s->n };
        }
    }
    return 0;
}

int
moe_session_step(struct moe_forward *f, const struct moe_session_part *parts, size_t count,
    moe_session_fn *fn, void *ctx, struct moe_err *e)
{
    struct step t = { NULL, fn, ctx };
    struct moe_row *rows = NULL;
    size_t n = 0;
    int rc;

    for (size_t i = 0; i < count; i++) {
        if (parts[i].n > moe_session_pending(parts[i].s)
            || parts[i].n > moe_forward_rows(f) - n)
            return moe_err_set(e, MOE_EUSAGE, "a step of more tokens than there are");
        n += parts[i].n;
    }
    rows = calloc(n + 1, sizeof(*rows));
    t.owners = malloc((n + 1) * sizeof(*t.owners));
    if (rows == NULL || t.owners == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "step: out of memory");
        goto out;
    }
    if ((rc = fill(parts, count, rows, t.owners, e)) != 0)
        goto out;
    for (size_t i = 0; i < n && fn == NULL; i++)
        rows[i].want = false;
    if ((rc = moe_forward_step(f, rows, n, pass_on, &t, e)) != 0)
        goto out;
    for (size_t i = 0; i < count; i++)
        parts[i].s->done += parts[i].n;
out:
    free(rows);
    free(t.owners);
    return rc;
}

int
moe_session_run(struct moe_forward *f, struct moe_session *s, bool every, moe_session_fn *fn,
    void *ctx, struct moe_err *e)
{
    while (moe_session_pending(s) > 0) {
        size_t n = moe_session_pending(s), most = moe_forward_rows(f);
        struct moe_session_part p = { s, n < most ? n : most, every };
        int rc;

        if ((rc = moe_session_step(f, &p, 1, fn, ctx, e)) != 0)
            return rc;
    }
    return 0;
}

static int
draw(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    uint32_t *id = ctx;
    int rc;

    (void)at;
    if ((rc = moe_chooser_pick(s->chooser, logits, id, e)) != 0)
        return rc;
    return moe_chooser_take(s->chooser, *id, e);
}

int
moe_session_next(struct moe_forward *f, struct moe_session *s, uint32_t *id, struct moe_err *e)
{
    int rc;

    if (moe_session_pending(s) == 0)
        return moe_err_set(e, MOE_EUSAGE, "nothing to go on from: no token is pending");
    if ((rc = moe_session_run(f, s, false, draw, id, e)) != 0)
        return rc;
    return append(s, id, 1, e);
}

struct trial {
    moe_session_got_fn *got;
    void *ctx;
    bool over;              /* the draft went another way, or the text has ended */
    size_t kept;            /* tokens that stand: all before the one chosen last */
    uint32_t last;
};

/* The logits after token at: what is chosen, and whether the draft had it. */
static int
verify(void *ctx, struct moe_session *s, size_t at, const float *logits, struct moe_err *e)
{
    struct trial *t = ctx;
    int rc;

    if (t->over)
        return 0;
    if ((rc = draw(&t->last, s, at, logits, e)) != 0)
        return rc;
    t->kept = at + 1;
    t->over = moe_chooser_ended(s->chooser) || at + 1 >= s->n || s->id[at + 1] != t->last;
    return t->got(t->ctx, s, t->last, e);
}

int
moe_session_try(struct moe_forward *f, struct moe_session *s, const uint32_t *draft, size_t n,
    moe_session_got_fn *got, void *ctx, struct moe_err *e)
{
    struct trial t = { got, ctx, false, s->n, 0 };
    struct moe_session_part part = { s, n + 1, true };
    int rc;

    if (moe_session_pending(s) != 1)
        return moe_err_set(e, MOE_EUSAGE, "a draft goes on from one pending token, not %zu",
            moe_session_pending(s));
    if (n + 1 > s->context - s->n)
        return moe_err_set(e, MOE_ELIMIT, "%zu tokens do not fit a context of %zu",
            s->n + n + 1, s->context);
    if ((rc = append(s, draft, n, e)) == 0)
        rc = moe_session_step(f, &part, 1, verify, &t, e);
    s->n = t.kept;
    s->done = s->done < s->n ? s->done : s->n;
    moe_kv_seq_cut(&s->seq, s->n);
    return rc == 0 ? append(s, &t.last, 1, e) : rc;
}
