/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the frequencies of rotary position embedding (arXiv 2104.09864) and
 * their scaled forms: YaRN (2309.00071), LongRoPE (2402.13753), NTK-aware and
 * the piecewise form of Llama 3. The rotation itself is a kernel. Steps are
 * rounded to float where the reference rounds, so that angles of far positions
 * agree with it.
 */
#include <math.h>
#include <string.h>

#include "common/base/json.h"
#include "common/engine/rope.h"

#define TWO_PI 6.283185307179586477

struct params {
    const struct moe_config *c;
    struct moe_json_at at;      /* rope_scaling or rope_parameters */
    uint64_t len;
    double factor, orig;
};

/* theta^(2 i / dim) in float. */
static float
power(double theta, size_t i, size_t dim)
{
    return (float)pow((float)theta, (float)(2 * i) / (float)dim);
}

static void
plain(struct moe_rope *r, double theta)
{
    for (size_t i = 0; i < r->dim / 2; i++)
        r->inv[i] = 1.0f / power(theta, i, r->dim);
}

/* A number that must be there and be positive. */
static int
positive(const struct params *p, const char *key, bool must, double fallback, double *out,
    struct moe_err *e)
{
    int rc;

    if ((rc = moe_json_real(p->at, key, must, fallback, out, e)) != 0)
        return rc;
    if (!(*out > 0 && *out < 1e12))
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %g is out of range", p->at.name, key, *out);
    return 0;
}

static int
linear(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    (void)e;
    plain(r, p->c->rope_theta);
    for (size_t i = 0; i < r->dim / 2; i++)
        r->inv[i] /= (float)p->factor;
    return 0;
}

static int
dynamic(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    double theta = p->c->rope_theta, max = (double)p->c->max_pos, grow, alpha;
    int rc;

    if (r->dim < 4)
        return moe_err_set(e, MOE_EFORMAT, "%s: rope type dynamic needs heads of 4 or more",
            p->at.name);
    if ((rc = positive(p, "alpha", false, 1, &alpha, e)) != 0)
        return rc;
    if (json_object_get(p->at.o, "alpha") != NULL)
        grow = alpha;
    else
        grow = (double)p->len > max ? p->factor * (double)p->len / max - (p->factor - 1) : 1;
    if (!(grow > 0))
        return moe_err_set(e, MOE_EFORMAT, "%s: factor: %g does not fit length %llu",
            p->at.name, p->factor, (unsigned long long)p->len);
    plain(r, theta * pow(grow, (double)r->dim / ((double)r->dim - 2)));
    return 0;
}

static int
llama3(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    double low, high;
    int rc;

    if ((rc = positive(p, "low_freq_factor", true, 0, &low, e)) != 0)
        return rc;
    if ((rc = positive(p, "high_freq_factor", true, 0, &high, e)) != 0)
        return rc;
    if (high <= low)
        return moe_err_set(e, MOE_EFORMAT, "%s: high_freq_factor: not above low_freq_factor",
            p->at.name);
    plain(r, p->c->rope_theta);
    for (size_t i = 0; i < r->dim / 2; i++) {
        double inv = r->inv[i], wave = TWO_PI / inv, s;

        if (wave > p->orig / low) {
            r->inv[i] = (float)(inv / p->factor);
        } else if (wave >= p->orig / high) {
            s = (p->orig / wave - low) / (high - low);
            r->inv[i] = (float)((1 - s) * inv / p->factor + s * inv);
        }
    }
    return 0;
}

/* The element whose wave turns `turns` times over the original context. */
static double
yarn_element(const struct params *p, size_t dim, double turns)
{
    return (double)dim * log(p->orig / (turns * TWO_PI)) / (2 * log(p->c->rope_theta));
}

static double
yarn_mscale(double factor, double m)
{
    return factor <= 1 ? 1 : 0.1 * m * log(factor) + 1;
}

static int
yarn_scale(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    double given, m, all;
    int rc;

    if ((rc = positive(p, "attention_factor", false, yarn_mscale(p->factor, 1), &given, e)) != 0)
        return rc;
    r->scale = (float)given;
    if (json_is_number(json_object_get(p->at.o, "attention_factor")))
        return 0;
    if ((rc = moe_json_real(p->at, "mscale", false, 0, &m, e)) != 0)
        return rc;
    if ((rc = moe_json_real(p->at, "mscale_all_dim", false, 0, &all, e)) != 0)
        return rc;
    if (m != 0 && all != 0)
        r->scale = (float)(yarn_mscale(p->factor, m) / yarn_mscale(p->factor, all));
    if (!(r->scale > 0) || isinf(r->scale))
        return moe_err_set(e, MOE_EFORMAT, "%s: mscale: out of range", p->at.name);
    return 0;
}

