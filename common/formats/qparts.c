/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns finding the tensors of a module's weight and what their shapes say of
 * it. Reads no byte of them (qload.c), nor the configuration (qscheme.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/num.h"
#include "common/formats/qparts.h"

/* One call: what is asked, and what is being filled. */
struct job {
    const struct moe_qparts_from *from;
    const char *module;
    int64_t expert;
    struct moe_qrule rule;
    struct moe_qmat *m;
    struct moe_qparts *parts;
    struct moe_err *e;
};

/* The module's tensor with a suffix; NULL: none. */
static const struct moe_tensor *
find(const struct job *j, const char *suffix)
{
    char name[MOE_QPARTS_NAME];
    int n = snprintf(name, sizeof(name), "%s%s", j->module, suffix);

    return n < 0 || n >= (int)sizeof(name) ? NULL : j->from->find(j->from->ctx, name);
}

static int
bad(const struct job *j, const struct moe_tensor *t, const char *what)
{
    return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %s", j->from->name, t->name, what);
}

static int
missing(const struct job *j, const char *suffix)
{
    return moe_err_set(j->e, MOE_EFORMAT, "%s: %s%s: the tensor is missing", j->from->name,
        j->module, suffix);
}

/* Dimensions of the part without the experts'. */
static int
rank(const struct job *j, const struct moe_tensor *t)
{
    return j->expert < 0 ? t->rank : t->rank - 1;
}

static uint64_t
dim(const struct job *j, const struct moe_tensor *t, int d)
{
    return t->shape[j->expert < 0 ? d : d + 1];
}

/* The part of a tensor that belongs to the expert. */
static int
slice(const struct job *j, const struct moe_tensor *t, struct moe_qpart *p)
{
    uint64_t len = t->end - t->begin;

    *p = (struct moe_qpart){ t, 0, len };
    if (j->expert < 0)
        return 0;
    if (t->rank < 1)
        return bad(j, t, "not a stack of experts");
    if ((uint64_t)j->expert >= t->shape[0])
        return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: no expert %" PRId64 " of %" PRIu64,
            j->from->name, t->name, j->expert, t->shape[0]);
    p->len = len / t->shape[0];
    p->at = (uint64_t)j->expert * p->len;
    return 0;
}

/* Take the part, of type `want` (MOE_DTYPE_N: any), with n dimensions. */
static int
take(const struct job *j, const char *suffix, enum moe_dtype want, int n,
    struct moe_qpart *p)
{
    const struct moe_tensor *t = find(j, suffix);
    int rc;

    if (t == NULL)
        return missing(j, suffix);
    if ((rc = slice(j, t, p)) != 0)
        return rc;
    if (want != MOE_DTYPE_N && t->dtype != want)
        return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %s, not %s", j->from->name, t->name,
            moe_dtype_name(t->dtype), moe_dtype_name(want));
    if (rank(j, t) != n)
        return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %d dimensions, not %d", j->from->name,
            t->name, t->rank, n + (j->expert >= 0));
    return 0;
}

/* A part must be [rows, cols]. */
static int
shape_is(const struct job *j, const struct moe_qpart *p, uint64_t rows, uint64_t cols)
{
    if (dim(j, p->t, 0) == rows && dim(j, p->t, 1) == cols)
        return 0;
    return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %" PRIu64 " x %" PRIu64 ", not %" PRIu64
        " x %" PRIu64, j->from->name, p->t->name, dim(j, p->t, 0), dim(j, p->t, 1), rows, cols);
}

static uint64_t
pieces(uint64_t n, uint64_t piece)
{
    return n == 0 ? 0 : (n - 1) / piece + 1;
}

