/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the following of a grammar. A way is a state and a stack of states to go
 * on from; stacks share their lower parts. A place is a set of ways that can
 * take a byte. Places and the steps between them are numbered as they are met,
 * so that the automaton becomes a deterministic one where it is used.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/matcher.h"

#define NONE MOE_GRAMMAR_NONE
#define MAX_NODES (1U << 16)
#define MAX_PLACES (1U << 13)
#define MAX_WAYS (1U << 18)         /* of all places */
#define DEAD (NONE - 1)             /* a step that is no way on */
#define TABLE (1U << 17)            /* slots: twice the nodes */
#define MASKS 32
#define MAX_TOKEN 4096              /* bytes of a token that a grammar may use */

struct node { uint32_t state, below, depth; };
struct way { uint32_t state, node; };

struct place {
    uint32_t first, n;          /* ways */
    uint32_t *step;             /* [256] places, NONE = not known; NULL before the first */
    uint32_t hash;
    bool complete;
};

struct mask { uint32_t place; uint64_t *bits; };

struct moe_matcher {
    const struct moe_grammar *g;
    const struct moe_lexicon *l;
    struct node *node;          /* node 0: the bottom */
    uint32_t n_nodes;
    uint32_t *node_slot, *place_slot;   /* [TABLE], NONE = free */
    struct place *place;
    uint32_t n_places;
    struct way *way;
    uint32_t n_ways;
    uint32_t now;
    struct way *work;           /* [4 * MAX_WAYS_HERE] ways being followed */
    uint32_t n_work;
    uint32_t *seen;             /* [SEEN] slots into work */
    uint32_t *path;             /* [MAX_TOKEN + 1] places along a token */
    struct mask mask[MASKS];
    uint32_t next_mask;
};

#define WORK (8 * MOE_MATCHER_MAX_WAYS)
#define SEEN (2 * WORK)

static uint32_t
mix(uint32_t a, uint32_t b)
{
    uint64_t z = ((uint64_t)a << 32 | b) * UINT64_C(0x9E3779B97F4A7C15);

    return (uint32_t)(z >> 32) ^ (uint32_t)z;
}

static int
full(struct moe_err *e)
{
    return moe_err_set(e, MOE_ELIMIT, "grammar: too many ways to go on");
}

/* ---- Tables ---------------------------------------------------------------------- */

static int
push(struct moe_matcher *m, uint32_t state, uint32_t below, uint32_t *out, struct moe_err *e)
{
    uint32_t h = mix(state, below) % TABLE;

    for (; m->node_slot[h] != NONE; h = (h + 1) % TABLE) {
        const struct node *d = &m->node[m->node_slot[h]];

        if (d->state == state && d->below == below) {
            *out = m->node_slot[h];
            return 0;
        }
    }
    if (m->n_nodes == MAX_NODES)
        return full(e);
    m->node[m->n_nodes] = (struct node){ state, below, m->node[below].depth + 1 };
    m->node_slot[h] = *out = m->n_nodes++;
    return 0;
}

