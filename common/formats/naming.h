/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tensor's name means: family by family, (layer, role, expert,
 * projection), for the Hugging Face names of every family the suite knows,
 * fused 3D forms included, and for the names of GGUF. A table, no control
 * flow per family: see naming.c.
 */
#ifndef MOE_FORMATS_NAMING_H
#define MOE_FORMATS_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/safet.h"

enum moe_role {
    MOE_ROLE_UNKNOWN,
    MOE_ROLE_EMBED, MOE_ROLE_HEAD, MOE_ROLE_NORM,
    MOE_ROLE_ATTN,              /* any projection of attention */
    MOE_ROLE_ROUTER,            /* router weights, biases, correction bias */
    MOE_ROLE_EXPERT,            /* routed expert, or a stack of them */
    MOE_ROLE_SHARED,            /* shared expert */
    MOE_ROLE_SHARED_GATE,       /* the gate on a shared expert */
    MOE_ROLE_DENSE,             /* MLP of a dense layer */
    MOE_ROLE_SINK,              /* attention sinks */
    MOE_ROLE_MTP,               /* multi-token prediction layers */
    MOE_ROLE_OTHER_TOWER,       /* anything of a vision or audio tower beside the language model */
    MOE_ROLE_N
};

enum moe_proj {
    MOE_PROJ_NONE, MOE_PROJ_Q, MOE_PROJ_K, MOE_PROJ_V, MOE_PROJ_O,
    MOE_PROJ_GATE, MOE_PROJ_UP, MOE_PROJ_DOWN, MOE_PROJ_GATE_UP,
    MOE_PROJ_Q_A, MOE_PROJ_Q_B, MOE_PROJ_KV_A, MOE_PROJ_KV_B,
    MOE_PROJ_QKV,
    MOE_PROJ_K_B, MOE_PROJ_V_B, /* GGUF splits kv_b */
    MOE_PROJ_N
};

/* The part a tensor is of one matrix. */
enum moe_part {
    MOE_PART_WEIGHT, MOE_PART_BIAS,
    MOE_PART_SCALE,             /* weight_scale, weight_scale_inv, scales */
    MOE_PART_PACKED,            /* weight_packed, qweight, blocks */
    MOE_PART_ZERO,              /* weight_zero_point, qzeros */
    MOE_PART_SHAPE, MOE_PART_G_IDX, MOE_PART_GLOBAL, MOE_PART_INPUT_SCALE,
    MOE_PART_OTHER
};

struct moe_naming {
    enum moe_role role;
    enum moe_proj proj;
    enum moe_part part;
    int layer;                  /* -1 = none */
    int expert;                 /* -1 = not an expert, or all of them stacked */
    bool stacked;               /* a tensor holding every expert of the layer, experts first */
    bool interleaved;           /* fused gate and up alternate (gpt-oss), else halves */
    bool transposed;            /* stored [in, out] (gpt-oss BF16, llama4, qwen3_vl_moe) */
    bool ambiguous;             /* the layout hangs on the family, which is not known */
    char module[256];           /* name without the part's suffix: what ignore lists name */
};

/*
 * family is config model_type, or NULL when unknown. Names mean the same in
 * every family; only the layout of experts.gate_up_proj and experts.down_proj
 * is told by the family. Returns false when the name is not understood; role is
 * then MOE_ROLE_UNKNOWN and module (cut if too long) and part are still set.
 * n_layers > 0 tells MTP layers apart: layers.N with N >= n_layers.
 *
 * qwen3_vl_moe: transposed is what transformers 4 writes; version 5 writes
 * [E, 2I, H] under the same names, so its readers look at the shape too.
 */
bool moe_naming_parse(const char *family, int64_t n_layers, const char *tensor,
    struct moe_naming *out);

const char *moe_naming_role(enum moe_role r);     /* "expert" */
const char *moe_naming_proj(enum moe_proj p);     /* "gate" */

/* Whether a family is in the table; the i-th family's name, or NULL past the last. */
bool moe_naming_known(const char *family);
const char *moe_naming_family(int i);

#endif
