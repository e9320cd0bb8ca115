/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantization_config of a config.json, as rules: which encoding the weight of
 * a module has. compressed-tensors (groups with targets, ignore list), gptq
 * (dynamic), awq, fp8, mxfp4. What is stored is the tensors' word, see qload.h.
 *
 * A scheme is immutable; threads may share it.
 */
#ifndef MOE_FORMATS_QSCHEME_H
#define MOE_FORMATS_QSCHEME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/qmat.h"

#define MOE_QSCHEME_MAX_GROUPS 1024
#define MOE_QSCHEME_MAX_NAMES 1000000       /* targets and ignored modules together */
#define MOE_QSCHEME_MAX_REGEX 4096          /* bytes of a regular expression */
#define MOE_QSCHEME_MATCH_LIMIT 100000      /* steps of PCRE2 for one match */

struct moe_qrule {
    enum moe_enc enc;           /* MOE_ENC_PLAIN: not quantised */
    int bits;
    uint64_t group;             /* columns that share a scale; 0 = the whole row */
    uint64_t block_rows;        /* FP8: rows of a block; 1 = channel; 0 = tensor */
    bool symmetric;
    bool gptq_v2;
};

struct moe_qscheme;

/*
 * quant: quantization_config, or NULL when there is none (then every module is
 * plain); nothing of it is kept. name: of the file, for messages. Errors:
 * MOE_EFORMAT (a wrong type, with the key), MOE_EUNSUP (a method, format or
 * setting that is not read), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_qscheme_new(const json_t *quant, const char *name, struct moe_qscheme **out,
    struct moe_err *e);
void moe_qscheme_free(struct moe_qscheme *s);

/*
 * The rule for a module ("model.layers.0.mlp.experts.3.up_proj"). Precedence as
 * in compressed-tensors: a full name, then a regular expression (matched at the
 * start, like Python's re.match), then the class "Linear", which is any module.
 * Errors: MOE_ELIMIT (an expression takes too long), MOE_ENOMEM.
 */
int moe_qscheme_rule(const struct moe_qscheme *s, const char *module, struct moe_qrule *out,
    struct moe_err *e);

/* "compressed-tensors", "gptq" ...; "none" without a configuration. */
const char *moe_qscheme_method(const struct moe_qscheme *s);

#endif
