/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what ckpt_average.h says: names and metadata of states, and their weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_average.h"
#include "common/base/buf.h"
#include "common/base/num.h"
#include "common/formats/blend.h"

#define RESERVED "moe.ema."
#define RESIDUAL RESERVED "residual."

/* The first updates of a warmed up average weigh more: (1 + t) / (10 + t) is the decay. */
#define WARMUP_DELAY 10.0

static const char *const biases[] = {
    [CKPT_AVERAGE_FIRST] = "first", [CKPT_AVERAGE_ZERO] = "zero",
    [CKPT_AVERAGE_WARMUP] = "warmup",
};

/* The types that are averaged, which residuals name. */
static const enum moe_dtype types[] = { MOE_F64, MOE_F32, MOE_BF16, MOE_F16 };

#define N_TYPES (sizeof(types) / sizeof(types[0]))

const char *
ckpt_average_bias_name(enum ckpt_average_bias bias)
{
    return biases[bias];
}

bool
ckpt_average_bias_find(const char *name, enum ckpt_average_bias *bias)
{
    for (size_t i = 0; i < sizeof(biases) / sizeof(biases[0]); i++) {
        if (strcmp(name, biases[i]) == 0) {
            *bias = (enum ckpt_average_bias)i;
            return true;
        }
    }
    return false;
}

int
ckpt_average_read(const struct moe_source *s, struct ckpt_average *a, struct moe_err *e)
{
    const struct moe_safet *h = moe_source_gguf(s) == NULL ? moe_source_header(s, 0) : NULL;
    const char *version = h != NULL ? moe_safet_meta(h, "moe.ema") : NULL;
    const char *decay, *bias, *count;

    if (version == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: is not the state of an average",
            moe_source_path(s));
    if (strcmp(version, "1") != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: moe.ema: version %s is not known",
            moe_source_path(s), version);
    decay = moe_safet_meta(h, "moe.ema.decay");
    bias = moe_safet_meta(h, "moe.ema.bias");
    count = moe_safet_meta(h, "moe.ema.count");
    if (decay == NULL || bias == NULL || count == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: moe.ema: decay, bias or count is missing",
            moe_source_path(s));
    if (!ckpt_average_bias_find(bias, &a->bias))
        return moe_err_set(e, MOE_EFORMAT, "%s: moe.ema.bias: %s is none", moe_source_path(s),
            bias);
    if (moe_num_real(decay, 0, 1, "moe.ema.decay", &a->decay, e) != 0 ||
        moe_num_int(count, 0, CKPT_AVERAGE_MAX_COUNT, "moe.ema.count", &a->count, e) != 0) {
        if (e != NULL)
            e->code = MOE_EFORMAT;
        return moe_err_at(e, "%s", moe_source_path(s));
    }
    return 0;
}

double
ckpt_average_step(struct ckpt_average *a)
{
    double t, decay = a->decay;

    if (a->count < 0 && a->bias != CKPT_AVERAGE_ZERO) {
        a->count = 0;
        return 1;
    }
    a->count = a->count < 0 ? 1 : a->count + 1;
    t = (double)a->count;
    if (a->bias == CKPT_AVERAGE_WARMUP && (1 + t) / (WARMUP_DELAY + t) < decay)
        decay = (1 + t) / (WARMUP_DELAY + t);
    return 1 - decay;
}

double
ckpt_average_divisor(const struct ckpt_average *a)
{
    return a->bias == CKPT_AVERAGE_ZERO ? -expm1((double)a->count * log(a->decay)) : 1;
}

bool
ckpt_average_reserved(const char *tensor)
{
    return strncmp(tensor, RESERVED, strlen(RESERVED)) == 0;
}

char *
ckpt_average_name(const char *tensor, enum moe_dtype type)
{
    struct moe_buf b = MOE_BUF_INIT;

    moe_buf_fmt(&b, RESIDUAL "%s.%s", moe_dtype_name(type), tensor);
    return moe_buf_take(&b);
}

/* A residual belongs to a tensor of the state. */
static int
has_owner(const struct moe_source *s, const char *name, struct moe_err *e)
{
    const char *p = strncmp(name, RESIDUAL, strlen(RESIDUAL)) == 0 ?
        strchr(name + strlen(RESIDUAL), '.') : NULL;

    if (p == NULL || moe_source_find(s, p + 1) == SIZE_MAX)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: belongs to none", moe_source_path(s),
            name);
    return 0;
}

int
ckpt_average_residual(const struct moe_source *s, size_t i, size_t *residual,
    enum moe_dtype *type, bool *own, struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(s, i), *r = NULL;

    *residual = SIZE_MAX;
    *own = !ckpt_average_reserved(t->name);
    if (!*own)
        return has_owner(s, t->name, e);
    for (size_t k = 0; k < N_TYPES; k++) {
        char *name = ckpt_average_name(t->name, types[k]);
        size_t j = name != NULL ? moe_source_find(s, name) : SIZE_MAX;

        free(name);
        if (name == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        if (j != SIZE_MAX && *residual != SIZE_MAX)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: has two residuals",
                moe_source_path(s), t->name);
        if (j != SIZE_MAX) {
            *residual = j;
            *type = types[k];
            r = moe_source_at(s, j);
        }
    }
    if (r == NULL ? moe_blend_takes(t->dtype) : t->dtype != MOE_F32 || r->dtype != MOE_F32 ||
        t->rank != r->rank || (t->rank > 0 &&
        memcmp(t->shape, r->shape, (size_t)t->rank * sizeof(*t->shape)) != 0))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: it and its residual are not F32 of"
            " one shape", moe_source_path(s), t->name);
    return 0;
}
