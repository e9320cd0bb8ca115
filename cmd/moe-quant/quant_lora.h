/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An adapter of PEFT (LoRA) that is added to a model's weights in F32:
 * w + B A alpha / r, or alpha / sqrt(r) for rank-stabilised ones. Values stay in
 * the file. Threads may apply.
 */
#ifndef CMD_QUANT_LORA_H
#define CMD_QUANT_LORA_H

#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-quant/quant_input.h"
#include "common/base/err.h"

#define QUANT_LORA_MAX_CONFIG ((size_t)1 << 20)
#define QUANT_LORA_MAX_RANK 4096

struct quant_lora;

/*
 * dir: adapter_config.json and adapter_model.safetensors. Errors: MOE_EUNSUP
 * (DoRA, other kinds of adapters and settings, by name), MOE_EFORMAT, MOE_EIO.
 */
int quant_lora_open(const char *dir, struct quant_lora **out, struct moe_err *e);
void quant_lora_close(struct quant_lora *l);

/* The pair of a module, from 1, or 0. It counts as used. */
size_t quant_lora_find(struct quant_lora *l, const char *module);

/* The pair goes with a matrix of that shape. */
int quant_lora_fits(const struct quant_lora *l, size_t pair, uint64_t rows, uint64_t cols,
    struct moe_err *e);

/* Every pair has been found: MOE_EFORMAT with the first that was not. */
int quant_lora_check(const struct quant_lora *l, struct moe_err *e);

/* Add rows [row, row + n) of a pair's product to x [n][cols]. */
int quant_lora_apply(const struct quant_lora *l, size_t pair, uint64_t row, uint64_t n,
    uint64_t cols, struct quant_scratch *w, float *x, struct moe_err *e);

#endif
