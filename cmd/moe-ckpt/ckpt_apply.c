/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt apply`: options, and the walk that adds a delta to a model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_apply.h"
#include "cmd/moe-ckpt/ckpt_norm.h"
#include "common/base/num.h"
#include "common/base/progress.h"

#define ALIGN 64

enum { OUTPUT = 1, FORCE, CLIP_NORM, QUIET, JSON };

static const struct moe_opt rows[] = {
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "OUT", "what to write; - is standard output",
        NULL, false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace OUT", NULL, false, false },
    { CLIP_NORM, 0, "clip-norm", MOE_OPT_WORD, "X", "shorten the delta to this norm if longer",
        NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print the norm and the factor", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[--clip-norm X] [--force] [--json] [-q] -o OUT MODEL DELTA",
    NULL };

const struct moe_opt_cmd ckpt_apply_cmd = { "moe-ckpt apply", usage, "Add a delta to a model.",
    rows, NULL };

struct args { const char *output; bool force, quiet, json; double most; };

struct apply {
    struct ckpt_peers model, delta;     /* one each */
    size_t *at;                         /* [model.tensors] in delta, or SIZE_MAX */
    double norm;
    float factor;
    double *x, *y;
    unsigned char *raw;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case OUTPUT: a->output = arg; return 0;
    case FORCE: a->force = true; return 0;
    case CLIP_NORM: return moe_num_real(arg, 0, 1e30, "--clip-norm", &a->most, e);
    case JSON: a->json = true; return 0;
    default: a->quiet = true; return 0;
    }
}

/* Each tensor of the delta is one of the model's. */
static int
match(struct apply *m, struct moe_err *e)
{
    const struct moe_source *d = m->delta.s[0];

    for (size_t i = 0; i < m->model.tensors; i++)
        m->at[i] = SIZE_MAX;
    for (size_t i = 0; i < m->delta.tensors; i++) {
        const struct moe_tensor *t = moe_source_at(d, i), *to;
        size_t j = moe_source_find(m->model.s[0], t->name);

        if (j == SIZE_MAX)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %s does not have it",
                moe_source_path(d), t->name, moe_source_path(m->model.s[0]));
        to = moe_source_at(m->model.s[0], j);
        if (t->rank != to->rank ||
            (t->rank > 0 && memcmp(t->shape, to->shape, (size_t)t->rank * sizeof(*t->shape)) != 0))
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: has another shape than in %s",
                moe_source_path(d), t->name, moe_source_path(m->model.s[0]));
        if (!moe_blend_takes(t->dtype) || !moe_blend_takes(to->dtype))
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %s and %s do not add up",
                moe_source_path(d), t->name, moe_dtype_name(to->dtype), moe_dtype_name(t->dtype));
        m->at[j] = i;
    }
    return 0;
}

/* n elements more of tensor i: the delta's, shortened and rounded to float, added in double. */
static int
add(struct apply *m, size_t i, uint64_t at, size_t n, struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(&m->model, 0, i);
    int rc;

    if ((rc = ckpt_peers_read(&m->model, 0, i, at, n, m->x, e)) != 0 ||
        (rc = ckpt_peers_read(&m->delta, 0, m->at[i], at, n, m->y, e)) != 0)
        return rc;
    for (size_t j = 0; j < n; j++) {
        if (m->factor < 1.0f)
            m->y[j] = (double)(float)(m->y[j] * (double)m->factor);
        m->x[j] += m->y[j];
    }
    if (moe_blend_store(t->dtype, m->x, n, m->raw) > 0)
        return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: the sum is too large for %s",
            moe_source_path(m->model.s[0]), t->name, moe_dtype_name(t->dtype));
    return 0;
}

static int
write_tensor(struct apply *m, size_t i, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(&m->model, 0, i);
    bool changed = m->at[i] != SIZE_MAX;
    size_t size = changed ? moe_dtype_bits(t->dtype) / 8 : 1;
    uint64_t count = changed ? ckpt_peers_count(t) : t->end - t->begin;
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < count;) {
        size_t n = count - at < MOE_BLEND_PIECE ? (size_t)(count - at) : MOE_BLEND_PIECE;

        rc = changed ? add(m, i, at, n, e) : moe_source_read(m->model.s[0], i, at, m->raw, n, e);
        if (rc == 0)
            rc = moe_sink_write(to, m->raw, n * size, e);
        at += n;
        moe_progress_add(progress, n * size);
    }
    return rc;
}

static int
write_sum(struct apply *m, const struct args *a, struct moe_err *e)
{
    struct moe_tensor *tensors = calloc(m->model.tensors, sizeof(*tensors));
    struct moe_sink_plan plan = { tensors, m->model.tensors, NULL, 0, ALIGN, NULL, 0 };
    struct moe_progress progress;
    struct moe_sink *to;
    int rc;

    if (tensors == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < m->model.tensors; i++)
        tensors[i] = *ckpt_peers_at(&m->model, 0, i);
    if ((rc = moe_sink_open(a->output, a->force, &plan, &to, e)) != 0)
        goto out;
    moe_progress_start(&progress, "applying", moe_source_bytes(m->model.s[0]), a->quiet);
    for (size_t i = 0; rc == 0 && i < m->model.tensors; i++)
        rc = write_tensor(m, i, to, &progress, e);
    if (rc == 0)
        rc = ckpt_peers_beside(m->model.s[0], to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        rc = moe_sink_commit(to, e);
    else
        moe_sink_abort(to);
out:
    free(tensors);
    return rc;
}

static int
run(const struct args *a, char **operands, struct moe_err *e)
{
    struct apply m = { .factor = 1.0f };
    int rc;

    m.x = malloc(MOE_BLEND_PIECE * sizeof(double));
    m.y = malloc(MOE_BLEND_PIECE * sizeof(double));
    m.raw = malloc(MOE_BLEND_PIECE * (size_t)8);     /* of the widest type */
    if (m.x == NULL || m.y == NULL || m.raw == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = ckpt_peers_open(operands, 1, true, &m.model, e)) == 0 &&
        (rc = ckpt_peers_open(operands + 1, 1, true, &m.delta, e)) == 0 &&
        (m.at = calloc(m.model.tensors, sizeof(size_t))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (rc == 0 && (rc = match(&m, e)) == 0 &&
        (rc = ckpt_norm(&m.delta, 0, SIZE_MAX, m.x, m.y, &m.norm, e)) == 0) {
        if (!isnan(a->most))
            m.factor = moe_blend_clip(m.norm, a->most);
        rc = write_sum(&m, a, e);
    }
    if (rc == 0 && a->json)
        printf("{\"norm\":%.17g,\"factor\":%.9g}\n", m.norm, (double)m.factor);
    ckpt_peers_fini(&m.model);
    ckpt_peers_fini(&m.delta);
    free(m.at);
    free(m.x);
    free(m.y);
    free(m.raw);
    return rc;
}

int
ckpt_apply(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .most = NAN };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_apply_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 2 || a.output == NULL)
        return moe_err_set(e, MOE_EUSAGE, "apply wants -o OUT, a MODEL and a DELTA");
    if (strcmp(argv[first + 1], "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "-: a delta is read twice: give a file");
    if (a.json && strcmp(a.output, "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "--json: standard output has the model");
    return run(&a, argv + first, e);
}