static int
yarn(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    double fast, slow, lo, hi;
    bool truncate;
    int rc;

    if ((rc = positive(p, "beta_fast", false, 32, &fast, e)) != 0)
        return rc;
    if ((rc = positive(p, "beta_slow", false, 1, &slow, e)) != 0)
        return rc;
    if ((rc = moe_json_bool(p->at, "truncate", false, true, &truncate, e)) != 0)
        return rc;
    if (p->c->rope_theta <= 1)
        return moe_err_set(e, MOE_EFORMAT, "%s: rope_theta: yarn needs more than 1", p->c->name);
    lo = yarn_element(p, r->dim, fast);
    hi = yarn_element(p, r->dim, slow);
    if (truncate) {
        lo = floor(lo);
        hi = ceil(hi);
    }
    lo = fmax(lo, 0);
    hi = fmin(hi, (double)r->dim - 1);
    if (lo == hi)
        hi += 0.001;
    for (size_t i = 0; i < r->dim / 2; i++) {
        float wave = power(p->c->rope_theta, i, r->dim);
        float ramp = ((float)i - (float)lo) / (float)(hi - lo), keep;

        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        keep = 1 - ramp;
        r->inv[i] = 1 / ((float)p->factor * wave) * (1 - keep) + 1 / wave * keep;
    }
    return yarn_scale(r, p, e);
}

static int
longrope(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    struct moe_json_at top = { p->c->text, p->c->name };
    double orig = p->orig, factor = p->factor, scale;
    const char *key;
    const json_t *list;
    int rc;

    if ((rc = moe_json_real(top, "original_max_position_embeddings", false, 0, &scale, e)) != 0)
        return rc;
    if (scale > 0) {
        orig = scale;
        factor = (double)p->c->max_pos / orig;
    }
    scale = factor <= 1 || orig <= 1 ? 1 : sqrt(1 + log(factor) / log(orig));
    /* Phi-3.5-MoE tells the scale itself, by the length of the request. */
    key = (double)p->len > orig ? "long_mscale" : "short_mscale";
    if ((rc = positive(p, "attention_factor", false, scale, &scale, e)) != 0 ||
        (rc = positive(p, key, false, scale, &scale, e)) != 0)
        return rc;
    key = (double)p->len > orig ? "long_factor" : "short_factor";
    if ((rc = moe_json_arr(p->at, key, true, &list, e)) != 0)
        return rc;
    if (json_array_size(list) != r->dim / 2)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: %zu numbers, not %zu", p->at.name, key,
            json_array_size(list), r->dim / 2);
    for (size_t i = 0; i < r->dim / 2; i++) {
        const json_t *v = json_array_get(list, i);
        float ext = json_is_number(v) ? (float)json_number_value(v) : 0;

        if (!(ext > 0 && isfinite(ext)))
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: entry %zu is no positive number",
                p->at.name, key, i);
        r->inv[i] = 1.0f / (ext * power(p->c->rope_theta, i, r->dim));
    }
    r->scale = (float)scale;
    return 0;
}

static int
type_default(struct moe_rope *r, const struct params *p, struct moe_err *e)
{
    (void)e;
    plain(r, p->c->rope_theta);
    return 0;
}

static const struct {
    const char *name;
    bool factor;    /* needs the key factor */
    int (*init)(struct moe_rope *r, const struct params *p, struct moe_err *e);
} types[] = {
    { "default", false, type_default },
    { "linear", true, linear },
    { "dynamic", false, dynamic },
    { "llama3", true, llama3 },
    { "yarn", true, yarn },
    { "longrope", false, longrope },
};

int
moe_rope_init(struct moe_rope *r, const struct moe_config *c, uint64_t dim, uint64_t len,
    struct moe_err *e)
{
    struct params p = { c, { c->rope, c->name }, len, 1, 1 };
    const char *type = "default";
    int rc;

    if (dim < 2 || dim % 2 != 0 || dim > MOE_ROPE_MAX_DIM)
        return moe_err_set(e, MOE_EFORMAT, "%s: heads of %llu elements cannot rotate", c->name,
            (unsigned long long)dim);
    *r = (struct moe_rope){ .dim = (size_t)dim, .scale = 1 };
    if (c->rope != NULL) {
        if ((rc = moe_json_str(p.at, "type", false, type, &type, e)) != 0)
            return rc;
        if ((rc = moe_json_str(p.at, "rope_type", false, type, &type, e)) != 0)
            return rc;
    }
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, type) != 0)
            continue;
        if (c->rope != NULL) {
            if ((rc = positive(&p, "factor", types[i].factor, 1, &p.factor, e)) != 0)
                return rc;
            if ((rc = positive(&p, "original_max_position_embeddings", false,
                (double)c->max_pos, &p.orig, e)) != 0)
                return rc;
        }
        return types[i].init(r, &p, e);
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: rope_type: \"%s\" is not known here", c->name, type);
}

void
moe_rope_at(const struct moe_rope *r, uint32_t pos, float *cosine, float *sine)
{
    for (size_t i = 0; i < r->dim / 2; i++) {
        double angle = (float)pos * r->inv[i];

        cosine[i] = (float)cos(angle) * r->scale;
        sine[i] = (float)sin(angle) * r->scale;
    }
}
