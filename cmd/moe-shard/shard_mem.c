/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the command `mem`: weights by the cut, keys, values and activations by
 * the engine's own reckoning, buffers of collectives, a reserve; and the device
 * that all of it must fit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_cut.h"
#include "cmd/moe-shard/shard_mem.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/tool.h"
#include "common/engine/memplan.h"
#include "common/formats/packed.h"
#include "common/system/topo.h"

#define FLOAT ((uint64_t)4)     /* bytes of an activation on its way */

enum {
    CONTEXT = SHARD_CUT_LAST, SEQUENCES, BATCH, KV_TYPE, RESERVE, MEMORY, TOPO
};

static const struct moe_opt rows[] = {
    { SHARD_CUT_TP, 0, "tp", MOE_OPT_WORD, "N", "tensor-parallel ranks: matrices are cut", NULL,
        false, false },
    { SHARD_CUT_EP, 0, "ep", MOE_OPT_WORD, "N", "expert-parallel ranks: experts are dealt out",
        NULL, false, false },
    { SHARD_CUT_PP, 0, "pp", MOE_OPT_WORD, "N", "pipeline stages: layers are dealt out", NULL,
        false, false },
    { SHARD_CUT_EXPERTS, 0, "experts", MOE_OPT_CHOICE, "RULE", "which rank an expert goes to",
        "linear|round-robin", false, false },
    { SHARD_CUT_PLAN, 0, "plan", MOE_OPT_FILE, "PLAN", "experts and copies as a plan has them",
        NULL, false, false },
    { CONTEXT, 'c', "context", MOE_OPT_WORD, "N", "positions of a sequence (4096)", NULL, false,
        false },
    { SEQUENCES, 0, "sequences", MOE_OPT_WORD, "N", "that are there at once (1)", NULL, false,
        false },
    { BATCH, 'b', "batch", MOE_OPT_WORD, "N", "tokens of a step (512)", NULL, false, false },
    { KV_TYPE, 0, "kv-type", MOE_OPT_CHOICE, "TYPE", "of keys and values (f32)",
        "f32|bf16|fp8|int8", false, false },
    { RESERVE, 0, "reserve", MOE_OPT_WORD, "PERCENT", "for what falls between (5)", NULL, false,
        false },
    { MEMORY, 0, "memory", MOE_OPT_WORD, "SIZE", "of each device", NULL, false, false },
    { TOPO, 0, "topo", MOE_OPT_FILE, "FILE", "devices and their memory, see topo", NULL,
        false, false },
    { SHARD_CUT_JSON, 0, "json", MOE_OPT_NONE, NULL, "JSON Lines", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[--tp N] [--ep N] [--pp N] [--memory SIZE] [OPTION] MODEL",
    "--topo FILE [OPTION ...] MODEL",
    NULL
};

const struct moe_opt_cmd shard_mem_cmd = {
    "moe-shard mem", usage, "Tell how much memory each rank of a model needs.", rows, NULL
};

struct mem {
    struct shard_cut_options cut;
    struct moe_memplan_in in;
    double reserve;
    uint64_t memory;            /* 0: not said */
    const char *path;           /* of the topology, or NULL */
    struct moe_topo topo;
    struct moe_source *src;
    struct shard_set set;
    struct moe_cutplan plan;    /* of more than one rank */
};

/* What one rank needs, in bytes. */
struct need { uint64_t weights, kv, work, buffers, reserve, total; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct mem *m = ctx;
    int64_t v = 0;
    int rc;

    switch (id) {
    case CONTEXT: case SEQUENCES: case BATCH:
        rc = moe_num_int(arg, 1, id == BATCH ? 65536 : INT32_MAX, "number", &v, e);
        *(id == CONTEXT ? &m->in.context : id == BATCH ? &m->in.rows : &m->in.sequences) =
            (size_t)v;
        return rc;
    case KV_TYPE:
        m->in.kv_bytes = strcmp(arg, "f32") == 0 ? 4 : strcmp(arg, "bf16") == 0 ? 2 : 1;
        return 0;
    case RESERVE: return moe_num_real(arg, 0, 1000, "--reserve", &m->reserve, e);
    case MEMORY: return moe_num_size(arg, 1, UINT64_C(1) << 60, "--memory", &m->memory, e);
    case TOPO: m->path = arg; return 0;
    default: return shard_cut_option(&m->cut, id, arg, e);
    }
}

/* ---- Reckoning ------------------------------------------------------------------------ */

static int
take_tensors(struct mem *m, struct moe_err *e)
{
    struct shard_set *s = &m->set;
    int rc;

    s->n = moe_source_n(m->src);
    s->t = calloc(s->n + 1, sizeof(*s->t));
    s->unordered = calloc(s->n + 1, sizeof(*s->unordered));
    if (s->t == NULL || s->unordered == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < s->n; i++)
        s->t[i] = moe_source_at(m->src, i);
    if (m->cut.tp == 1 && m->cut.ep == 1 && m->cut.pp == 1 && m->cut.plan == NULL)
        return 0;
    if ((rc = shard_cut_grid(&m->cut, moe_source_config(m->src), s, e)) != 0 ||
        (rc = shard_cut_order(m->src, s, e)) != 0)
        return rc;
    return shard_cut_plan(s, moe_source_config(m->src), moe_source_path(m->src), &m->plan, e);
}

/* Bytes of tensor i on a rank. */
static uint64_t
part_of(const struct mem *m, uint32_t rank, size_t i)
{
    const struct moe_grid *g = &m->set.grid;
    uint64_t shape[MOE_SAFET_MAX_RANK], n = 0;

    if (m->plan.n == 0)
        return m->set.t[i]->end - m->set.t[i]->begin;
    return moe_cutplan_part(&m->plan, i, rank / (g->tp * g->ep), rank / g->tp % g->ep,
        rank % g->tp, shape, &n) ? n : 0;
}

/*
 * Bytes of a rank's tensors. Codes of an expert become one record in memory, a multiple of
 * MOE_PACKED_ALIGN (moe-packed(5)): what that adds is counted.
 */
static int
weights_of(const struct mem *m, uint32_t rank, uint64_t *bytes, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(m->src);
    size_t experts = c->experts > 0 ? (size_t)c->experts : 0;
    size_t layers = c->layers > 0 ? (size_t)c->layers : 0;
    uint64_t *record = calloc(layers * experts + 1, sizeof(*record));

    *bytes = 0;
    if (record == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < m->set.n; i++) {
        uint64_t n = part_of(m, rank, i);
        struct moe_naming x;

        *bytes += n;
        if (moe_naming_parse(c->family, c->layers, m->set.t[i]->name, &x) &&
            x.role == MOE_ROLE_EXPERT && x.layer >= 0 && (size_t)x.layer < layers &&
            x.expert >= 0 && (size_t)x.expert < experts && x.part != MOE_PART_WEIGHT)
            record[(size_t)x.layer * experts + (size_t)x.expert] += n;
    }
    for (size_t i = 0; i < layers * experts; i++)
        *bytes += (MOE_PACKED_ALIGN - record[i] % MOE_PACKED_ALIGN) % MOE_PACKED_ALIGN;
    free(record);
    return 0;
}

/*
 * What collectives need, out and back: an all-reduce of a step's rows, its tokens to as many groups
 * of experts as they may go to, and rows to the next stage.
 */
static uint64_t
buffers_of(const struct mem *m, const struct moe_memplan *p)
{
    const struct moe_grid *g = &m->set.grid;
    uint64_t row = (uint64_t)m->in.rows * p->hidden * FLOAT, n = 0;

    if (m->plan.n == 0)
        return 0;
    n += g->tp > 1 ? row : 0;
    n += g->ep > 1 ? row * (p->top_k < g->ep ? p->top_k : g->ep) : 0;
    n += g->pp > 1 ? row : 0;
    return 2 * n;
}

static int
need_of(const struct mem *m, uint32_t rank, struct need *n, struct moe_err *e)
{
    struct moe_memplan_in in = m->in;
    struct moe_memplan p;
    int rc;

    *n = (struct need){ .weights = 0 };
    if (m->plan.n > 0) {
        const struct moe_grid *g = &m->set.grid;
        uint32_t stage = rank / (g->tp * g->ep);

        in.tp = g->tp;
        for (uint64_t l = 0; l < g->layers; l++)
            in.layers += moe_grid_stage(g, l) == stage;
    }
    if ((rc = weights_of(m, rank, &n->weights, e)) != 0 ||
        (rc = moe_memplan_get(moe_source_config(m->src), &in, &p, e)) != 0)
        return rc;
    n->kv = p.kv;
    n->work = p.work;
    n->buffers = buffers_of(m, &p);
    if (!moe_num_add(n->weights, n->kv, &n->total) ||
        !moe_num_add(n->total, n->work, &n->total) ||
        !moe_num_add(n->total, n->buffers, &n->total) || n->total > UINT64_MAX / 16)
        return moe_err_set(e, MOE_ELIMIT, "rank %" PRIu32 ": over 2^60 bytes", rank);
    n->reserve = (uint64_t)((double)n->total * m->reserve / 100);
    n->total += n->reserve;
    return 0;
}

/* ---- Telling ------------------------------------------------------------------------------ */

static void
put(struct moe_jsonw *w, const char *key, uint64_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

static int
tell(const struct mem *m, uint32_t rank, const struct need *n, uint64_t memory, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };
    char text[8][32];

    if (m->cut.json) {
        moe_jsonw_open(&w, '{');
        put(&w, "rank", rank);
        put(&w, "weights", n->weights);
        put(&w, "kv", n->kv);
        put(&w, "activations", n->work);
        put(&w, "buffers", n->buffers);
        put(&w, "reserve", n->reserve);
        put(&w, "total", n->total);
        if (memory > 0) {
            put(&w, "memory", memory);
            put(&w, "short", n->total > memory ? n->total - memory : 0);
        }
        moe_jsonw_close(&w, '}');
    } else {
        moe_buf_fmt(&b, "rank %5" PRIu32 "  weights %s, kv %s, activations %s, buffers %s,"
            " reserve %s: %s", rank, moe_num_human(text[0], 32, n->weights),
            moe_num_human(text[1], 32, n->kv), moe_num_human(text[2], 32, n->work),
            moe_num_human(text[3], 32, n->buffers), moe_num_human(text[4], 32, n->reserve),
            moe_num_human(text[5], 32, n->total));
        if (memory > 0)
            moe_buf_fmt(&b, " of %s, %s %s", moe_num_human(text[6], 32, memory),
                moe_num_human(text[7], 32, n->total > memory ? n->total - memory :
                memory - n->total), n->total > memory ? "short" : "left");
    }
    moe_buf_byte(&b, '\n');
    if (!b.bad)
        (void)fwrite(b.p, 1, b.len, stdout);
    moe_buf_fini(&b);
    return b.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") : 0;
}

/* The memory of each accelerator; there must be as many as ranks. */
static int
take_devices(const struct mem *m, uint32_t ranks, uint64_t *memory, struct moe_err *e)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < ranks; k++)
        memory[k] = m->memory;
    for (size_t i = 0; m->path != NULL && i < m->topo.n; i++) {
        if (strcmp(m->topo.device[i].kind, "nic") == 0)
            continue;
        if (n < ranks)
            memory[n] = m->topo.device[i].memory;
        if (n++ < ranks && m->topo.device[i].memory == 0)
            return moe_err_set(e, MOE_EUNSUP, "%s: it does not tell the memory of %s", m->path,
                m->topo.device[i].name);
    }
    if (m->path != NULL && n < ranks)
        return moe_err_set(e, MOE_EUNSUP, "%s: %" PRIu32 " accelerators for %" PRIu32 " ranks",
            m->path, n, ranks);
    return 0;
}

