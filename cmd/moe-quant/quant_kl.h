/* SPDX-License-Identifier: Apache-2.0 */
/* Two models that read the same text: what each makes of it, and how far apart they are. */
#ifndef MOE_QUANT_KL_H
#define MOE_QUANT_KL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/pool.h"

struct quant_kl_options {
    struct moe_pool *pool;
    const char *text;           /* a file */
    uint64_t tokens;            /* of it at most; 0: all */
    bool quiet;
};

/*
 * A JSON object into out: tokens, the perplexity of both (windows of QUANT_READER_CONTEXT, first
 * token of a window unscored), the mean of KL(a || b) in nats over all positions, its largest
 * value, and how often both choose the same token. a and b share a's tokenizer. Errors: the
 * engine's, MOE_EFORMAT (other vocabularies).
 */
int quant_kl_models(const char *a, const char *b, const struct quant_kl_options *o,
    struct moe_buf *out, struct moe_err *e);

#endif
