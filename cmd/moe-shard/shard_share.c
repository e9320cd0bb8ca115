/* SPDX-License-Identifier: Apache-2.0 */
/* Owns shares and who gets what. Files are shard_pack.c's. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_share.h"
#include "common/base/num.h"

#define WORK ((uint64_t)1 << 28)        /* moves and exchanges looked at */

int
shard_share_links(const char *text, double **out, size_t *n, struct moe_err *e)
{
    size_t commas = 0;
    double *v;
    int rc = 0;

    for (const char *p = text; *p != '\0'; p++)
        commas += *p == ',';
    if (commas + 1 > SHARD_SHARE_MAX)
        return moe_err_set(e, MOE_EUSAGE, "--links: over %d", SHARD_SHARE_MAX);
    if ((v = calloc(commas + 1, sizeof(*v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (*n = 0; rc == 0 && *n <= commas; ++*n) {
        size_t k = strcspn(text, ",");
        char word[32];
        uint64_t size;

        if (k >= sizeof(word)) {
            rc = moe_err_set(e, MOE_EUSAGE, "--links: not sizes with commas between");
            break;
        }
        memcpy(word, text, k);
        word[k] = '\0';
        rc = moe_num_size(word, 1, UINT64_C(1) << 60, "--links", &size, e);
        v[*n] = (double)size;
        text += k + (text[k] == ',');
    }
    if (rc != 0)
        free(v);
    else
        *out = v;
    return rc;
}

void
shard_share_bytes(uint64_t total, const double *bandwidth, size_t links, uint64_t *out)
{
    long double all = 0;
    uint64_t left = total;

    for (size_t i = 0; i < links; i++)
        all += bandwidth[i];
    for (size_t i = 0; i < links; i++) {
        long double exact = (long double)total * bandwidth[i] / all;

        out[i] = (uint64_t)exact < left ? (uint64_t)exact : left;
        left -= out[i];
    }
    /* What is left is fewer than the links: one more for the largest remainders. */
    for (; left > 0; left--) {
        long double most = -1;
        size_t best = 0;

        for (size_t i = 0; i < links; i++) {
            long double rest = (long double)total * bandwidth[i] / all - out[i];

            if (rest > most) {
                most = rest;
                best = i;
            }
        }
        out[best]++;
    }
}

/* ---- Dealing ------------------------------------------------------------------------ */

struct deal {
    const uint64_t *size;
    const double *bandwidth;
    size_t n, links;
    uint32_t *link;             /* [n] */
    double *bytes;              /* [links] */
    size_t *items;              /* [links] */
};

static double
seconds(const struct deal *d, size_t i, double more)
{
    return (d->bytes[i] + more) / d->bandwidth[i];
}

static size_t
last_done(const struct deal *d)
{
    size_t worst = 0;

    for (size_t i = 1; i < d->links; i++)
        worst = seconds(d, i, 0) > seconds(d, worst, 0) ? i : worst;
    return worst;
}

static void
give(struct deal *d, size_t item, size_t to)
{
    d->bytes[d->link[item]] -= (double)d->size[item];
    d->items[d->link[item]]--;
    d->link[item] = (uint32_t)to;
    d->bytes[to] += (double)d->size[item];
    d->items[to]++;
}

/* The best single move of an item from the last link, or exchange with one of another. */
static bool
improve(struct deal *d)
{
    size_t from = last_done(d), best = d->n, with = d->n, to = 0;
    double now = seconds(d, from, 0), least = now * (1 - 1e-12);

    for (size_t a = 0; a < d->n; a++) {
        if (d->link[a] != from)
            continue;
        for (size_t k = 0; k < d->links && d->items[from] > 1; k++) {
            double v = fmax(seconds(d, from, -(double)d->size[a]),
                seconds(d, k, (double)d->size[a]));

            if (k != from && v < least) {
                least = v;
                best = a;
                with = d->n;
                to = k;
            }
        }
        for (size_t b = 0; b < d->n; b++) {
            double less = (double)d->size[a] - (double)d->size[b], v;

            if (d->link[b] == from || less <= 0)
                continue;
            v = fmax(seconds(d, from, -less), seconds(d, d->link[b], less));
            if (v < least) {
                least = v;
                best = a;
                with = b;
                to = d->link[b];
            }
        }
    }
    if (best == d->n)
        return false;
    give(d, best, to);
    if (with < d->n)
        give(d, with, from);
    return true;
}

static int
by_size(const void *a, const void *b, void *ctx)
{
    const uint64_t *size = ctx;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return size[x] != size[y] ? (size[x] < size[y] ? 1 : -1) : x < y ? -1 : x > y;
}

int
shard_share_deal(const uint64_t *size, size_t n, const double *bandwidth, size_t links,
    uint32_t *link, struct moe_err *e)
{
    struct deal d = { size, bandwidth, n, links, link, calloc(links, sizeof(double)),
        calloc(links, sizeof(size_t)) };
    size_t *order = calloc(n + 1, sizeof(*order));
    int rc = 0;

    if (n < links)
        rc = moe_err_set(e, MOE_EUNSUP, "%zu tensors are fewer than %zu links", n, links);
    else if (d.bytes == NULL || d.items == NULL || order == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < n; i++)
        order[i] = i;
    if (rc == 0)
        qsort_r(order, n, sizeof(*order), by_size, (void *)(uintptr_t)size);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t item = order[i], best = links;

        /* The last items go to links that have none yet. */
        for (size_t k = 0; k < links; k++) {
            if (best == links || seconds(&d, k, (double)size[item]) <
                seconds(&d, best, (double)size[item]))
                best = k;
        }
        for (size_t k = 0, empty = 0; k < links; k++) {
            empty += d.items[k] == 0;
            if (empty > 0 && n - i <= empty && d.items[best] > 0)
                best = d.items[k] == 0 ? k : best;
        }
        link[item] = (uint32_t)best;
        d.bytes[best] += (double)size[item];
        d.items[best]++;
    }
    for (uint64_t work = 0; rc == 0 && work < WORK && improve(&d);)
        work += (uint64_t)n * n / links + 1;
    free(d.bytes);
    free(d.items);
    free(order);
    return rc;
}
