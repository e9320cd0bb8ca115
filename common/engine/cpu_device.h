/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the processor's back end share: backend_cpu.c (memory and
 * operations element by element), cpu_gemm.c and cpu_attend.c. Private to them.
 */
#ifndef MOE_ENGINE_CPU_DEVICE_H
#define MOE_ENGINE_CPU_DEVICE_H

#include "common/base/pool.h"
#include "common/engine/backend.h"
#include "kernels/kernels.h"

struct moe_mem {
    unsigned char *p;
    void *heap;             /* to be freed, or NULL */
    void *map;              /* to be unmapped, or NULL */
    size_t map_len;
};

struct moe_cpu_space {      /* memory that only grows */
    void *p;
    size_t cap;
};

struct moe_cpu {
    struct moe_backend base;
    struct moe_pool *pool;          /* or NULL */
    int workers;
    const struct moe_kernels *k;
    struct moe_cpu_space shared;    /* of the running operation */
    struct moe_cpu_space *own;      /* [workers] */
    struct moe_err failed;          /* code 0 = none */
};

static inline void *
moe_cpu_at(struct moe_view v)
{
    return v.mem == NULL ? NULL : v.mem->p + v.at;
}

static inline float *
moe_cpu_row(struct moe_rows r, size_t j)
{
    return (float *)(void *)(r.at.mem->p + r.at.at) + j * r.ld;
}

/* At least `bytes` of 64-byte aligned space; NULL: failed has been set. */
void *moe_cpu_device_shared(struct moe_cpu *c, size_t bytes);
/* The same for each worker, to be found in c->own[w].p. */
bool moe_cpu_device_own(struct moe_cpu *c, size_t bytes);

/* Run jobs, on the calling thread alone when `work` (about flops) is too little to share. */
void moe_cpu_device_run(struct moe_cpu *c, size_t jobs, size_t work, moe_pool_fn *fn, void *ctx);

/* Jobs of at least `grain` rows each for n rows. */
size_t moe_cpu_device_pieces(const struct moe_cpu *c, size_t n, size_t grain);

void moe_cpu_gemm_run(struct moe_backend *b, const struct moe_product *p, size_t count,
    enum moe_arith arith);
void moe_cpu_attend_store(struct moe_backend *b, const struct moe_kv_at *kv, struct moe_rows k,
    struct moe_rows v);
void moe_cpu_attend_run(struct moe_backend *b, const struct moe_attend *a);

#endif