static int
by_way(const void *a, const void *b)
{
    const struct way *x = a, *y = b;

    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The place of n ways, which are sorted here; DEAD when there is neither way nor end. */
static int
intern(struct moe_matcher *m, struct way *w, uint32_t n, bool complete, uint32_t *out,
    struct moe_err *e)
{
    uint32_t hash = complete, h;

    if (n == 0 && !complete) {
        *out = DEAD;
        return 0;
    }
    qsort(w, n, sizeof(*w), by_way);
    for (uint32_t i = 0; i < n; i++)
        hash = mix(mix(hash, w[i].state), w[i].node);
    for (h = hash % TABLE; m->place_slot[h] != NONE; h = (h + 1) % TABLE) {
        const struct place *p = &m->place[m->place_slot[h]];

        if (p->hash == hash && p->n == n && p->complete == complete
            && (n == 0 || memcmp(m->way + p->first, w, n * sizeof(*w)) == 0)) {
            *out = m->place_slot[h];
            return 0;
        }
    }
    if (m->n_places == MAX_PLACES || n > MAX_WAYS - m->n_ways)
        return full(e);
    if (n > 0)
        memcpy(m->way + m->n_ways, w, n * sizeof(*w));
    m->place[m->n_places] = (struct place){ m->n_ways, n, NULL, hash, complete };
    m->n_ways += n;
    m->place_slot[h] = *out = m->n_places++;
    return 0;
}

static void
empty_tables(struct moe_matcher *m)
{
    for (uint32_t i = 0; i < m->n_places; i++)
        free(m->place[i].step);
    for (uint32_t i = 0; i < MASKS; i++)
        m->mask[i].place = NONE;
    memset(m->node_slot, 0xFF, TABLE * sizeof(*m->node_slot));
    memset(m->place_slot, 0xFF, TABLE * sizeof(*m->place_slot));
    m->n_nodes = 1;
    m->n_places = m->n_ways = 0;
}

/* ---- Ways ------------------------------------------------------------------------ */

/* Add a way to those being followed, unless it is among them. */
static int
visit(struct moe_matcher *m, uint32_t state, uint32_t node, struct moe_err *e)
{
    uint32_t h = mix(state, node) % SEEN;

    for (; m->seen[h] != NONE; h = (h + 1) % SEEN) {
        const struct way *w = &m->work[m->seen[h]];

        if (w->state == state && w->node == node)
            return 0;
    }
    if (m->n_work == WORK)
        return full(e);
    m->seen[h] = m->n_work;
    m->work[m->n_work++] = (struct way){ state, node };
    return 0;
}

static void
begin(struct moe_matcher *m)
{
    /* Only slots that were used need to be freed. */
    if (m->n_work > SEEN / 16) {
        memset(m->seen, 0xFF, SEEN * sizeof(*m->seen));
    } else {
        for (uint32_t i = m->n_work; i-- > 0;) {
            uint32_t h = mix(m->work[i].state, m->work[i].node) % SEEN;

            while (m->seen[h] != i)
                h = (h + 1) % SEEN;
            m->seen[h] = NONE;
        }
    }
    m->n_work = 0;
}

/* Over the edges of one way that take no byte; *takes: it has one that does. */
static int
follow(struct moe_matcher *m, struct way w, bool *takes, struct moe_err *e)
{
    const struct moe_grammar *g = m->g;
    int rc = 0;

    *takes = false;
    for (uint32_t i = g->state[w.state].edge; rc == 0 && i != NONE; i = g->edge[i].next) {
        const struct moe_grammar_edge *d = &g->edge[i];
        uint32_t node = w.node;

        if (d->lo <= d->hi) {
            *takes = true;
        } else if (d->rule == NONE) {
            rc = visit(m, d->to, node, e);
        } else {
            if (m->node[node].depth >= MOE_MATCHER_MAX_DEPTH)
                continue;
            if (!g->state[d->to].tail)
                rc = push(m, d->to, w.node, &node, e);
            if (rc == 0)
                rc = visit(m, g->rule[d->rule].start, node, e);
        }
    }
    return rc;
}

/* The place of the ways in work[] and all that they lead to without a byte. */
static int
settle(struct moe_matcher *m, uint32_t *out, struct moe_err *e)
{
    uint32_t kept = 0;
    bool complete = false, takes;
    struct way *list;
    int rc = 0;

    list = m->work + WORK;      /* behind them, as long again */
    for (uint32_t i = 0; rc == 0 && i < m->n_work; i++) {
        struct way w = m->work[i];

        if ((rc = follow(m, w, &takes, e)) != 0)
            break;
        if (takes && kept == MOE_MATCHER_MAX_WAYS)
            return full(e);
        if (takes)
            list[kept++] = w;
        if (!m->g->state[w.state].end)
            continue;
        if (w.node == 0)
            complete = true;
        else
            rc = visit(m, m->node[w.node].state, m->node[w.node].below, e);
    }
    return rc != 0 ? rc : intern(m, list, kept, complete, out, e);
}

/* From place `at` over a byte; *to is a place or DEAD. */
static int
step(struct moe_matcher *m, uint32_t at, uint8_t c, uint32_t *to, struct moe_err *e)
{
    const struct place *p = &m->place[at];
    int rc = 0;

    if (p->step != NULL && p->step[c] != NONE) {
        *to = p->step[c];
        return 0;
    }
    if (p->step == NULL) {
        uint32_t *s = malloc(256 * sizeof(*s));

        if (s == NULL)
            return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
        memset(s, 0xFF, 256 * sizeof(*s));
        m->place[at].step = s;
    }
    begin(m);
    for (uint32_t i = 0; rc == 0 && i < p->n; i++) {
        struct way w = m->way[p->first + i];

        for (uint32_t k = m->g->state[w.state].edge; rc == 0 && k != NONE; k = m->g->edge[k].next) {
            const struct moe_grammar_edge *d = &m->g->edge[k];

            if (d->lo <= c && c <= d->hi)
                rc = visit(m, d->to, w.node, e);
        }
    }
    if (rc == 0 && (rc = settle(m, to, e)) == 0)
        m->place[at].step[c] = *to;
    return rc;
}

/* ---- Tables that are full -------------------------------------------------------- */

/* Forget all but the place where the output stands. */
static int
forget(struct moe_matcher *m, struct moe_err *e)
{
    const struct place now = m->place[m->now];
    struct way *w = malloc((now.n + 1) * sizeof(*w));
    struct node *old = malloc(m->n_nodes * sizeof(*old));
    uint32_t *moved = malloc(m->n_nodes * sizeof(*moved));
    uint32_t chain[MOE_MATCHER_MAX_DEPTH + 1];
    int rc = 0;

    if (w == NULL || old == NULL || moved == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
        goto out;
    }
    memcpy(w, m->way + now.first, now.n * sizeof(*w));
    memcpy(old, m->node, m->n_nodes * sizeof(*old));
    memset(moved, 0xFF, m->n_nodes * sizeof(*moved));
    moved[0] = 0;
    empty_tables(m);
    for (uint32_t i = 0; rc == 0 && i < now.n; i++) {
        uint32_t n = 0, at = w[i].node;

        for (; moved[at] == NONE; at = old[at].below)
            chain[n++] = at;
        while (rc == 0 && n-- > 0)
            rc = push(m, old[chain[n]].state, moved[old[chain[n]].below], &moved[chain[n]], e);
        w[i].node = moved[w[i].node];
    }
    if (rc == 0)
        rc = intern(m, w, now.n, now.complete, &m->now, e);
out:
    free(w);
    free(old);
    free(moved);
    return rc;
}

static bool
crowded(const struct moe_matcher *m)
{
    return m->n_nodes > MAX_NODES / 2 || m->n_places > MAX_PLACES / 2 || m->n_ways > MAX_WAYS / 2;
}

/* ---- What callers see ------------------------------------------------------------ */

int
moe_matcher_new(const struct moe_grammar *g, const struct moe_lexicon *l,
    struct moe_matcher **out, struct moe_err *e)
{
    struct moe_matcher *m = calloc(1, sizeof(*m));
    int rc = MOE_ENOMEM;

    *out = NULL;
    if (m == NULL)
        return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
    m->g = g;
    m->l = l;
    m->node = malloc(MAX_NODES * sizeof(*m->node));
    m->node_slot = malloc(TABLE * sizeof(*m->node_slot));
    m->place_slot = malloc(TABLE * sizeof(*m->place_slot));
    m->place = malloc(MAX_PLACES * sizeof(*m->place));
    m->way = malloc(MAX_WAYS * sizeof(*m->way));
    m->work = malloc((size_t)(WORK + MOE_MATCHER_MAX_WAYS) * sizeof(*m->work));
    m->seen = malloc(SEEN * sizeof(*m->seen));
    m->path = malloc((MAX_TOKEN + 1) * sizeof(*m->path));
    if (m->node == NULL || m->node_slot == NULL || m->place_slot == NULL || m->place == NULL
        || m->way == NULL || m->work == NULL || m->seen == NULL || m->path == NULL) {
        (void)moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
        goto out;
    }
    memset(m->seen, 0xFF, SEEN * sizeof(*m->seen));
    m->node[0] = (struct node){ NONE, 0, 0 };
    empty_tables(m);
    if ((rc = moe_matcher_restart(m, e)) == 0) {
        *out = m;
        m = NULL;
    }
out:
    moe_matcher_free(m);
    return rc;
}

void
moe_matcher_free(struct moe_matcher *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->n_places; i++)
        free(m->place[i].step);
    for (uint32_t i = 0; i < MASKS; i++)
        free(m->mask[i].bits);
    free(m->node);
    free(m->node_slot);
    free(m->place_slot);
    free(m->place);
    free(m->way);
    free(m->work);
    free(m->seen);
    free(m->path);
    free(m);
}

