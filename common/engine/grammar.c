/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the automata of a grammar and the checks that make them safe to follow:
 * nothing leads nowhere, no rule begins with itself.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/grammar.h"

#define NONE MOE_GRAMMAR_NONE

int
moe_grammar_new(struct moe_grammar **out, struct moe_err *e)
{
    if ((*out = calloc(1, sizeof(**out))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
    return 0;
}

void
moe_grammar_free(struct moe_grammar *g)
{
    if (g == NULL)
        return;
    free(g->state);
    free(g->edge);
    free(g->rule);
    free(g);
}

int
moe_grammar_fail(struct moe_grammar *g, const struct moe_err *e)
{
    if (g->failed.code == 0)
        g->failed = *e;
    return e->code;
}

/* Room for one more of n things of a size, at most `most`. */
static bool
room(struct moe_grammar *g, void **p, uint32_t n, uint32_t *cap, size_t size, uint32_t most,
    const char *what)
{
    uint32_t want = *cap == 0 ? 256 : 2 * *cap;
    void *q;

    if (g->failed.code != 0)
        return false;
    if (n < *cap)
        return true;
    if (n >= most) {
        (void)moe_err_set(&g->failed, MOE_ELIMIT, "grammar: more than %lu %s",
            (unsigned long)most, what);
        return false;
    }
    if ((q = realloc(*p, want * size)) == NULL) {
        (void)moe_err_set(&g->failed, MOE_ENOMEM, "grammar: out of memory");
        return false;
    }
    *p = q;
    *cap = want;
    return true;
}

uint32_t
moe_grammar_state(struct moe_grammar *g)
{
    void *p = g->state;

    if (!room(g, &p, g->n_states, &g->cap_states, sizeof(*g->state), MOE_GRAMMAR_MAX_STATES,
        "states"))
        return 0;
    g->state = p;
    g->state[g->n_states] = (struct moe_grammar_state){ NONE, false, false };
    return g->n_states++;
}

uint32_t
moe_grammar_rule(struct moe_grammar *g)
{
    uint32_t start = moe_grammar_state(g), end = moe_grammar_state(g);
    void *p = g->rule;

    if (!room(g, &p, g->n_rules, &g->cap_rules, sizeof(*g->rule), MOE_GRAMMAR_MAX_RULES, "rules"))
        return 0;
    g->rule = p;
    g->rule[g->n_rules] = (struct moe_grammar_rule){ start, end };
    g->state[end].end = true;
    return g->n_rules++;
}

static void
add_edge(struct moe_grammar *g, uint32_t from, struct moe_grammar_edge edge)
{
    void *p = g->edge;

    if (!room(g, &p, g->n_edges, &g->cap_edges, sizeof(*g->edge), MOE_GRAMMAR_MAX_EDGES, "edges"))
        return;
    g->edge = p;
    edge.next = g->state[from].edge;
    g->state[from].edge = g->n_edges;
    g->edge[g->n_edges++] = edge;
}

void
moe_grammar_bytes(struct moe_grammar *g, uint32_t from, uint8_t lo, uint8_t hi, uint32_t to)
{
    add_edge(g, from, (struct moe_grammar_edge){ to, NONE, NONE, lo, hi });
}

void
moe_grammar_jump(struct moe_grammar *g, uint32_t from, uint32_t to)
{
    add_edge(g, from, (struct moe_grammar_edge){ to, NONE, NONE, 1, 0 });
}

void
moe_grammar_call(struct moe_grammar *g, uint32_t from, uint32_t rule, uint32_t to)
{
    add_edge(g, from, (struct moe_grammar_edge){ to, NONE, rule, 1, 0 });
}

uint32_t
moe_grammar_text(struct moe_grammar *g, uint32_t from, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t to = moe_grammar_state(g);

        moe_grammar_bytes(g, from, (uint8_t)p[i], (uint8_t)p[i], to);
        from = to;
    }
    return from;
}

/* ---- Checks ---------------------------------------------------------------------- */

/* Who leads where, backwards. */
struct reverse {
    uint32_t *first;        /* [states + 1] into into[] */
    uint32_t *into;         /* [edges] edges by the state they lead to */
    uint32_t *from;         /* [edges] where an edge starts */
    uint32_t *calls;        /* [rules + 1] into call[] */
    uint32_t *call;         /* [edges] edges by the rule they call */
    uint32_t *starts;       /* [states] the rule that starts here, or NONE */
    uint32_t *queue;        /* [states] */
    bool *good;             /* [states] */
};

static void
free_reverse(struct reverse *r)
{
    free(r->first);
    free(r->into);
    free(r->from);
    free(r->calls);
    free(r->call);
    free(r->starts);
    free(r->queue);
    free(r->good);
}

/* Sort the edges into buckets: key(edge) of n, NONE = in no bucket. */
static void
buckets(const struct moe_grammar *g, bool by_rule, uint32_t n, uint32_t *first, uint32_t *list)
{
    memset(first, 0, ((size_t)n + 1) * sizeof(*first));
    for (uint32_t i = 0; i < g->n_edges; i++) {
        uint32_t key = by_rule ? g->edge[i].rule : g->edge[i].to;

        if (key != NONE)
            first[key + 1]++;
    }
    for (uint32_t k = 0; k < n; k++)
        first[k + 1] += first[k];
    for (uint32_t i = 0; i < g->n_edges; i++) {
        uint32_t key = by_rule ? g->edge[i].rule : g->edge[i].to;

        if (key != NONE)
            list[first[key]++] = i;
    }
    for (uint32_t k = n; k > 0; k--)
        first[k] = first[k - 1];
    first[0] = 0;
}

static int
make_reverse(const struct moe_grammar *g, struct reverse *r, struct moe_err *e)
{
    size_t states = g->n_states, edges = (size_t)g->n_edges + 1, rules = g->n_rules;

    r->first = malloc((states + 1) * sizeof(*r->first));
    r->into = malloc(edges * sizeof(*r->into));
    r->from = malloc(edges * sizeof(*r->from));
    r->calls = malloc((rules + 1) * sizeof(*r->calls));
    r->call = malloc(edges * sizeof(*r->call));
    r->starts = malloc(states * sizeof(*r->starts));
    r->queue = malloc(states * sizeof(*r->queue));
    r->good = malloc(states * sizeof(*r->good));
    if (r->first == NULL || r->into == NULL || r->from == NULL || r->calls == NULL
        || r->call == NULL || r->starts == NULL || r->queue == NULL || r->good == NULL)
        return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
    for (uint32_t s = 0; s < g->n_states; s++) {
        r->starts[s] = NONE;
        for (uint32_t i = g->state[s].edge; i != NONE; i = g->edge[i].next)
            r->from[i] = s;
    }
    for (uint32_t k = 0; k < g->n_rules; k++)
        r->starts[g->rule[k].start] = k;
    buckets(g, false, g->n_states, r->first, r->into);
    buckets(g, true, g->n_rules, r->calls, r->call);
    return 0;
}

static void
mark(struct reverse *r, uint32_t s, uint32_t *n)
{
    if (!r->good[s]) {
        r->good[s] = true;
        r->queue[(*n)++] = s;
    }
}

/* good: from here the end of the rule can be reached; without taking a byte if `nothing`. */
static void
reach_end(const struct moe_grammar *g, struct reverse *r, bool nothing)
{
    uint32_t n = 0;

    memset(r->good, 0, g->n_states * sizeof(*r->good));
    for (uint32_t k = 0; k < g->n_rules; k++)
        mark(r, g->rule[k].end, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = r->queue[i], rule = r->starts[s];

        for (uint32_t k = r->first[s]; k < r->first[s + 1]; k++) {
            const struct moe_grammar_edge *d = &g->edge[r->into[k]];

            if (nothing && d->lo <= d->hi)
                continue;
            if (d->rule == NONE || r->good[g->rule[d->rule].start])
                mark(r, r->from[r->into[k]], &n);
        }
        for (uint32_t k = rule == NONE ? 0 : r->calls[rule];
            rule != NONE && k < r->calls[rule + 1]; k++) {
            if (r->good[g->edge[r->call[k]].to])
                mark(r, r->from[r->call[k]], &n);
        }
    }
}

/* Take away the edges that lead where no end can be reached. */
static void
prune(struct moe_grammar *g, const struct reverse *r)
{
    for (uint32_t s = 0; s < g->n_states; s++) {
        uint32_t *at = &g->state[s].edge;

        while (*at != NONE) {
            const struct moe_grammar_edge *d = &g->edge[*at];

            if (r->good[d->to] && (d->rule == NONE || r->good[g->rule[d->rule].start]))
                at = &g->edge[*at].next;
            else
                *at = d->next;
        }
    }
}

/* How many rules each rule can begin with, and from which rule; rules by Kahn's order. */
struct begins {
    uint32_t *first;        /* [rules + 1] into list */
    uint32_t *list;         /* [n] rules that rule k can begin with */
    uint32_t *degree;       /* [rules] how many can begin with it */
    uint32_t *queue;        /* [states] */
    bool *seen;             /* [states] */
};

/* Rules called from the start of rule k before any byte; nullable: reach_end(..., true). */
static uint32_t
begin_of(const struct moe_grammar *g, const bool *nullable, uint32_t k, struct begins *b,
    uint32_t at)
{
    uint32_t n = 0;

    b->queue[n++] = g->rule[k].start;
    b->seen[g->rule[k].start] = true;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = g->state[b->queue[i]].edge; j != NONE; j = g->edge[j].next) {
            const struct moe_grammar_edge *d = &g->edge[j];

            if (d->lo <= d->hi)
                continue;
            if (d->rule != NONE && at < g->n_edges) {
                b->list[at++] = d->rule;
                b->degree[d->rule]++;
                if (!nullable[g->rule[d->rule].start])
                    continue;
            }
            if (!b->seen[d->to]) {
                b->seen[d->to] = true;
                b->queue[n++] = d->to;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++)
        b->seen[b->queue[i]] = false;
    return at;
}

static bool
has_cycle(const struct moe_grammar *g, struct begins *b)
{
    uint32_t n = 0, done = 0;

    for (uint32_t k = 0; k < g->n_rules; k++) {
        if (b->degree[k] == 0)
            b->queue[n++] = k;
    }
    for (; done < n; done++) {
        uint32_t k = b->queue[done];

        for (uint32_t i = b->first[k]; i < b->first[k + 1]; i++) {
            if (--b->degree[b->list[i]] == 0)
                b->queue[n++] = b->list[i];
        }
    }
    return done < g->n_rules;
}

static int
check_begins(const struct moe_grammar *g, const bool *nullable, struct moe_err *e)
{
    struct begins b = { NULL, NULL, NULL, NULL, NULL };
    uint32_t at = 0;
    int rc = 0;

    b.first = malloc(((size_t)g->n_rules + 1) * sizeof(*b.first));
    b.list = malloc(((size_t)g->n_edges + 1) * sizeof(*b.list));
    b.degree = calloc(g->n_rules, sizeof(*b.degree));
    b.queue = malloc(g->n_states * sizeof(*b.queue));
    b.seen = calloc(g->n_states, sizeof(*b.seen));
    if (b.first == NULL || b.list == NULL || b.degree == NULL || b.queue == NULL
        || b.seen == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
        goto out;
    }
    for (uint32_t k = 0; k < g->n_rules; k++) {
        b.first[k] = at;
        at = begin_of(g, nullable, k, &b, at);
    }
    b.first[g->n_rules] = at;
    if (has_cycle(g, &b))
        rc = moe_err_set(e, MOE_EFORMAT, "grammar: a rule can begin with itself");
out:
    free(b.first);
    free(b.list);
    free(b.degree);
    free(b.queue);
    free(b.seen);
    return rc;
}

/* States from which there is one way only, over nothing, to the end. */
static void
find_tails(struct moe_grammar *g)
{
    for (uint32_t s = 0; s < g->n_states; s++) {
        uint32_t at = s;

        for (int i = 0; i < 16 && !g->state[at].end; i++) {
            const struct moe_grammar_edge *d =
                g->state[at].edge == NONE ? NULL : &g->edge[g->state[at].edge];

            if (d == NULL || d->next != NONE || d->rule != NONE || d->lo <= d->hi)
                break;
            at = d->to;
        }
        g->state[s].tail = g->state[at].end && g->state[at].edge == NONE;
    }
}

int
moe_grammar_finish(struct moe_grammar *g, uint32_t root, struct moe_err *e)
{
    struct reverse r = { NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
    int rc;

    if (g->failed.code != 0) {
        if (e != NULL)
            *e = g->failed;
        return g->failed.code;
    }
    g->root = root;
    if ((rc = make_reverse(g, &r, e)) != 0)
        goto out;
    reach_end(g, &r, false);
    if (!r.good[g->rule[root].start]) {
        rc = moe_err_set(e, MOE_EFORMAT, "grammar: no text meets it");
        goto out;
    }
    prune(g, &r);
    reach_end(g, &r, true);
    if ((rc = check_begins(g, r.good, e)) != 0)
        goto out;
    find_tails(g);
out:
    free_reverse(&r);
    return rc;
}
