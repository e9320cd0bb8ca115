/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the state of an average to a model. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_average.h"
#include "cmd/moe-ckpt/ckpt_peers.h"
#include "cmd/moe-ckpt/ckpt_unbias.h"
#include "common/base/progress.h"

#define ALIGN 64

struct unbias {
    struct ckpt_peers p;        /* one model: the state */
    struct ckpt_average a;
    struct moe_tensor *tensors; /* of the output */
    size_t *from, *residual;    /* [n] in the state; residual SIZE_MAX: copied */
    size_t n;
    double *x, *lo;
    unsigned char *raw;
};

static int
plan(struct unbias *u, const char *dtype, struct moe_err *e)
{
    const struct moe_source *s = u->p.s[0];
    size_t n = u->p.tensors;
    int rc = 0;

    u->tensors = calloc(n, sizeof(*u->tensors));
    u->from = calloc(n, sizeof(*u->from));
    u->residual = calloc(n, sizeof(*u->residual));
    u->x = malloc(MOE_BLEND_PIECE * sizeof(double));
    u->lo = malloc(MOE_BLEND_PIECE * sizeof(double));
    u->raw = malloc(MOE_BLEND_PIECE * (size_t)8);     /* of the widest type */
    if (u->tensors == NULL || u->from == NULL || u->residual == NULL || u->x == NULL ||
        u->lo == NULL || u->raw == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct moe_tensor *t = &u->tensors[u->n];
        bool own;

        *t = *moe_source_at(s, i);
        if ((rc = ckpt_average_residual(s, i, &u->residual[u->n], &t->dtype, &own, e)) != 0 ||
            !own)
            continue;
        if (dtype != NULL && u->residual[u->n] != SIZE_MAX)
            t->dtype = strcmp(dtype, "f32") == 0 ? MOE_F32 :
                strcmp(dtype, "bf16") == 0 ? MOE_BF16 : MOE_F16;
        u->from[u->n++] = i;
    }
    return rc;
}

static int
write_average(struct unbias *u, size_t i, uint64_t at, size_t n, struct moe_sink *to,
    struct moe_err *e)
{
    const struct moe_tensor *t = &u->tensors[i];
    double by = ckpt_average_divisor(&u->a);
    int rc = ckpt_peers_read(&u->p, 0, u->from[i], at, n, u->x, e);

    if (rc == 0)
        rc = ckpt_peers_read(&u->p, 0, u->residual[i], at, n, u->lo, e);
    for (size_t j = 0; rc == 0 && j < n; j++)
        u->x[j] = (u->x[j] + u->lo[j]) / by;
    if (rc == 0 && moe_blend_store(t->dtype, u->x, n, u->raw) > 0)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: is too large for %s",
            moe_source_path(u->p.s[0]), t->name, moe_dtype_name(t->dtype));
    return rc != 0 ? rc : moe_sink_write(to, u->raw, n * moe_dtype_bits(t->dtype) / 8, e);
}

static int
write_tensor(struct unbias *u, size_t i, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    const struct moe_tensor *t = &u->tensors[i];
    bool averaged = u->residual[i] != SIZE_MAX;
    uint64_t count = averaged ? ckpt_peers_count(t) : t->end - t->begin;
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < count;) {
        size_t n = count - at < MOE_BLEND_PIECE ? (size_t)(count - at) : MOE_BLEND_PIECE;

        if (averaged)
            rc = write_average(u, i, at, n, to, e);
        else if ((rc = moe_source_read(u->p.s[0], u->from[i], at, u->raw, n, e)) == 0)
            rc = moe_sink_write(to, u->raw, n, e);
        at += n;
        moe_progress_add(progress, averaged ? 2 * n * sizeof(float) : n);
    }
    return rc;
}

static int
write_model(struct unbias *u, const char *out, bool force, bool quiet, struct moe_err *e)
{
    struct moe_sink_plan p = { u->tensors, u->n, NULL, 0, ALIGN, NULL, 0 };
    struct moe_progress progress;
    struct moe_sink *to;
    int rc = moe_sink_open(out, force, &p, &to, e);

    if (rc != 0)
        return rc;
    moe_progress_start(&progress, "writing", moe_source_bytes(u->p.s[0]), quiet);
    for (size_t i = 0; rc == 0 && i < u->n; i++)
        rc = write_tensor(u, i, to, &progress, e);
    if (rc == 0)
        rc = ckpt_peers_beside(u->p.s[0], to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        return moe_sink_commit(to, e);
    moe_sink_abort(to);
    return rc;
}

int
ckpt_unbias(const char *state, const char *out, const char *dtype, bool force, bool quiet,
    struct moe_err *e)
{
    struct unbias u = { .n = 0 };
    char *path = strdup(state);
    int rc;

    if (path == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (strcmp(state, "-") == 0)
        rc = moe_err_set(e, MOE_EUSAGE, "-: a state is a file or a directory");
    else if ((rc = ckpt_peers_open(&path, 1, true, &u.p, e)) == 0 &&
        (rc = ckpt_average_read(u.p.s[0], &u.a, e)) == 0 && (rc = plan(&u, dtype, e)) == 0)
        rc = write_model(&u, out, force, quiet, e);
    free(u.tensors);
    free(u.from);
    free(u.residual);
    free(u.x);
    free(u.lo);
    free(u.raw);
    ckpt_peers_fini(&u.p);
    free(path);
    return rc;
}