uint32_t
moe_matcher_ids(const struct moe_matcher *m)
{
    return m->l == NULL ? 0 : m->l->ids;
}

int
moe_matcher_restart(struct moe_matcher *m, struct moe_err *e)
{
    int rc;

    if (crowded(m))
        empty_tables(m);
    begin(m);
    if ((rc = visit(m, m->g->rule[m->g->root].start, 0, e)) == 0)
        rc = settle(m, &m->now, e);
    return rc;
}

int
moe_matcher_bytes(struct moe_matcher *m, const char *p, size_t n, bool *ok, struct moe_err *e)
{
    uint32_t at;
    int rc;

    if (crowded(m) && (rc = forget(m, e)) != 0)
        return rc;
    at = m->now;
    for (size_t i = 0; i < n && at != DEAD; i++) {
        if ((rc = step(m, at, (uint8_t)p[i], &at, e)) != 0)
            return rc;
    }
    *ok = at != DEAD;
    if (*ok)
        m->now = at;
    return 0;
}

int
moe_matcher_token(struct moe_matcher *m, uint32_t id, struct moe_err *e)
{
    size_t n;
    const char *p = moe_lexicon_bytes(m->l, id, &n);
    bool ok = false;
    int rc = 0;

    if (n > 0)
        rc = moe_matcher_bytes(m, p, n, &ok, e);
    if (rc == 0 && !ok)
        rc = moe_err_set(e, MOE_EFORMAT, "grammar: token %lu is no way on", (unsigned long)id);
    return rc;
}