/* Scales, [rows, per_row]; a lone dimension and a scalar are fine where one number is a row's. */
static int
take_scale(struct job *j, const char *suffix, uint64_t rows, uint64_t per_row)
{
    const struct moe_tensor *t = find(j, suffix);
    int rc;

    if (t == NULL)
        return missing(j, suffix);
    j->m->scale_dtype = t->dtype;
    if (per_row == 1 && (rank(j, t) == 0 || rank(j, t) == 1)) {
        uint64_t n = rank(j, t) == 0 ? 1 : dim(j, t, 0);

        if ((rc = slice(j, t, &j->parts->scale)) != 0)
            return rc;
        return n == rows ? 0 : moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %" PRIu64
            " scales, not %" PRIu64, j->from->name, t->name, n, rows);
    }
    if ((rc = take(j, suffix, MOE_DTYPE_N, 2, &j->parts->scale)) != 0)
        return rc;
    return shape_is(j, &j->parts->scale, rows, per_row);
}

/* ---- One function an encoding: shape, parts ------------------------------------------- */

static int
plain(struct job *j, const char *suffix)
{
    struct moe_qpart *p = &j->parts->data;
    int rc = take(j, suffix, MOE_DTYPE_N, 2, p);

    if (rc != 0)
        return rc;
    *j->m = (struct moe_qmat){ .enc = MOE_ENC_PLAIN, .dtype = p->t->dtype };
    j->m->rows = dim(j, p->t, 0);
    j->m->cols = dim(j, p->t, 1);
    return 0;
}

/* Groups a row: from the columns, which the group must divide. */
static int
groups(const struct job *j, uint64_t *n)
{
    uint64_t g = j->rule.group == 0 ? j->m->cols : j->rule.group;

    if (j->m->cols == 0 || j->m->cols % g != 0)
        return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: groups of %" PRIu64
            " do not divide rows of %" PRIu64, j->from->name, j->module, g, j->m->cols);
    *n = j->m->cols / g;
    return 0;
}

static int
ct_pack(struct job *j)
{
    struct moe_qparts *p = j->parts;
    unsigned bits = (unsigned)j->rule.bits;
    const struct moe_tensor *t;
    uint64_t words, n = 1;
    int rc;

    if ((t = find(j, ".weight_g_idx")) != NULL)
        return moe_err_set(j->e, MOE_EUNSUP, "%s: %s: an order of columns is not read",
            j->from->name, t->name);
    if ((rc = take(j, ".weight_packed", MOE_I32, 2, &p->data)) != 0 ||
        (rc = take(j, ".weight_scale", MOE_DTYPE_N, 2, &p->scale)) != 0)
        return rc;
    j->m->rows = dim(j, p->data.t, 0);
    words = dim(j, p->data.t, 1);
    if (words > INT64_MAX / 32)
        return bad(j, p->data.t, "its rows are too long");
    j->m->cols = words * 32 / bits;
    if (j->rule.group > 0) {
        n = dim(j, p->scale.t, 1);
        if (!moe_num_mul(n, j->rule.group, &j->m->cols) || j->m->cols > INT64_MAX / 32 ||
            (j->m->cols * bits + 31) / 32 != words)
            return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: %" PRIu64 " words a row do not hold %"
                PRIu64 " groups of %" PRIu64 " codes of %u bits", j->from->name, p->data.t->name,
                words, n, j->rule.group, bits);
    }
    if ((rc = take_scale(j, ".weight_scale", j->m->rows, n)) != 0)
        return rc;
    if (!j->rule.symmetric) {
        if ((rc = take(j, ".weight_zero_point", MOE_I32, 2, &p->zero)) != 0 ||
            (rc = shape_is(j, &p->zero, pieces(j->m->rows * bits, 32), n)) != 0)
            return rc;
    }
    return find(j, ".weight_shape") == NULL ? 0 :
        take(j, ".weight_shape", MOE_I64, 1, &p->shape);
}