static int
run(struct mem *m, const char *model, bool *fits, struct moe_err *e)
{
    uint32_t ranks = 1;
    uint64_t *memory;
    int rc;

    if ((rc = moe_source_open(model, &m->src, e)) != 0)
        return rc;
    if (moe_source_config(m->src) == NULL || moe_source_is_stream(m->src))
        return moe_err_set(e, MOE_EUNSUP, "%s: a model with its config.json is wanted", model);
    if (m->path != NULL && (rc = moe_topo_read(m->path, true, &m->topo, e)) != 0)
        return rc;
    if ((rc = take_tensors(m, e)) != 0)
        return rc;
    if (m->plan.n > 0)
        ranks = moe_grid_ranks(&m->set.grid);
    if ((memory = calloc(ranks, sizeof(*memory))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    rc = take_devices(m, ranks, memory, e);
    for (uint32_t k = 0; rc == 0 && k < ranks; k++) {
        struct need n;

        if ((rc = need_of(m, k, &n, e)) == 0)
            rc = tell(m, k, &n, memory[k], e);
        if (rc == 0 && memory[k] > 0 && n.total > memory[k])
            *fits = false;
    }
    free(memory);
    return rc;
}

int
shard_mem(int argc, char **argv, struct moe_err *e)
{
    struct mem *m = calloc(1, sizeof(*m));
    bool done, fits = true;
    int first, rc;

    if (m == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    m->cut = (struct shard_cut_options)SHARD_CUT_DEFAULTS;
    m->in = (struct moe_memplan_in){ .context = 4096, .sequences = 1, .rows = 512, .kv_bytes = 4,
        .tp = 1 };
    m->reserve = 5;
    rc = moe_opt_parse(&shard_mem_cmd, argc, argv, option, m, &first, &done, e);
    if (rc == 0 && !done && argc - first != 1)
        rc = moe_err_set(e, MOE_EUSAGE, "one MODEL is wanted");
    else if (rc == 0 && !done && m->memory > 0 && m->path != NULL)
        rc = moe_err_set(e, MOE_EUSAGE, "--memory and --topo do not go together");
    else if (rc == 0 && !done)
        rc = run(m, argv[first], &fits, e);
    moe_cutplan_free(&m->plan);
    shard_set_fini(&m->set);
    moe_source_close(m->src);
    moe_topo_fini(&m->topo);
    free(m);
    return rc == 0 && !fits ? MOE_EXIT_NO : rc;
}