/* Bits of the tokens that can go on from here. */
static int
find_tokens(struct moe_matcher *m, uint64_t *bits, struct moe_err *e)
{
    const struct moe_lexicon *l = m->l;
    size_t dead = SIZE_MAX;     /* so many bytes of the word before are no way on */
    uint32_t known = 0;         /* path[0..known] are places of its first bytes */
    int rc;

    m->path[0] = m->now;
    for (size_t i = 0; i < l->n; i++) {
        const struct moe_lexicon_word *w = &l->word[i];
        const uint8_t *p = (const uint8_t *)l->text.p + w->at;
        uint32_t k, to = 0;

        if (w->common >= dead)
            continue;
        dead = SIZE_MAX;
        if (w->len > MAX_TOKEN) {
            known = 0;
            continue;
        }
        for (k = w->common < known ? w->common : known; k < w->len; k++) {
            if ((rc = step(m, m->path[k], p[k], &to, e)) != 0)
                return rc;
            if (to == DEAD)
                break;
            m->path[k + 1] = to;
        }
        known = k;
        if (k < w->len)
            dead = (size_t)k + 1;
        else
            bits[w->id / 64] |= UINT64_C(1) << (w->id % 64);
    }
    return 0;
}

static int
tokens(struct moe_matcher *m, const uint64_t **bits, struct moe_err *e)
{
    size_t words = ((size_t)m->l->ids + 63) / 64;
    struct mask *k;
    int rc;

    for (uint32_t i = 0; i < MASKS; i++) {
        if (m->mask[i].place == m->now && m->mask[i].bits != NULL) {
            *bits = m->mask[i].bits;
            return 0;
        }
    }
    k = &m->mask[m->next_mask++ % MASKS];
    if (k->bits == NULL && (k->bits = malloc(words * sizeof(*k->bits))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "grammar: out of memory");
    k->place = NONE;
    memset(k->bits, 0, words * sizeof(*k->bits));
    if ((rc = find_tokens(m, k->bits, e)) == MOE_ELIMIT && (rc = forget(m, e)) == 0) {
        memset(k->bits, 0, words * sizeof(*k->bits));
        rc = find_tokens(m, k->bits, e);
    }
    if (rc != 0)
        return rc;
    k->place = m->now;
    *bits = k->bits;
    return 0;
}

int
moe_matcher_mask(struct moe_matcher *m, const uint32_t *ends, size_t n_ends, float *logits,
    size_t *left, struct moe_err *e)
{
    bool complete = moe_matcher_complete(m);
    const uint64_t *bits = NULL;
    float keep[256];
    size_t n = 0;
    int rc;

    if (n_ends > 256)
        return moe_err_set(e, MOE_ELIMIT, "grammar: more than 256 ends");
    if (crowded(m) && (rc = forget(m, e)) != 0)
        return rc;
    if ((rc = tokens(m, &bits, e)) != 0)
        return rc;
    for (size_t i = 0; i < n_ends; i++)
        keep[i] = complete ? logits[ends[i]] : -INFINITY;
    for (uint32_t id = 0; id < m->l->ids; id++) {
        if ((bits[id / 64] >> (id % 64) & 1) == 0)
            logits[id] = -INFINITY;
        n += logits[id] > -INFINITY;
    }
    for (size_t i = 0; i < n_ends; i++) {
        n -= logits[ends[i]] > -INFINITY;
        logits[ends[i]] = keep[i];
        n += keep[i] > -INFINITY;
    }
    *left = n;
    return 0;
}

bool
moe_matcher_complete(const struct moe_matcher *m)
{
    return m->place[m->now].complete;
}

bool
moe_matcher_over(const struct moe_matcher *m)
{
    return m->place[m->now].complete && m->place[m->now].n == 0;
}
