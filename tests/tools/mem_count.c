/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_count MODEL CONTEXT SEQUENCES ROWS: what the engine asks the processor's
 * memory for, in bytes: weights, keys and values of sequences that are as long
 * as can be, the working space of a step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/engine/forward.h"
#include "common/engine/kv.h"
#include "common/engine/model.h"

static const struct moe_backend_ops *real;
static uint64_t bytes;

static int
count_alloc(struct moe_backend *b, size_t n, struct moe_mem **out, struct moe_err *e)
{
    bytes += n;
    return real->alloc(b, n, out, e);
}

static int
count_adopt(struct moe_backend *b, const void *p, size_t n, struct moe_mem **out,
    struct moe_err *e)
{
    bytes += n;
    return real->adopt(b, p, n, out, e);
}

static uint64_t
taken(void)
{
    uint64_t n = bytes;

    bytes = 0;
    return n;
}

int
main(int argc, char **argv)
{
    size_t context, sequences, rows;
    struct moe_backend_ops ops;
    struct moe_backend *b = NULL;
    struct moe_model *m = NULL;
    struct moe_forward *f = NULL;
    struct moe_kv *kv = NULL;
    struct moe_kv_seq *s = NULL;
    struct moe_err e = { 0, "" };
    int rc = argc == 5 ? moe_backend_cpu_new(NULL, &b, &e) : -1;

    if (rc != 0) {
        fprintf(stderr, "usage: mem_count MODEL CONTEXT SEQUENCES ROWS\n");
        return 2;
    }
    context = strtoul(argv[2], NULL, 10);
    sequences = strtoul(argv[3], NULL, 10);
    rows = strtoul(argv[4], NULL, 10);
    real = b->ops;
    ops = *real;
    ops.alloc = count_alloc;
    ops.adopt = count_adopt;
    b->ops = &ops;
    if ((s = calloc(sequences + 1, sizeof(*s))) == NULL ||
        (rc = moe_model_open(argv[1], b, NULL, &m, &e)) != 0)
        goto out;
    printf("%" PRIu64, taken());
    if ((rc = moe_kv_new(b, &m->kv, 0, &kv, &e)) != 0)
        goto out;
    for (size_t i = 0; rc == 0 && i < sequences; i++) {
        moe_kv_seq_init(&s[i], kv);
        rc = moe_kv_seq_grow(&s[i], context, &e);
    }
    printf(" %" PRIu64, taken());
    if (rc == 0 && (rc = moe_forward_new(m, rows, MOE_ARITH_F32, &f, &e)) == 0)
        printf(" %" PRIu64 "\n", taken());
    for (size_t i = 0; i < sequences; i++)
        moe_kv_seq_fini(&s[i]);
out:
    if (rc != 0)
        fprintf(stderr, "mem_count: %s\n", e.text);
    moe_forward_free(f);
    moe_kv_free(kv);
    moe_model_close(m);
    real->free(b);
    free(s);
    return rc == 0 ? 0 : 2;
}
