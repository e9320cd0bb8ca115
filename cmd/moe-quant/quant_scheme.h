/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemes a matrix can be stored in: one table that the plan, the encoder,
 * the configuration and the report read. A scheme is a row of the table and
 * what was chosen beside it.
 */
#ifndef CMD_QUANT_SCHEME_H
#define CMD_QUANT_SCHEME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/dtype.h"

#define QUANT_SCHEME_PARTS 4
#define QUANT_SCHEME_NAME 48

enum quant_grid { QUANT_GRID_PLAIN, QUANT_GRID_INT, QUANT_GRID_E4M3, QUANT_GRID_E2M1 };

enum quant_scale {
    QUANT_SCALE_NONE,
    QUANT_SCALE_FLOAT,          /* BF16 or F16, as the weight */
    QUANT_SCALE_E8M0,
    QUANT_SCALE_E4M3,           /* and one F32 divisor for the matrix */
    QUANT_SCALE_F32             /* DeepSeek's weight_scale_inv */
};

struct quant_codec {
    const char *name;           /* of option and policy */
    const char *format;         /* compressed-tensors' name of the format, or NULL */
    enum quant_grid grid;
    enum quant_scale scale;
    int bits;
    uint64_t group;             /* columns that share a scale; 0: as chosen */
    uint64_t rows;              /* rows that share a scale; 0: all of the matrix */
    bool packed;                /* codes in weight_packed, not in weight */
    bool row;                   /* one scale a row, whatever group says */
    enum moe_dtype dtype;       /* of the codes; PLAIN: of the values */
};

enum quant_search { QUANT_SEARCH_RTN, QUANT_SEARCH_MSE, QUANT_SEARCH_WIDE };

struct quant_scheme {
    const struct quant_codec *codec;    /* NULL: the tensor is kept byte for byte */
    uint64_t group;             /* columns that share a scale; 0 = the whole row */
    bool asym;
    bool both;                  /* scales of either sign */
    enum quant_search search;
    enum moe_dtype scale;       /* of QUANT_SCALE_FLOAT: MOE_BF16 or MOE_F16 */
};

struct quant_part {
    const char *suffix;         /* ".weight_packed" */
    enum moe_dtype dtype;
    int rank;
    uint64_t shape[2];
    uint64_t bytes;
};

/* A row by name, or NULL; the i-th row, or NULL past the last. */
const struct quant_codec *quant_scheme_find(const char *name);
const struct quant_codec *quant_scheme_at(size_t i);

/* Whether a group has to be chosen, and whether the codec has zero points at all. */
bool quant_scheme_grouped(const struct quant_codec *c);
bool quant_scheme_can_asym(const struct quant_codec *c);

/* Whether the matrix's largest magnitude must be known before its first code. */
bool quant_scheme_needs_range(const struct quant_scheme *s);

/* Rows that must be encoded together. */
uint64_t quant_scheme_strip(const struct quant_scheme *s);

/*
 * The tensors that a matrix becomes, in the order of their data: codes, scales,
 * zero points if any, shape or divisor if any. Returns how many.
 */
size_t quant_scheme_parts(const struct quant_scheme *s, uint64_t rows, uint64_t cols,
    struct quant_part part[static QUANT_SCHEME_PARTS]);

/* Bytes of all of them. */
uint64_t quant_scheme_bytes(const struct quant_scheme *s, uint64_t rows, uint64_t cols);

/* Scales of n rows. */
uint64_t quant_scheme_scales(const struct quant_scheme *s, uint64_t rows, uint64_t cols);

/* "int4-g128", "int4-asym-channel", "fp8-block", "kept"; returns name. */
char *quant_scheme_name(const struct quant_scheme *s, char name[static QUANT_SCHEME_NAME]);

/* Equal as far as a loader sees it. */
bool quant_scheme_same(const struct quant_scheme *a, const struct quant_scheme *b);

/* "weights" and "input_activations" of a configuration group; NULL without memory. */
json_t *quant_scheme_weights(const struct quant_scheme *s);
json_t *quant_scheme_activations(const struct quant_scheme *s);

#endif
