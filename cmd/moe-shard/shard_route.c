/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns traces and the way of single tokens. What bytes and time that is, is the
 * simulator's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_route.h"
#include "common/base/num.h"
#include "common/base/read.h"

#define MAX_TOKEN ((int64_t)1 << 40)
#define MAX_CHOSEN 1024         /* experts of a token */
#define HEADING "layer\ttoken\texperts"

/* ---- Traces ---------------------------------------------------------------------- */

static bool
grow(void **p, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap == 0 ? 1024 : 2 * *cap;
    void *q;

    if (n < *cap)
        return true;
    if ((q = realloc(*p, more * size)) == NULL)
        return false;
    *p = q;
    *cap = more;
    return true;
}

/* The number before the next `end` of *at, which is moved behind it. */
static bool
number(char **at, char end, int64_t hi, int64_t *v)
{
    char *p = *at, *stop = strchr(p, end);

    if (stop == NULL && end != '\0' && end != ',')
        return false;
    if (stop != NULL && end != '\0')
        *stop = '\0';
    *at = stop == NULL || end == '\0' ? NULL : stop + 1;
    return moe_num_int(p, 0, hi, "", v, NULL) == 0;
}

static int
line(struct shard_route_trace *t, char *p)
{
    int64_t layer, token, x;

    if (!number(&p, '\t', SHARD_LOAD_MAX_LAYERS, &layer) || !number(&p, '\t', MAX_TOKEN, &token))
        return MOE_EFORMAT;
    if (!grow((void **)&t->choice, &t->cap, t->n, sizeof(*t->choice)))
        return MOE_ENOMEM;
    t->choice[t->n] = (struct shard_route_choice){ (uint32_t)layer, (uint32_t)t->n_experts, 0,
        (uint64_t)token };
    while (p != NULL) {
        if (!number(&p, ',', SHARD_LOAD_MAX_EXPERTS, &x) || t->n_experts == UINT32_MAX)
            return MOE_EFORMAT;
        for (uint32_t i = 0; i < t->choice[t->n].n; i++) {
            if (t->experts[t->choice[t->n].first + i] == x)
                return MOE_EFORMAT;
        }
        if (t->choice[t->n].n == MAX_CHOSEN)
            return MOE_EFORMAT;
        if (!grow((void **)&t->experts, &t->cap_experts, t->n_experts, sizeof(*t->experts)))
            return MOE_ENOMEM;
        t->experts[t->n_experts++] = (uint32_t)x;
        t->choice[t->n].n++;
    }
    t->tokens = (uint64_t)token >= t->tokens ? (uint64_t)token + 1 : t->tokens;
    t->n++;
    return 0;
}

