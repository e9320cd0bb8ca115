/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of experts. Scores are a product on the device; the choice is
 * made on the host, once for every device: it is little work, decides which
 * weights are read next, and is where families differ most.
 */
#include "common/engine/forward_layer.h"
#include "kernels/kernels.h"

/* The k chosen of one row, by ascending expert: the order in which they are summed. */
static void
by_expert(uint32_t *chosen, float *share, size_t k)
{
    for (size_t i = 1; i < k; i++) {
        uint32_t id = chosen[i];
        float s = share[i];
        size_t j = i;

        for (; j > 0 && chosen[j - 1] > id; j--) {
            chosen[j] = chosen[j - 1];
            share[j] = share[j - 1];
        }
        chosen[j] = id;
        share[j] = s;
    }
}

/* Softmax over all experts, the k largest, divided by their sum where the family does. */
static void
softmax_top_k(const struct moe_model *m, float *scores, uint32_t *chosen, float *share)
{
    const struct moe_kernels *k = moe_kernels();
    float sum = 0;

    k->softmax_f32(scores, m->experts);
    k->topk_f32(chosen, scores, m->experts, m->top_k);
    for (size_t i = 0; i < m->top_k; i++)
        sum += share[i] = scores[chosen[i]];
    for (size_t i = 0; m->renorm && i < m->top_k; i++)
        share[i] /= sum;
}

int
moe_router_run(struct moe_forward *f, size_t l, size_t n, struct moe_err *e)
{
    const struct moe_model *m = f->m;
    const struct moe_product p = { .w = &m->layers[l].router, .x = f->h, .out = f->scores,
        .n = n };
    struct moe_told t = { .weight = MOE_W_ROUTER, .layer = l, .x = f->h, .cols = m->hidden,
        .n = n };
    int rc;

    if ((rc = moe_forward_tell(f, &t, e)) != 0)
        return rc;
    f->b->ops->gemm(f->b, &p, 1, MOE_ARITH_F32);
    f->b->ops->read(f->b, f->host_scores, f->scores.at, n * f->scores.ld * sizeof(float));
    for (size_t j = 0; j < n; j++) {
        float *scores = f->host_scores + j * f->scores.ld;
        uint32_t *chosen = f->chosen + j * m->top_k;
        float *share = f->share + j * m->top_k;

        switch (m->family->router) {
        case MOE_ROUTER_SOFTMAX:
            softmax_top_k(m, scores, chosen, share);
            break;
        }
        by_expert(chosen, share, m->top_k);
    }
    return 0;
}