/* Whole bytes with scales beside them: INT8, FP8 of either kind, MXFP8. */
static int
bytes(struct job *j, enum moe_dtype type, const char *scale)
{
    struct moe_qparts *p = j->parts;
    uint64_t rows, per_row;
    int rc = take(j, ".weight", type, 2, &p->data);

    if (rc != 0)
        return rc;
    j->m->rows = rows = dim(j, p->data.t, 0);
    j->m->cols = dim(j, p->data.t, 1);
    if (j->m->enc == MOE_ENC_CT_FP8 || j->m->enc == MOE_ENC_DS_FP8) {
        rows = j->rule.block_rows == 0 ? 1 : pieces(rows, j->rule.block_rows);
        per_row = j->rule.group == 0 ? 1 : pieces(j->m->cols, j->rule.group);
    } else if ((rc = groups(j, &per_row)) != 0) {
        return rc;
    }
    if ((rc = take_scale(j, scale, rows, per_row)) != 0)
        return rc;
    if (j->m->symmetric)
        return 0;
    if ((rc = take(j, ".weight_zero_point", MOE_I8, 2, &p->zero)) != 0)
        return rc;
    return shape_is(j, &p->zero, rows, per_row);
}

/* FP4 codes, two a byte. */
static int
ct_fp4(struct job *j)
{
    struct moe_qparts *p = j->parts;
    uint64_t per_row;
    int rc = take(j, ".weight_packed", MOE_U8, 2, &p->data);

    if (rc != 0)
        return rc;
    j->m->rows = dim(j, p->data.t, 0);
    if (!moe_num_mul(dim(j, p->data.t, 1), 2, &j->m->cols))
        return bad(j, p->data.t, "its rows are too long");
    if ((rc = groups(j, &per_row)) != 0 ||
        (rc = take_scale(j, ".weight_scale", j->m->rows, per_row)) != 0)
        return rc;
    return j->m->enc != MOE_ENC_CT_NVFP4 ? 0 :
        take(j, ".weight_global_scale", MOE_F32, 1, &p->global);
}

static int
gptq(struct job *j)
{
    struct moe_qparts *p = j->parts;
    uint64_t per = 32 / (unsigned)j->rule.bits, n;
    bool awq = j->m->enc == MOE_ENC_AWQ;
    int rc = take(j, ".qweight", MOE_I32, 2, &p->data);

    if (rc != 0)
        return rc;
    j->m->cols = dim(j, p->data.t, 0);
    j->m->rows = dim(j, p->data.t, 1);
    if (!moe_num_mul(awq ? j->m->rows : j->m->cols, per, awq ? &j->m->rows : &j->m->cols))
        return bad(j, p->data.t, "its rows are too long");
    if ((rc = groups(j, &n)) != 0 ||
        (rc = take_scale(j, ".scales", n, j->m->rows)) != 0 ||
        (rc = take(j, ".qzeros", MOE_I32, 2, &p->zero)) != 0 ||
        (rc = shape_is(j, &p->zero, n, pieces(j->m->rows, per))) != 0)
        return rc;
    return find(j, ".g_idx") == NULL || awq ? 0 : take(j, ".g_idx", MOE_I32, 1, &p->g_idx);
}

/* gpt-oss: [experts][rows][groups][16 bytes], scales [experts][rows][groups]. */
static int
gpt_oss(struct job *j)
{
    struct moe_qparts *p = j->parts;
    const struct moe_tensor *t;
    int rc;

    if ((rc = take(j, "_blocks", MOE_U8, 3, &p->data)) != 0 ||
        (rc = take(j, "_scales", MOE_DTYPE_N, 2, &p->scale)) != 0)
        return rc;
    t = p->data.t;
    if (dim(j, t, 2) != 16)
        return bad(j, t, "its blocks are not of 16 bytes");
    j->m->rows = dim(j, t, 0);
    j->m->scale_dtype = p->scale.t->dtype;
    if (!moe_num_mul(dim(j, t, 1), 32, &j->m->cols))
        return bad(j, t, "its rows are too long");
    return shape_is(j, &p->scale, j->m->rows, dim(j, t, 1));
}

/* ---- Which encoding ----------------------------------------------------------------------- */

