/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lookup of what came before, and the judgement whether guessing pays. */
#include <string.h>

#include "common/engine/speculate.h"

#define NEWEST 0.25         /* weight of the newest step in a mean */

void
moe_speculate_init(struct moe_speculate *g, size_t most)
{
    *g = (struct moe_speculate){ .most = most < MOE_SPECULATE_MAX ? most : MOE_SPECULATE_MAX,
        .len = 2, .pause = MOE_SPECULATE_PAUSE };
    g->len = g->len < g->most ? g->len : g->most;
}

/* How many tokens before at are those before n, up to most. */
static size_t
match(const uint32_t *id, size_t n, size_t at, size_t most)
{
    size_t k = 0;

    while (k < most && k < at && id[at - 1 - k] == id[n - 1 - k])
        k++;
    return k;
}

size_t
moe_speculate_draft(const struct moe_speculate *g, const uint32_t *id, size_t n, size_t room,
    uint32_t *draft)
{
    size_t best = MOE_SPECULATE_MATCH - 1, from = 0, k = 0;
    size_t most = g->len < room ? g->len : room;

    if (most == 0 || g->rest > 0 || g->plain < MOE_SPECULATE_WARM)
        return 0;
    for (size_t at = n; at-- > MOE_SPECULATE_MATCH && best < MOE_SPECULATE_MAX;) {
        size_t m = id[at - 1] == id[n - 1] ? match(id, n, at, MOE_SPECULATE_MAX) : 0;

        if (m > best) {
            best = m;
            from = at;
        }
    }
    /* A guess may go on into itself: a text of period 1 repeats for ever. */
    for (; from > 0 && k < most; k++)
        draft[k] = from + k < n ? id[from + k] : draft[from + k - n];
    return k;
}

static void
average(double *mean, double v)
{
    *mean = *mean == 0 ? v : *mean + NEWEST * (v - *mean);
}

/* Guesses cost more than they bring: without them for a while. */
static void
leave(struct moe_speculate *g)
{
    g->rest = g->pause;
    g->pause = 2 * g->pause < MOE_SPECULATE_PAUSE_MAX ? 2 * g->pause : MOE_SPECULATE_PAUSE_MAX;
    g->tries = 0;
    g->guess_ns = 0;
    g->len = g->most < 2 ? g->most : 2;
}

void
moe_speculate_learn(struct moe_speculate *g, size_t guessed, size_t tokens, uint64_t ns)
{
    double each = (double)ns / (double)(tokens > 0 ? tokens : 1);

    g->rest -= g->rest < tokens ? g->rest : tokens;
    if (guessed == 0) {
        average(&g->plain_ns, each);
        g->plain++;
        return;
    }
    average(&g->guess_ns, each);
    g->tries++;
    if (tokens > guessed)
        g->len = 2 * g->len < g->most ? 2 * g->len : g->most;
    else
        g->len = tokens > 1 ? tokens - 1 : 1;
    if (g->tries < MOE_SPECULATE_TRIES)
        return;
    if (g->guess_ns >= g->plain_ns)
        leave(g);
    else
        g->pause = MOE_SPECULATE_PAUSE;
}
