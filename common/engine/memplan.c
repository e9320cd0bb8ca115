/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reckoning; what is allocated is kv.c's and forward.c's. */
#include <stdlib.h>

#include "common/base/num.h"
#include "common/engine/backend.h"
#include "common/engine/family.h"
#include "common/engine/forward.h"
#include "common/engine/hparams.h"
#include "common/engine/memplan.h"

#define MOST ((uint64_t)1 << 63)

static size_t
share(size_t n, size_t parts)
{
    return (n + parts - 1) / parts;
}

/* The numbers that a tensor-parallel rank sees: heads, inner rows and vocabulary are dealt out. */
static void
cut(struct moe_model *m, size_t tp)
{
    struct moe_hparams *h = &m->hp;

    h->heads = share(h->heads, tp);
    h->kv_heads = share(h->kv_heads, tp);
    h->inter = share(h->inter, tp);
    h->expert_inter = share(h->expert_inter, tp);
    h->shared_inter = share(h->shared_inter, tp);
    h->vocab = share(h->vocab, tp);
    /* The latent of latent attention is whole on every rank. */
    m->kv.heads = share(m->kv.heads, tp);
}

int
moe_memplan_get(const struct moe_config *c, const struct moe_memplan_in *in,
    struct moe_memplan *out, struct moe_err *e)
{
    struct moe_model *m = calloc(1, sizeof(*m));
    uint64_t pages, floats;
    int rc;

    if (m == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", c->name);
    if ((m->family = moe_family_find(c->family)) == NULL) {
        rc = moe_err_set(e, MOE_EUNSUP, "%s: model_type: \"%s\" is not a family that is known",
            c->name, c->family);
        goto out;
    }
    m->config = *c;
    if ((rc = moe_hparams_read(m, e)) != 0)
        goto out;
    *out = (struct moe_memplan){ .hidden = m->hp.hidden, .top_k = m->hp.top_k,
        .layers = m->hp.n_layers };
    cut(m, in->tp);
    if (in->layers > 0)
        m->kv.layers = in->layers;
    out->work = moe_forward_bytes(m, in->rows);
    pages = (in->context + MOE_KV_PAGE - 1) / MOE_KV_PAGE;
    floats = moe_backend_page(&m->kv) / sizeof(float);
    if (!moe_num_mul(pages, in->sequences, &out->kv) || !moe_num_mul(out->kv, floats, &out->kv) ||
        !moe_num_mul(out->kv, in->kv_bytes, &out->kv) || out->kv > MOST || out->work > MOST)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: over 2^63 bytes", c->name);
out:
    free(m);
    return rc;
}