static bool
wide_float(enum moe_dtype t)
{
    return t == MOE_F16 || t == MOE_BF16 || t == MOE_F32 || t == MOE_F64;
}

/* The scale of a DeepSeek FP8 weight goes by three names. */
static const char *
ds_scale(const struct job *j)
{
    if (find(j, ".weight_scale_inv") == NULL) {
        if (find(j, ".weight_scale") != NULL)
            return ".weight_scale";
        if (find(j, ".scale") != NULL)
            return ".scale";
    }
    return ".weight_scale_inv";
}

/* By what is there; the rule must fit it. */
static int
dispatch(struct job *j)
{
    bool packed = find(j, ".weight_packed") != NULL, words = find(j, ".qweight") != NULL;
    bool blocks = find(j, "_blocks") != NULL;
    const struct moe_tensor *t = find(j, ".weight");
    const char *name = ".weight";

    if (t == NULL && (t = find(j, "")) != NULL)
        name = "";
    if (!packed && !words && !blocks && t == NULL)
        return moe_err_set(j->e, MOE_ENOENT, "%s: %s: there is no weight", j->from->name,
            j->module);
    if (!packed && !words && !blocks && wide_float(t->dtype))
        return plain(j, name);
    switch (j->m->enc) {
    case MOE_ENC_CT_PACK:
        if (packed)
            return ct_pack(j);
        break;
    case MOE_ENC_CT_MXFP4: case MOE_ENC_CT_NVFP4:
        if (packed)
            return ct_fp4(j);
        break;
    case MOE_ENC_GPTQ: case MOE_ENC_AWQ:
        if (words)
            return gptq(j);
        break;
    case MOE_ENC_OSS_MXFP4:
        if (blocks)
            return gpt_oss(j);
        break;
    case MOE_ENC_CT_INT8:
        if (t != NULL)
            return bytes(j, MOE_I8, ".weight_scale");
        break;
    case MOE_ENC_CT_FP8: case MOE_ENC_CT_MXFP8:
        if (t != NULL)
            return bytes(j, MOE_F8_E4M3, ".weight_scale");
        break;
    case MOE_ENC_DS_FP8:
        if (t != NULL)
            return bytes(j, MOE_F8_E4M3, ds_scale(j));
        break;
    default:
        break;
    }
    return moe_err_set(j->e, MOE_EFORMAT, "%s: %s: its %s does not go with quantization_config, "
        "where it is %s", j->from->name, j->module, packed ? "weight_packed" : words ? "qweight" :
        blocks ? "blocks" : moe_dtype_name(t->dtype), moe_qmat_enc_name(j->m->enc));
}

static void
set_lengths(struct moe_qmat *m, const struct moe_qparts *p)
{
    m->data_len = p->data.len;
    m->scale_len = p->scale.len;
    m->zero_len = p->zero.len;
    m->g_idx_len = p->g_idx.len;
}

int
moe_qparts_find(const struct moe_qscheme *s, const struct moe_qparts_from *from,
    const char *module, int64_t expert, struct moe_qmat *m, struct moe_qparts *parts,
    struct moe_err *e)
{
    struct job j = { from, module, expert, { .enc = MOE_ENC_PLAIN }, m, parts, e };
    int rc;

    *parts = (struct moe_qparts){ .data = { NULL, 0, 0 } };
    *m = (struct moe_qmat){ .enc = MOE_ENC_PLAIN };
    if ((rc = moe_qscheme_rule(s, module, &j.rule, e)) != 0)
        return rc;
    *m = (struct moe_qmat){ .enc = j.rule.enc, .bits = j.rule.bits, .group = j.rule.group,
        .block_rows = j.rule.block_rows, .symmetric = j.rule.symmetric,
        .gptq_v2 = j.rule.gptq_v2 };
    if ((rc = dispatch(&j)) != 0)
        return rc;
    set_lengths(m, parts);
    return 0;
}
