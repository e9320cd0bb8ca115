/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table from projections to cuts.
 */
#include <inttypes.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/cutrule.h"

enum unit { ANY, HEADS, KV_HEADS, HALVES, QKV };

static const struct { enum moe_cut_dir dir; enum unit unit; } by_proj[MOE_PROJ_N] = {
    [MOE_PROJ_Q] = { MOE_CUT_OUT, HEADS }, [MOE_PROJ_Q_B] = { MOE_CUT_OUT, HEADS },
    [MOE_PROJ_K] = { MOE_CUT_OUT, KV_HEADS }, [MOE_PROJ_V] = { MOE_CUT_OUT, KV_HEADS },
    [MOE_PROJ_KV_B] = { MOE_CUT_OUT, HEADS }, [MOE_PROJ_K_B] = { MOE_CUT_OUT, HEADS },
    [MOE_PROJ_V_B] = { MOE_CUT_OUT, HEADS }, [MOE_PROJ_QKV] = { MOE_CUT_OUT, QKV },
    [MOE_PROJ_O] = { MOE_CUT_IN, HEADS }, [MOE_PROJ_DOWN] = { MOE_CUT_IN, ANY },
    [MOE_PROJ_GATE] = { MOE_CUT_OUT, ANY }, [MOE_PROJ_UP] = { MOE_CUT_OUT, ANY },
    [MOE_PROJ_GATE_UP] = { MOE_CUT_OUT, HALVES },
};

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n >= k && strcmp(s + n - k, end) == 0;
}

static int
vocab(uint64_t rows, uint32_t ranks, struct moe_cut_axis *a, const char *name, struct moe_err *e)
{
    uint64_t unit = MOE_CUTRULE_VOCAB * (uint64_t)ranks, k = rows / unit + (rows % unit != 0);

    if (!moe_num_mul(k, unit, &a->pad))
        return moe_err_set(e, MOE_EFORMAT, "%s: its rows overflow", name);
    if (ranks == 1)
        a->pad = rows;
    a->dir = MOE_CUT_OUT;
    a->n = 1;
    a->seg[0] = (struct moe_cut_seg){ a->pad, a->pad, false };
    return 0;
}

static int
heads(const struct moe_naming *n, uint64_t size, uint64_t units, bool copies,
    struct moe_cut_axis *a, struct moe_err *e)
{
    if (units == 0 || size % units != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %" PRIu64 " rows or columns are not %" PRIu64
            " heads", n->module, size, units);
    a->seg[a->n++] = (struct moe_cut_seg){ size, units, copies };
    return 0;
}

/* q, k and v one after the other: their rows are as their heads. */
static int
qkv(const struct moe_cutrule *m, const struct moe_naming *n, uint64_t rows,
    struct moe_cut_axis *a, struct moe_err *e)
{
    uint64_t all = m->heads + 2 * m->kv_heads, dim;
    int rc;

    if (m->heads == 0 || m->kv_heads == 0 || rows % all != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %" PRIu64 " rows are not %" PRIu64 " heads of q,"
            " k and v", n->module, rows, all);
    dim = rows / all;
    if ((rc = heads(n, m->heads * dim, m->heads, false, a, e)) != 0 ||
        (rc = heads(n, m->kv_heads * dim, m->kv_heads, true, a, e)) != 0)
        return rc;
    return heads(n, m->kv_heads * dim, m->kv_heads, true, a, e);
}

static int
halves(const struct moe_naming *n, uint64_t rows, struct moe_cut_axis *a, struct moe_err *e)
{
    uint64_t half = rows / 2;

    if (rows % 2 != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %" PRIu64 " rows are not two halves", n->module,
            rows);
    a->n = n->interleaved ? 1 : 2;
    a->seg[0] = a->seg[1] = (struct moe_cut_seg){ n->interleaved ? rows : half, half, false };
    return 0;
}

/* A matrix of attention or of an MLP. */
static int
projection(const struct moe_cutrule *m, const struct moe_naming *n, uint64_t rows, uint64_t cols,
    struct moe_cut_axis *a, struct moe_err *e)
{
    uint64_t size;

    a->dir = by_proj[n->proj].dir;
    size = a->dir == MOE_CUT_IN ? cols : rows;
    if (a->dir == MOE_CUT_NONE)
        return 0;
    switch (by_proj[n->proj].unit) {
    case HEADS: return heads(n, size, m->heads, false, a, e);
    case KV_HEADS: return heads(n, size, m->kv_heads, true, a, e);
    case QKV: return qkv(m, n, size, a, e);
    case HALVES: return halves(n, size, a, e);
    default: break;
    }
    a->n = 1;
    a->seg[0] = (struct moe_cut_seg){ size, size, false };
    return 0;
}

int
moe_cutrule_axis(const struct moe_cutrule *m, const struct moe_naming *n, uint64_t rows,
    uint64_t cols, uint32_t ranks, struct moe_cut_axis *out, struct moe_err *e)
{
    *out = (struct moe_cut_axis){ .dir = MOE_CUT_NONE };
    switch (n->role) {
    case MOE_ROLE_EMBED:
        return ends_with(n->module, "embed_tokens") || ends_with(n->module, "token_embd") ?
            vocab(rows, ranks, out, n->module, e) : 0;
    case MOE_ROLE_HEAD: return vocab(rows, ranks, out, n->module, e);
    case MOE_ROLE_SINK:
        out->dir = MOE_CUT_OUT;
        return heads(n, rows, m->heads, false, out, e);
    case MOE_ROLE_ATTN:
        /* Tables of one dimension are shared; a matrix without a projection is unknown. */
        if (n->proj != MOE_PROJ_NONE || cols <= 1 || ranks == 1)
            return projection(m, n, rows, cols, out, e);
        break;
    case MOE_ROLE_EXPERT: case MOE_ROLE_SHARED: case MOE_ROLE_DENSE: case MOE_ROLE_MTP:
        return projection(m, n, rows, cols, out, e);
    case MOE_ROLE_UNKNOWN:
        if (ranks == 1)
            return 0;
        break;
    default: return 0;
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: no rule is known for cutting it to tensor ranks",
        n->module);
}