int
shard_route_read(const char *path, struct shard_route_trace *out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t at = 0;
    int rc;

    *out = (struct shard_route_trace){ .n = 0 };
    if ((rc = moe_read_file(path, SHARD_LOAD_MAX_BYTES, &b, e)) != 0)
        return rc;
    if (b.len > 0 && strlen(b.p) != b.len)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: a NUL in a text", path);
    for (char *p = b.p, *end; rc == 0 && p != NULL && *p != '\0'; p = end) {
        if ((end = strchr(p, '\n')) != NULL)
            *end++ = '\0';
        if (++at == 1 && strcmp(p, HEADING) == 0)
            continue;
        if (at == 1)
            rc = moe_err_set(e, MOE_EFORMAT, "%s:1: not the heading layer, token, experts", path);
        else if ((rc = line(out, p)) == MOE_ENOMEM)
            rc = moe_err_set(e, rc, "%s: out of memory", path);
        else if (rc != 0)
            rc = moe_err_set(e, rc, "%s:%zu: not layer, token and up to %d experts, each once, with"
                " tabs between", path, at, MAX_CHOSEN);
    }
    if (rc == 0 && out->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no tokens", path);
    moe_buf_fini(&b);
    if (rc != 0)
        shard_route_fini(out);
    return rc;
}

void
shard_route_fini(struct shard_route_trace *t)
{
    free(t->choice);
    free(t->experts);
    *t = (struct shard_route_trace){ .n = 0 };
}

/* ---- Flows ----------------------------------------------------------------------------- */

int
shard_route_flow_new(size_t devices, struct shard_route_flow *f, struct moe_err *e)
{
    f->load = calloc(devices, sizeof(*f->load));
    f->sent = calloc(devices * devices, sizeof(*f->sent));
    return f->load == NULL || f->sent == NULL ?
        moe_err_set(e, MOE_ENOMEM, "simulation: out of memory") : 0;
}

void
shard_route_flow_free(struct shard_route_flow *f)
{
    free(f->load);
    free(f->sent);
    *f = (struct shard_route_flow){ NULL, NULL };
}

/* Where the copies of each expert are: devices, ascending, each once. */
struct places {
    const struct shard_wire *wire;
    uint32_t *first;            /* [experts + 1] */
    uint32_t *device;
};

static int
places_new(const struct shard_planfile *p, size_t l, const struct shard_wire *wire,
    struct places *w, struct moe_err *e)
{
    const uint32_t *slot = p->slot + l * p->slots;
    uint32_t *fill = calloc(p->experts, sizeof(*fill));

    *w = (struct places){ wire, NULL, NULL };
    w->first = calloc(p->experts + 1, sizeof(*w->first));
    w->device = calloc(p->slots + 1, sizeof(*w->device));
    if (fill == NULL || w->first == NULL || w->device == NULL) {
        free(fill);
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    }
    for (size_t i = 0; i < p->slots; i++)
        w->first[slot[i] + 1]++;
    for (size_t x = 0; x < p->experts; x++)
        w->first[x + 1] += w->first[x];
    for (size_t g = 0, i = 0; g < p->devices; g++) {
        for (size_t end = i + p->room[g]; i < end; i++) {
            uint32_t x = slot[i], *at = w->device + w->first[x];

            if (fill[x] == 0 || at[fill[x] - 1] != g)
                at[fill[x]++] = (uint32_t)g;
        }
    }
    /* An expert twice on a device counts once: close the gaps. */
    for (size_t x = 0, to = 0; x < p->experts; x++) {
        memmove(w->device + to, w->device + w->first[x], fill[x] * sizeof(*w->device));
        w->first[x] = (uint32_t)to;
        to += fill[x];
        if (x + 1 == p->experts)
            w->first[p->experts] = (uint32_t)to;
    }
    free(fill);
    return 0;
}

static void
places_free(struct places *w)
{
    free(w->first);
    free(w->device);
}

/* The device whose copy of x a token on src takes. */
static size_t
choose(const struct places *w, uint32_t x, size_t src, uint64_t token)
{
    const struct shard_wire_pair *from = w->wire->pair + src * w->wire->n;
    const uint32_t *c = w->device + w->first[x];
    size_t n = w->first[x + 1] - w->first[x], alike = 0;
    uint32_t nearest = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        if (from[c[i]].far < nearest) {
            nearest = from[c[i]].far;
            alike = 0;
        }
        alike += from[c[i]].far == nearest;
    }
    for (size_t i = 0, k = 0; i < n; i++) {
        if (from[c[i]].far == nearest && k++ == token % alike)
            return c[i];
    }
    return src;                         /* never: a plan has every expert */
}

/* One token that is on src and needed on the devices marked. */
static void
send(const struct places *w, size_t src, const unsigned char *needed, enum shard_route_way way,
    uint64_t *sent)
{
    size_t n = w->wire->n, per = n / w->wire->nodes;

    for (size_t node = 0; way == SHARD_ROUTE_RAIL && node < w->wire->nodes; node++) {
        size_t hub = node == src / per ? src : node * per + src % per;
        bool any = false;

        for (size_t g = node * per; g < (node + 1) * per; g++)
            any = any || needed[g];
        if (!any)
            continue;
        if (hub != src)
            sent[src * n + hub]++;
        for (size_t g = node * per; g < (node + 1) * per; g++) {
            if (needed[g] && g != hub)
                sent[hub * n + g]++;
        }
    }
    for (size_t g = 0; way == SHARD_ROUTE_DIRECT && g < n; g++) {
        if (needed[g] && g != src)
            sent[src * n + g]++;
    }
}

int
shard_route_layer(const struct shard_planfile *p, size_t l, const struct shard_wire *wire,
    const struct shard_route_trace *t, enum shard_route_way way, uint64_t from, uint64_t to,
    struct shard_route_flow *f, struct moe_err *e)
{
    struct places w;
    unsigned char *needed = calloc(p->devices, 1);
    int rc = places_new(p, l, wire, &w, e);

    if (rc == 0 && needed == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        const struct shard_route_choice *c = &t->choice[i];
        size_t src;

        if (c->layer != p->id[l] || c->token < from || c->token >= to)
            continue;
        src = (size_t)((c->token - from) * p->devices / (to - from));
        memset(needed, 0, p->devices);
        for (uint32_t k = c->first; rc == 0 && k < c->first + c->n; k++) {
            if (t->experts[k] >= p->experts) {
                rc = moe_err_set(e, MOE_EFORMAT, "layer %" PRIu32 ", token %" PRIu64 ": expert %"
                    PRIu32 " is not in the plan", c->layer, c->token, t->experts[k]);
                break;
            }
            {
                size_t g = choose(&w, t->experts[k], src, c->token);

                f->load[g]++;
                needed[g] = 1;
            }
        }
        if (rc == 0)
            send(&w, src, needed, way, f->sent);
    }
    places_free(&w);
    free(needed);
    return rc;
}
