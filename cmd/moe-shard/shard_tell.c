/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines of a simulation, for readers and for programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_tell.h"
#include "common/base/jsonw.h"

static int
put(struct moe_buf *b, struct moe_err *e)
{
    int rc = b->bad ? moe_err_set(e, MOE_ENOMEM, "simulation: out of memory") : 0;

    if (rc == 0)
        (void)fwrite(b->p, 1, b->len, stdout);
    moe_buf_fini(b);
    return rc;
}

static void
real(struct moe_jsonw *w, const char *key, double v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_real(w, v);
}

/* ---- Layers --------------------------------------------------------------------------- */

static void
matrix(struct moe_jsonw *w, const char *key, size_t n, const uint64_t *sent, uint64_t bytes,
    bool turned)
{
    moe_jsonw_key(w, key);
    moe_jsonw_open(w, '[');
    for (size_t a = 0; a < n; a++) {
        moe_jsonw_open(w, '[');
        for (size_t b = 0; b < n; b++)
            moe_jsonw_uint(w, (turned ? sent[b * n + a] : sent[a * n + b]) * bytes);
        moe_jsonw_close(w, ']');
    }
    moe_jsonw_close(w, ']');
}

int
shard_tell_layer(const struct shard_tell *t, size_t l, const struct shard_route_flow *f,
    struct moe_err *e)
{
    size_t n = t->plan->devices;
    uint64_t most = 0, all = 0, tokens = 0;
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    for (size_t g = 0; g < n; g++) {
        most = f->load[g] > most ? f->load[g] : most;
        all += f->load[g];
    }
    for (size_t i = 0; i < n * n; i++)
        tokens += f->sent[i];
    if (t->json) {
        moe_jsonw_open(&w, '{');
        moe_jsonw_key(&w, "layer");
        moe_jsonw_uint(&w, t->plan->id[l]);
        moe_jsonw_key(&w, "load");
        moe_jsonw_open(&w, '[');
        for (size_t g = 0; g < n; g++)
            moe_jsonw_uint(&w, f->load[g]);
        moe_jsonw_close(&w, ']');
        matrix(&w, "dispatch_bytes", n, f->sent, t->out_bytes, false);
        matrix(&w, "combine_bytes", n, f->sent, t->back_bytes, true);
        moe_jsonw_close(&w, '}');
        moe_buf_byte(&b, '\n');
    } else {
        moe_buf_fmt(&b, "layer %4" PRIu32 "  load max/mean %8.5f  tokens sent %12" PRIu64 "\n",
            t->plan->id[l], all > 0 ? (double)most * (double)n / (double)all : 1, tokens);
    }
    return put(&b, e);
}

/* ---- All ---------------------------------------------------------------------------------- */

struct shard_tell_range
shard_tell_range(const double *v, size_t n)
{
    struct shard_tell_range r = { 0, 0, 0 };

    for (size_t i = 0; i < n; i++) {
        r.max = i == 0 || v[i] > r.max ? v[i] : r.max;
        r.min = i == 0 || v[i] < r.min ? v[i] : r.min;
        r.mean += v[i] / (double)n;
    }
    return r;
}

double
shard_tell_spread(struct shard_tell_range r)
{
    return r.mean > 0 ? (r.max - r.min) / r.mean : 0;
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* The smallest of n ordered times that at least this share of them is not above. */
static double
quantile(const double *time, size_t n, double q)
{
    size_t k = (size_t)(q * (double)n);

    return time[k >= n ? n - 1 : k];
}

int
shard_tell_links(const struct shard_wire *wire, const double *bytes, bool json, struct moe_err *e)
{
    size_t n, at = 0;
    struct shard_wire_use *u = shard_wire_uses(wire, bytes, &n, e);
    double *v = calloc(n + 1, sizeof(*v));
    struct moe_buf b = MOE_BUF_INIT;

    if (u == NULL || v == NULL) {
        free(u);
        free(v);
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    }
    for (int ports = 0; ports < 2; ports++) {
        const char *kind = ports ? "port" : "link";
        struct shard_tell_range r;
        size_t first = at;

        for (; at < n && (u[at].a == u[at].b) == ports; at++) {
            char x[MOE_TOPO_NAME], y[MOE_TOPO_NAME];
            struct moe_jsonw w = { &b, false };

            v[at] = u[at].bytes;
            shard_wire_name(wire, u[at].a, x);
            shard_wire_name(wire, u[at].b, y);
            if (json) {
                moe_jsonw_open(&w, '{');
                moe_jsonw_key(&w, kind);
                moe_jsonw_open(&w, '[');
                moe_jsonw_str(&w, x, strlen(x));
                if (!ports)
                    moe_jsonw_str(&w, y, strlen(y));
                moe_jsonw_close(&w, ']');
                real(&w, "bytes", u[at].bytes);
                real(&w, "busy_s", u[at].seconds);
                moe_jsonw_close(&w, '}');
                moe_buf_byte(&b, '\n');
            } else {
                moe_buf_fmt(&b, "%s %s%s%s  bytes %14.0f  busy %.6g s\n", kind, x,
                    ports ? "" : " ", ports ? "" : y, u[at].bytes, u[at].seconds);
            }
        }
        if (at == first)
            continue;
        r = shard_tell_range(v + first, at - first);
        if (json)
            moe_buf_fmt(&b, "{\"%ss\":%zu,\"max_bytes\":%.0f,\"min_bytes\":%.0f,\"spread\":%.9g}\n",
                kind, at - first, r.max, r.min, shard_tell_spread(r));
        else
            moe_buf_fmt(&b, "%zu %ss: bytes %.0f to %.0f, spread %.1f %%\n", at - first, kind,
                r.min, r.max, 100 * shard_tell_spread(r));
    }
    free(u);
    free(v);
    return put(&b, e);
}

int
shard_tell_all(const struct shard_tell *t, double *time, size_t steps, const double *bytes,
    struct moe_err *e)
{
    size_t n = t->plan->devices;
    double *in = calloc(n + 1, sizeof(*in)), sum = 0;
    struct moe_buf b = MOE_BUF_INIT;
    struct shard_tell_range r;
    int rc = 0;

    if (in == NULL)
        return moe_err_set(e, MOE_ENOMEM, "simulation: out of memory");
    for (size_t i = 0; i < n * n; i++)
        in[i % n] += bytes[i];
    r = shard_tell_range(in, n);
    free(in);
    for (size_t i = 0; i < steps; i++)
        sum += time[i];
    qsort(time, steps, sizeof(*time), by_size);
    if (t->wire->topo.n > 0)
        rc = shard_tell_links(t->wire, bytes, t->json, e);
    if (t->json)
        moe_buf_fmt(&b, "{\"steps\":%zu,\"makespan_s\":%.9g,\"p50_s\":%.9g,\"p99_s\":%.9g,"
            "\"max_bytes\":%.0f,\"min_bytes\":%.0f,\"spread\":%.9g}\n", steps, sum,
            quantile(time, steps, 0.5), quantile(time, steps, 0.99), r.max, r.min,
            shard_tell_spread(r));
    else
        moe_buf_fmt(&b, "%zu steps, makespan %.6g s, P50 %.6g s, P99 %.6g s; bytes a device gets:"
            " %.0f to %.0f, spread %.1f %%\n", steps, sum, quantile(time, steps, 0.5),
            quantile(time, steps, 0.99), r.min, r.max, 100 * shard_tell_spread(r));
    return rc == 0 ? put(&b, e) : (moe_buf_fini(&b), rc);
}
