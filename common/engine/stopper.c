/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the search for texts that end an output: Knuth, Morris and Pratt's, one
 * automaton a text, so that a byte costs a constant however it is repeated.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/stopper.h"

struct text {
    char *p;
    size_t n, at;           /* bytes of it that the output ends with now */
    size_t *fall;           /* [n] length of the longest border of p[0..i] */
};

struct moe_stopper {
    struct text text[MOE_STOPPER_MAX];
    size_t n;
    struct moe_buf held;
    bool ended;
};

int
moe_stopper_new(struct moe_stopper **out, struct moe_err *e)
{
    if ((*out = calloc(1, sizeof(**out))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "stop texts: out of memory");
    return 0;
}

void
moe_stopper_free(struct moe_stopper *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        free(s->text[i].p);
        free(s->text[i].fall);
    }
    moe_buf_fini(&s->held);
    free(s);
}

int
moe_stopper_add(struct moe_stopper *s, const char *p, size_t n, struct moe_err *e)
{
    struct text *t = &s->text[s->n];

    if (n == 0)
        return moe_err_set(e, MOE_EUSAGE, "an empty stop text");
    if (n > MOE_STOPPER_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "a stop text of %zu bytes: at most %d", n,
            MOE_STOPPER_MAX_BYTES);
    if (s->n == MOE_STOPPER_MAX)
        return moe_err_set(e, MOE_ELIMIT, "more than %d stop texts", MOE_STOPPER_MAX);
    t->p = malloc(n);
    t->fall = calloc(n, sizeof(*t->fall));
    s->n++;
    if (t->p == NULL || t->fall == NULL)
        return moe_err_set(e, MOE_ENOMEM, "stop texts: out of memory");
    memcpy(t->p, p, n);
    t->n = n;
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k > 0 && p[i] != p[k])
            k = t->fall[k - 1];
        k += p[i] == p[k];
        t->fall[i] = k;
    }
    return 0;
}

/* Whether c completes the text. */
static bool
step(struct text *t, char c)
{
    while (t->at > 0 && t->p[t->at] != c)
        t->at = t->fall[t->at - 1];
    t->at += t->p[t->at] == c;
    return t->at == t->n;
}

int
moe_stopper_put(struct moe_stopper *s, const char *p, size_t n, struct moe_buf *out, bool *ended,
    struct moe_err *e)
{
    size_t cut = 0, hold = 0;

    for (size_t i = 0; i < n && !s->ended; i++) {
        moe_buf_byte(&s->held, p[i]);
        for (size_t k = 0; k < s->n; k++) {
            if (step(&s->text[k], p[i]) && s->text[k].n > cut)
                cut = s->text[k].n;
        }
        s->ended = cut > 0;
    }
    *ended = s->ended;
    for (size_t k = 0; k < s->n && !s->ended; k++)
        hold = s->text[k].at > hold ? s->text[k].at : hold;
    if (s->held.bad)
        return moe_err_set(e, MOE_ENOMEM, "stop texts: out of memory");
    if (s->held.len == 0)
        return 0;
    if (s->ended)
        hold = cut;
    moe_buf_add(out, s->held.p, s->held.len - hold);
    if (s->ended) {
        moe_buf_clear(&s->held);
    } else {
        memmove(s->held.p, s->held.p + s->held.len - hold, hold);
        s->held.len = hold;
        s->held.p[hold] = '\0';
    }
    return out->bad ? moe_err_set(e, MOE_ENOMEM, "stop texts: out of memory") : 0;
}

int
moe_stopper_end(struct moe_stopper *s, struct moe_buf *out, struct moe_err *e)
{
    moe_buf_add(out, s->held.p, s->held.len);
    moe_buf_clear(&s->held);
    return out->bad ? moe_err_set(e, MOE_ENOMEM, "stop texts: out of memory") : 0;
}
