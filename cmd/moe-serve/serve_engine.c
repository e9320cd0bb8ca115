/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of everything a step needs, and the choice of the context. */
#include "cmd/moe-serve/serve.h"

#define DEFAULT_CONTEXT 4096

static int
choose_context(const struct serve_options *o, struct serve_engine *g, struct moe_err *e)
{
    const struct moe_model *m = g->model;

    g->context = m->hp.max_pos < DEFAULT_CONTEXT ? m->hp.max_pos : DEFAULT_CONTEXT;
    if (o->context == 0)
        return 0;
    g->context = (size_t)o->context;
    if (g->context > m->hp.max_pos && m->config.rope == NULL)
        return moe_err_set(e, MOE_EUSAGE, "--context: %zu: the model has %zu positions",
            g->context, m->hp.max_pos);
    return 0;
}

int
serve_engine_open(const struct serve_options *o, struct serve_engine *g, struct moe_err *e)
{
    int rc;

    *g = (struct serve_engine){ .arith = o->arith };
    if (!o->arith_given)
        g->arith = o->mode == SERVE_ONCE ? MOE_ARITH_FAST : MOE_ARITH_F32;
    if ((rc = moe_pool_new((int)o->threads, &g->pool, e)) != 0)
        goto out;
    if ((rc = moe_backend_cpu_new(g->pool, &g->backend, e)) != 0)
        goto out;
    if ((rc = moe_model_open(o->model, g->backend, g->pool, &g->model, e)) != 0)
        goto out;
    if ((rc = choose_context(o, g, e)) != 0)
        goto out;
    if ((rc = moe_kv_new(g->backend, &g->model->kv, 0, &g->kv, e)) != 0)
        goto out;
    if ((rc = moe_forward_new(g->model, (size_t)o->batch, g->arith, &g->forward, e)) == 0)
        rc = moe_forward_noise(g->forward, o->gate, e);
out:
    if (rc != 0)
        serve_engine_close(g);
    return rc;
}

void
serve_engine_close(struct serve_engine *g)
{
    moe_forward_free(g->forward);
    moe_kv_free(g->kv);
    moe_model_close(g->model);
    if (g->backend != NULL)
        g->backend->ops->free(g->backend);
    moe_pool_free(g->pool);
    *g = (struct serve_engine){ NULL, NULL, NULL, NULL, NULL, 0, MOE_ARITH_F32 };
}
