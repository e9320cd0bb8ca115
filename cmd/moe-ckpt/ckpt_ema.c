/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt ema`: options, and the walk that takes models into a state. A
 * state is read and written piece by piece, so that memory does not grow with
 * models, and replaced as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-ckpt/ckpt_average.h"
#include "cmd/moe-ckpt/ckpt_ema.h"
#include "cmd/moe-ckpt/ckpt_peers.h"
#include "cmd/moe-ckpt/ckpt_unbias.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/progress.h"
#include "kernels/kernels.h"

#define DEFAULT_DECAY 0.9999
#define ALIGN 64
#define MAX_DECAY 0.999999999

enum { DECAY = 1, BIAS, KEEP, WEIGHTS, DTYPE, FORCE, QUIET, JSON };

static const struct moe_opt rows[] = {
    { DECAY, 'd', "decay", MOE_OPT_WORD, "X", "of the average at each model; default: 0.9999",
        NULL, false, false },
    { BIAS, 0, "bias", MOE_OPT_CHOICE, "KIND", "what it begins with; default: first",
        "first|zero|warmup", false, false },
    { KEEP, 0, "keep", MOE_OPT_NONE, NULL, "tensors that are no floats are the last model's", NULL,
        false, false },
    { WEIGHTS, 'w', "weights", MOE_OPT_FILE, "OUT", "write the average as a model", NULL, false,
        false },
    { DTYPE, 't', "dtype", MOE_OPT_CHOICE, "TYPE", "with --weights; default: what the models have",
        "f32|bf16|f16", false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "with --weights: replace OUT", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress", NULL, false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print decay, bias and count", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[-d X] [--bias KIND] [--keep] [--json] STATE [MODEL ...]",
    "-w OUT [-t TYPE] [--force] [-q] STATE",
    NULL
};

const struct moe_opt_cmd ckpt_ema_cmd = { "moe-ckpt ema", usage,
    "Average the weights of a run exponentially, model by model.", rows,
    NULL };

struct args {
    double decay;               /* NAN: not given */
    bool biased, keep, force, quiet, json;
    enum ckpt_average_bias bias;
    const char *weights, *dtype;
};

struct ema {
    struct ckpt_peers p;
    struct moe_source *old;     /* the state so far, or NULL */
    struct ckpt_average a;
    double *w;                  /* [p.n] the weight of each model */
    struct moe_tensor *tensors; /* of the new state: p.tensors, then the residuals */
    size_t *residual;           /* [p.tensors] index in tensors, or SIZE_MAX: kept */
    size_t *was, *was_lo;       /* [p.tensors] in old */
    size_t n;
    float *hi, *lo, *x;         /* pieces */
    double *wide;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case DECAY: return moe_num_real(arg, 0, MAX_DECAY, "--decay", &a->decay, e);
    case BIAS: a->biased = ckpt_average_bias_find(arg, &a->bias); return 0;
    case KEEP: a->keep = true; return 0;
    case WEIGHTS: a->weights = arg; return 0;
    case DTYPE: a->dtype = arg; return 0;
    case FORCE: a->force = true; return 0;
    case JSON: a->json = true; return 0;
    default: a->quiet = true; return 0;
    }
}

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* ---- The state that is there -------------------------------------------------------- */

/*
 * Hold a state that is there against other updates: *fd is -1 when there is none.
 * Whoever waited for another finds that the name leads elsewhere by now.
 */
static int
hold(const char *path, int *fd, struct moe_err *e)
{
    struct stat mine, named;

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT)
        return 0;
    if (*fd < 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s: open", path);
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0)
        return moe_err_set(e, MOE_EEXIST, "%s: another process works on it", path);
    if (fstat(*fd, &mine) != 0 || stat(path, &named) != 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s: stat", path);
    if (mine.st_dev != named.st_dev || mine.st_ino != named.st_ino)
        return moe_err_set(e, MOE_EEXIST, "%s: another process has just replaced it", path);
    return 0;
}

/* What is asked for agrees with the state, or begins one. */
static int
settle(struct ema *m, const struct args *a, struct moe_err *e)
{
    int rc;

    if (m->old == NULL) {
        m->a = (struct ckpt_average){ isnan(a->decay) ? DEFAULT_DECAY : a->decay, a->bias, -1 };
        return 0;
    }
    if ((rc = ckpt_average_read(m->old, &m->a, e)) != 0)
        return rc;
    if ((!isnan(a->decay) && a->decay != m->a.decay) || (a->biased && a->bias != m->a.bias))
        return moe_err_set(e, MOE_EUSAGE, "%s: has decay %.17g and bias %s, which stay",
            moe_source_path(m->old), m->a.decay, ckpt_average_bias_name(m->a.bias));
    return 0;
}

/* ---- The tensors of the new state ----------------------------------------------------- */

static int
refuse(const struct ema *m, size_t i, const char *why, struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %s", moe_source_path(m->p.s[m->p.lead]),
        ckpt_peers_at(&m->p, m->p.lead, i)->name, why);
}

/* Tensor i in the old state, which is of the same kind. */
static int
find_old(struct ema *m, size_t i, struct moe_err *e)
{
    const struct moe_tensor *t = &m->tensors[i], *was;
    enum moe_dtype type = t->dtype;
    bool own;
    int rc;

    m->was[i] = moe_source_find(m->old, t->name);
    if (m->was[i] == SIZE_MAX)
        return refuse(m, i, "the state does not have it", e);
    was = moe_source_at(m->old, m->was[i]);
    if ((rc = ckpt_average_residual(m->old, m->was[i], &m->was_lo[i], &type, &own, e)) != 0)
        return rc;
    if (was->rank != t->rank || (t->rank > 0 &&
        memcmp(was->shape, t->shape, (size_t)t->rank * sizeof(*t->shape)) != 0))
        return refuse(m, i, "has another shape in the state", e);
    if ((m->residual[i] == SIZE_MAX) != (m->was_lo[i] == SIZE_MAX) ||
        (m->residual[i] == SIZE_MAX ? was->dtype : type) != ckpt_peers_at(&m->p, 0, i)->dtype)
        return refuse(m, i, "has another type in the state", e);
    return 0;
}

static int
plan_tensor(struct ema *m, const struct args *a, size_t i, struct moe_err *e)
{
    const struct moe_tensor *t = ckpt_peers_at(&m->p, m->p.lead, i);
    struct moe_tensor *r = &m->tensors[m->n];

    if (ckpt_average_reserved(t->name))
        return refuse(m, i, "is the state of an average, not a model", e);
    m->tensors[i] = *t;
    m->residual[i] = SIZE_MAX;
    if (moe_blend_takes(t->dtype)) {
        *r = *t;
        r->dtype = m->tensors[i].dtype = MOE_F32;
        if ((r->name = ckpt_average_name(t->name, t->dtype)) == NULL)
            return no_memory(e);
        r->name_len = 0;
        m->residual[i] = m->n++;
    } else if (moe_dtype_is_float(t->dtype))
        return refuse(m, i, "is quantised: average what it was made from", e);
    else if (!a->keep)
        return refuse(m, i, "is of no float type (--keep takes the last one)", e);
    return m->old != NULL ? find_old(m, i, e) : 0;
}

static int
plan(struct ema *m, const struct args *a, struct moe_err *e)
{
    size_t n = m->p.tensors, own = 0;
    int rc = 0;

    m->tensors = calloc(2 * n, sizeof(*m->tensors));
    m->residual = calloc(n, sizeof(*m->residual));
    m->was = calloc(n, sizeof(*m->was));
    m->was_lo = calloc(n, sizeof(*m->was_lo));
    m->w = calloc(m->p.n, sizeof(*m->w));
    m->hi = malloc(MOE_BLEND_PIECE * sizeof(float));
    m->lo = malloc(MOE_BLEND_PIECE * sizeof(float));
    m->x = malloc(MOE_BLEND_PIECE * sizeof(float));
    m->wide = malloc(MOE_BLEND_PIECE * sizeof(double));
    if (m->tensors == NULL || m->residual == NULL || m->was == NULL || m->was_lo == NULL ||
        m->w == NULL || m->hi == NULL || m->lo == NULL || m->x == NULL || m->wide == NULL)
        return no_memory(e);
    m->n = n;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = plan_tensor(m, a, i, e);
    for (size_t i = 0; rc == 0 && m->old != NULL && i < moe_source_n(m->old); i++)
        own += !ckpt_average_reserved(moe_source_at(m->old, i)->name);
    if (rc == 0 && m->old != NULL && own != n)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: has tensors that the models do not have",
            moe_source_path(m->old));
    for (size_t k = 0; rc == 0 && k < m->p.n; k++) {
        if (m->a.count >= CKPT_AVERAGE_MAX_COUNT)
            return moe_err_set(e, MOE_ELIMIT, "over 2^53 updates");
        m->w[k] = ckpt_average_step(&m->a);
    }
    return rc;
}

/* ---- The walk ------------------------------------------------------------------------- */

/* Doubles go the kernel's way in double: they are not all floats. */
static size_t
step_wide(struct ema *m, double w, size_t n)
{
    size_t bad = 0;

    for (size_t j = 0; j < n; j++) {
        double e = (double)m->hi[j] + (double)m->lo[j];

        e = fma(w, m->wide[j] - e, e);
        m->hi[j] = (float)e;
        m->lo[j] = (float)(e - (double)m->hi[j]);
        bad += !isfinite(m->hi[j]);
    }
    return bad;
}

/* Take the piece of model k in p.raw into the average. */
static int
step(struct ema *m, size_t k, size_t i, size_t n, struct moe_err *e)
{
    const struct moe_kernels *kn = moe_kernels();
    const struct moe_tensor *t = ckpt_peers_at(&m->p, k, i);
    const void *raw = m->p.raw;
    size_t bad = 0;

    if (t->dtype == MOE_F64) {
        bad = moe_blend_load(t->dtype, raw, n, m->wide);
        bad += step_wide(m, m->w[k], n);
    } else {
        if (t->dtype == MOE_BF16)
            kn->bf16_f32(m->x, raw, n);
        else if (t->dtype == MOE_F16)
            kn->f16_f32(m->x, raw, n);
        bad = kn->ema_f32(m->hi, m->lo, t->dtype == MOE_F32 ? raw : m->x, m->w[k], n);
    }
    return bad == 0 ? 0 : moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: holds NaN, infinity or"
        " what no float holds", moe_source_path(m->p.s[k]), t->name);
}

static int
average(struct ema *m, size_t i, struct moe_sink *to, struct moe_progress *progress,
    struct moe_err *e)
{
    uint64_t count = ckpt_peers_count(&m->tensors[i]);
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < count;) {
        size_t n = count - at < MOE_BLEND_PIECE ? (size_t)(count - at) : MOE_BLEND_PIECE;
        size_t bytes = n * sizeof(float);

        memset(m->hi, 0, bytes);
        memset(m->lo, 0, bytes);
        if (m->old != NULL && ((rc = moe_source_read(m->old, m->was[i], at * sizeof(float), m->hi,
            bytes, e)) != 0 || (rc = moe_source_read(m->old, m->was_lo[i], at * sizeof(float),
            m->lo, bytes, e)) != 0))
            break;
        for (size_t k = 0; rc == 0 && k < m->p.n; k++) {
            if ((rc = ckpt_peers_raw(&m->p, k, i, at, n, e)) == 0)
                rc = step(m, k, i, n, e);
        }
        if (rc == 0 && (rc = moe_sink_pwrite(to, i, at * sizeof(float), m->hi, bytes, e)) == 0)
            rc = moe_sink_pwrite(to, m->residual[i], at * sizeof(float), m->lo, bytes, e);
        at += n;
        moe_progress_add(progress, bytes);
    }
    return rc;
}

/* A tensor that is no float: the last model's. A stream has to be read all the same. */
static int
keep(struct ema *m, size_t i, struct moe_sink *to, struct moe_err *e)
{
    size_t last = m->p.n - 1;
    const struct moe_tensor *t = ckpt_peers_at(&m->p, last, i);
    uint64_t len = t->end - t->begin;
    int rc = 0;

    for (uint64_t at = 0; rc == 0 && at < len;) {
        size_t n = len - at < MOE_BLEND_PIECE ? (size_t)(len - at) : MOE_BLEND_PIECE;

        if ((rc = moe_source_read(m->p.s[last], m->p.at[last][i], at, m->p.raw, n, e)) == 0)
            rc = moe_sink_pwrite(to, i, at, m->p.raw, n, e);
        at += n;
    }
    return rc;
}

static int
write_state(struct ema *m, const char *path, bool quiet, struct moe_err *e)
{
    char decay[32], count[32];
    const char *meta[] = { "moe.ema", "1", "moe.ema.bias", ckpt_average_bias_name(m->a.bias),
        "moe.ema.count", count, "moe.ema.decay", decay, NULL };
    struct moe_sink_plan p = { m->tensors, m->n, meta, 0, ALIGN, NULL, 0 };
    struct moe_progress progress;
    struct moe_sink *to;
    int rc;

    (void)snprintf(decay, sizeof(decay), "%.17g", m->a.decay);
    (void)snprintf(count, sizeof(count), "%" PRId64, m->a.count);
    if ((rc = moe_sink_open(path, m->old != NULL, &p, &to, e)) != 0)
        return rc;
    moe_progress_start(&progress, "averaging", 2 * moe_source_bytes(m->p.s[m->p.lead]), quiet);
    for (size_t i = 0; rc == 0 && i < m->p.tensors; i++)
        rc = m->residual[i] != SIZE_MAX ? average(m, i, to, &progress, e) : keep(m, i, to, e);
    if (rc == 0)
        rc = ckpt_peers_beside(m->p.s[m->p.n - 1], to, e);
    moe_progress_end(&progress);
    if (rc == 0)
        return moe_sink_commit(to, e);
    moe_sink_abort(to);
    return rc;
}

static void
ema_fini(struct ema *m)
{
    for (size_t i = m->p.tensors; m->tensors != NULL && i < m->n; i++)
        free((char *)m->tensors[i].name);
    free(m->tensors);
    free(m->residual);
    free(m->was);
    free(m->was_lo);
    free(m->w);
    free(m->hi);
    free(m->lo);
    free(m->x);
    free(m->wide);
    moe_source_close(m->old);
    ckpt_peers_fini(&m->p);
}

/* ---- The command ---------------------------------------------------------------------- */

static int
tell(const char *path, const struct ckpt_average *a, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    int rc = 0;

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "state");
    moe_jsonw_str(&w, path, strlen(path));
    moe_jsonw_key(&w, "decay");
    moe_jsonw_real(&w, a->decay);
    moe_jsonw_key(&w, "bias");
    moe_jsonw_str(&w, ckpt_average_bias_name(a->bias), strlen(ckpt_average_bias_name(a->bias)));
    moe_jsonw_key(&w, "count");
    moe_jsonw_int(&w, a->count);
    moe_jsonw_close(&w, '}');
    if (b.bad)
        rc = no_memory(e);
    else
        printf("%s\n", b.p);
    moe_buf_fini(&b);
    return rc;
}

static int
update(const struct args *a, const char *state, char **models, size_t n, struct moe_err *e)
{
    struct ema m = { .n = 0 };
    int fd = -1, rc;

    if (strcmp(state, "-") == 0)
        return moe_err_set(e, MOE_EUSAGE, "-: a state is a file or a directory");
    if ((rc = hold(state, &fd, e)) != 0 ||
        (fd >= 0 && (rc = moe_source_open(state, &m.old, e)) != 0) ||
        (rc = settle(&m, a, e)) != 0)
        goto out;
    if (n == 0 && m.old == NULL)
        rc = moe_err_set(e, MOE_ENOENT, "%s: is not there yet: no model begins it", state);
    if (rc == 0 && n > 0 && (rc = ckpt_peers_open(models, n, true, &m.p, e)) == 0 &&
        (rc = plan(&m, a, e)) == 0)
        rc = write_state(&m, state, a->quiet, e);
    if (rc == 0 && a->json)
        rc = tell(state, &m.a, e);
out:
    ema_fini(&m);
    if (fd >= 0)
        close(fd);
    return rc;
}

int
ckpt_ema(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .decay = NAN };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_ema_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc == first)
        return moe_err_set(e, MOE_EUSAGE, "ema wants a STATE");
    if (a.weights == NULL && (a.dtype != NULL || a.force))
        return moe_err_set(e, MOE_EUSAGE, "--dtype and --force go with --weights");
    if (a.weights == NULL)
        return update(&a, argv[first], argv + first + 1, (size_t)(argc - first - 1), e);
    if (argc - first != 1 || !isnan(a.decay) || a.biased || a.keep || a.json)
        return moe_err_set(e, MOE_EUSAGE, "--weights wants one STATE, and none of its options");
    return ckpt_unbias(argv[first], a.weights, a.dtype, a.force, a.quiet, e);
}
