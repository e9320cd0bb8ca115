/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts against another program's: shape and SHA-256 of every rank's part or the
 * refusal (tests/data/shard/cut.json), and back again to the whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/formats/cutrule.h"
#include "common/formats/scatter.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define MAX_TENSORS 4
#define MAX_RANKS 16

struct tensor {
    struct moe_tensor t;
    uint64_t shape[8];
    struct moe_naming naming;
    unsigned char *bytes;
    unsigned char *part[MAX_RANKS];
    uint64_t part_bytes[MAX_RANKS], come[MAX_RANKS];
};

/* The rule of the fixtures: low bytes of SplitMix64 seeded by FNV-1a of the name. */
static void
fill(struct tensor *x, json_t *values)
{
    const uint64_t golden = 0x9e3779b97f4a7c15;
    uint64_t h = 0xcbf29ce484222325, n = x->t.end;
    size_t width = moe_dtype_bits(x->t.dtype) / 8;

    x->bytes = calloc(1, n + 1);
    for (size_t i = 0; i < json_array_size(values); i++) {
        int64_t v = json_integer_value(json_array_get(values, i));

        memcpy(x->bytes + i * width, &v, width);
    }
    if (values != NULL)
        return;
    for (const char *p = x->t.name; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3;
    h += golden;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t z = h + (i + 1) * golden;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        x->bytes[i] = (unsigned char)(z ^ (z >> 31));
    }
}

static void
load(struct tensor *x, json_t *j)
{
    const char *dtype = json_string_value(json_object_get(j, "dtype"));
    json_t *shape = json_object_get(j, "shape");

    memset(x, 0, sizeof(*x));
    x->t.name = json_string_value(json_object_get(j, "name"));
    (void)moe_dtype_find(dtype, strlen(dtype), &x->t.dtype);
    x->t.rank = (int)json_array_size(shape);
    x->t.end = moe_dtype_bits(x->t.dtype) / 8;
    for (int d = 0; d < x->t.rank; d++) {
        x->shape[d] = (uint64_t)json_integer_value(json_array_get(shape, (size_t)d));
        x->t.end *= x->shape[d];
    }
    x->t.shape = x->shape;
    fill(x, json_object_get(j, "values"));
}

static void
drop(struct tensor *x)
{
    free(x->bytes);
    for (int r = 0; r < MAX_RANKS; r++)
        free(x->part[r]);
}

static int
put(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, const void *p, size_t n, struct moe_err *e)
{
    struct tensor *x = ctx;
    uint32_t r = tp + ep;   /* one of the two is 0 */

    if (at + n > x->part_bytes[r])
        return moe_err_set(e, MOE_EFORMAT, "past the part");
    memcpy(x->part[r] + at, p, n);
    x->come[r] += n;
    return 0;
}

static int
get(void *ctx, uint32_t ep, uint32_t tp, uint64_t at, void *p, size_t n, struct moe_err *e)
{
    struct tensor *x = ctx;
    uint32_t r = tp + ep;

    if (at + n > x->part_bytes[r])
        return moe_err_set(e, MOE_EFORMAT, "past the part");
    memcpy(p, x->part[r] + at, n);
    return 0;
}

/* The rule of a case that names no module: what the case says of its encoding. */
static void
encoding(const char *what, json_t *c, struct moe_qrule *q)
{
    static const struct { const char *name; struct moe_qrule q; } all[] = {
        { "awq", { .enc = MOE_ENC_AWQ, .bits = 4 } },
        { "gptq", { .enc = MOE_ENC_GPTQ, .bits = 4 } },
        { "compressed-tensors", { .enc = MOE_ENC_CT_PACK, .bits = 4, .symmetric = true } },
        { "fp8 block", { .enc = MOE_ENC_DS_FP8, .bits = 8, .block_rows = 128 } },
        { "mxfp4", { .enc = MOE_ENC_OSS_MXFP4, .bits = 4 } },
        { "fp8 per tensor", { .enc = MOE_ENC_CT_FP8, .bits = 8 } },
        { "fp8 per row", { .enc = MOE_ENC_CT_FP8, .bits = 8, .block_rows = 1 } },
    };

    *q = (struct moe_qrule){ .enc = MOE_ENC_PLAIN };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strncmp(what, all[i].name, strlen(all[i].name)) == 0)
            *q = all[i].q;
    q->group = (uint64_t)json_integer_value(json_object_get(c, "group"));
}

/*
 * The axis of a case, by its tensors' names or, without any, by what it says. Parts
 * of one matrix have the size of the first.
 */
static int
axis_of(const char *what, json_t *c, const struct tensor *x, const struct tensor *all,
    const struct moe_qrule *q, uint32_t ranks, struct moe_cut_axis *a, struct moe_err *e)
{
    struct moe_cutrule m = { (uint64_t)json_integer_value(json_object_get(c, "heads")),
        (uint64_t)json_integer_value(json_object_get(c, "kv_heads")) };
    const char *ax = json_string_value(json_object_get(c, "axis"));
    unsigned heads, kv;
    uint64_t rows, cols;

    if (sscanf(what, "gqa %u/%u", &heads, &kv) == 2 ||
        sscanf(what, "fused q,k,v %u/%u", &heads, &kv) == 2)
        m = (struct moe_cutrule){ heads, kv };
    if (ax == NULL && strstr(what, "row cut") != NULL)
        ax = "row";
    rows = (uint64_t)json_integer_value(json_object_get(c, "out"));
    cols = (uint64_t)json_integer_value(json_object_get(c, "in"));
    while (all != x && strcmp(all->naming.module, x->naming.module) != 0)
        all++;
    if (rows == 0 && moe_cut_size(q, &all->naming, &all->t, &rows, &cols, e) != 0)
        return e->code;
    if (x->naming.role != MOE_ROLE_UNKNOWN)
        return moe_cutrule_axis(&m, &x->naming, rows, cols, ranks, a, e);
    *a = (struct moe_cut_axis){ .dir = MOE_CUT_OUT, .n = 1, .seg = { { rows, rows, false } } };
    if (strstr(what, "torch.chunk") != NULL)
        a->spread = MOE_CUT_CHUNK;
    if (strstr(what, "one more") != NULL)
        a->spread = MOE_CUT_BALANCED;
    if (strstr(what, "by group") != NULL)
        a->seg[0].units = m.kv_heads;
    if (ax != NULL && strcmp(ax, "row") == 0) {
        a->dir = MOE_CUT_IN;
        a->seg[0] = (struct moe_cut_seg){ cols, cols, false };
    }
    return 0;
}

/* Values that are made, not cut: a shape, an order of groups. */
static void
made(struct tensor *x, const struct moe_cut *c, uint32_t r)
{
    if (c->fill == MOE_CUT_SHAPE) {
        int64_t v[2];

        memcpy(v, x->bytes, sizeof(v));
        v[c->axis.dir == MOE_CUT_IN] = (int64_t)moe_cut_share(c, r);
        memcpy(x->part[r], v, sizeof(v));
    } else if (c->fill == MOE_CUT_G_IDX) {
        for (uint64_t i = 0; i < x->part_bytes[r] / 4; i++) {
            int32_t g = (int32_t)(i / c->group);

            memcpy(x->part[r] + i * 4, &g, 4);
        }
    }
}

static void
check_part(const char *what, struct tensor *x, bool has, const uint64_t *shape, uint32_t r,
    json_t *want)
{
    json_t *dims = json_object_get(want, "shape");
    bool same = has == json_is_object(want);

    if (!has || !same) {
        tap_ok(same, "%s: %s: rank %u has %s", what, x->t.name, r, has ? "no part" : "its part");
        return;
    }
    for (size_t d = 0; d < json_array_size(dims); d++)
        same = same && shape[d] == (uint64_t)json_integer_value(json_array_get(dims, d));
    tap_ok(same, "%s: %s: rank %u: shape", what, x->t.name, r);
    tap_is_str(golden_sha256(x->part[r], x->part_bytes[r]),
        json_string_value(json_object_get(want, "sha256")), "%s: %s: rank %u", what, x->t.name, r);
}

/* Out in odd pieces and back in others. */
static void
check_tensor(const char *what, struct tensor *x, const struct moe_cut *c,
    const struct moe_grid *g, size_t index, json_t *result)
{
    struct moe_buf scratch = MOE_BUF_INIT;
    struct moe_err e = { 0 };
    struct moe_scatter s;
    unsigned char *back = calloc(1, x->t.end + 1);
    bool has[MAX_RANKS], all = true;
    uint64_t shape[MAX_RANKS][MOE_SAFET_MAX_RANK];
    size_t piece;
    int rc = moe_scatter_init(&s, c, g, &x->naming, &x->t, &e);

    for (uint32_t r = 0; r < g->tp * g->ep; r++) {
        has[r] = moe_scatter_part(&s, g->ep > 1 ? r : 0, g->ep > 1 ? 0 : r, &x->t, shape[r],
            &x->part_bytes[r]);
        if (!has[r])
            x->part_bytes[r] = 0;
        x->part[r] = calloc(1, x->part_bytes[r] + 1);
    }
    piece = moe_scatter_piece(&s, 96);
    for (uint64_t at = 0; rc == 0 && at < x->t.end; at += piece) {
        size_t n = x->t.end - at < piece ? x->t.end - at : piece;

        rc = moe_scatter_out(&s, at, x->bytes + at, n, &scratch, put, x, &e);
    }
    if (rc == 0)
        rc = moe_scatter_pad(&s, put, x, &e);
    tap_ok(rc == 0, "%s: %s: %s", what, x->t.name, rc == 0 ? "goes out" : e.text);
    for (uint32_t r = 0; r < g->tp * g->ep; r++) {
        all = all && x->come[r] == x->part_bytes[r];
        if (has[r])
            made(x, c, r);
        check_part(what, x, has[r], shape[r], r,
            json_array_get(json_array_get(result, r), index));
    }
    tap_ok(all, "%s: %s: every byte of the parts once", what, x->t.name);
    for (uint64_t at = 0; rc == 0 && c->fill == MOE_CUT_BYTES && at < x->t.end; at += 101) {
        size_t n = x->t.end - at < 101 ? x->t.end - at : 101;

        rc = moe_scatter_in(&s, at, back + at, n, &scratch, get, x, &e);
    }
    if (c->fill == MOE_CUT_BYTES) {
        tap_is_int(rc, 0, "%s: %s: comes back: %s", what, x->t.name, e.text);
        tap_is_mem(back, x->bytes, x->t.end, "%s: %s: as it was", what, x->t.name);
    }
    moe_buf_fini(&scratch);
    free(back);
}

static void
check_case(json_t *c)
{
    const char *what = json_string_value(json_object_get(c, "case"));
    json_t *tensors = json_object_get(c, "tensors"), *result = json_object_get(c, "result");
    const char *refuse = json_string_value(json_object_get(c, "refuse"));
    uint32_t ranks = (uint32_t)json_integer_value(json_object_get(c, "ranks"));
    bool experts = strncmp(what, "stacked experts", 15) == 0;
    struct moe_grid g = { experts ? 1 : ranks, experts ? ranks : 1, 1, 1, 0, MOE_GRID_LINEAR,
        NULL };
    struct tensor x[MAX_TENSORS];
    struct moe_cut cut[MAX_TENSORS];
    struct moe_err e = { 0 };
    size_t n = json_array_size(tensors);
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        const char *family = strstr(what, "interleaved") != NULL ? "gpt_oss" :
            strstr(what, "[E,in,out]") != NULL ? "llama4" : "mixtral";
        struct moe_cut_axis a;
        struct moe_qrule q;

        load(&x[i], json_array_get(tensors, i));
        (void)moe_naming_parse(family, 0, x[i].t.name, &x[i].naming);
        if (strncmp(what, "mxfp4", 5) == 0) {
            x[i].naming.part = i == 0 ? MOE_PART_PACKED : MOE_PART_SCALE;
            x[i].naming.stacked = true;
        }
        encoding(what, c, &q);
        if (rc == 0 && (rc = axis_of(what, c, &x[i], x, &q, g.tp, &a, &e)) == 0)
            rc = moe_cut_make(&a, g.tp, &q, &x[i].naming, &x[i].t,
                strstr(what, "act-order") != NULL, &cut[i], &e);
        if (experts)
            g.experts = x[i].shape[0];
    }
    if (refuse != NULL)
        tap_ok(rc == MOE_EUNSUP, "%s: refused (%s): %s", what, refuse, e.text);
    else
        tap_ok(rc == 0, "%s: can be cut: %s", what, e.text);
    for (size_t i = 0; refuse == NULL && rc == 0 && i < n; i++) {
        json_t *group = json_object_get(c, "new_group");

        if (group != NULL && (x[i].naming.part == MOE_PART_SCALE))
            tap_is_int((long long)cut[i].group, json_integer_value(group), "%s: new group", what);
        check_tensor(what, &x[i], &cut[i], &g, i, result);
    }
    for (size_t i = 0; i < n; i++)
        drop(&x[i]);
}

/* Who holds which expert, and where stages begin. */
static void
check_grid(json_t *c)
{
    const char *what = json_string_value(json_object_get(c, "case"));
    json_t *owner = json_object_get(c, "owner"), *first = json_object_get(c, "first_layer");
    struct moe_grid g = { 1, 1, 1, 1, 0, MOE_GRID_LINEAR, NULL };
    struct moe_err e = { 0 };
    unsigned n, parts;
    bool same = true;

    if (strstr(what, "round robin") != NULL)
        g.deal = MOE_GRID_ROUND_ROBIN;
    if (sscanf(what + strcspn(what, "0123456789"), "%u on %u", &n, &parts) != 2)
        return;
    if (strncmp(what, "stages", 6) == 0) {
        g.layers = n;
        g.pp = parts;
    } else {
        g.experts = n;
        g.ep = parts;
    }
    if (json_object_get(c, "refuse") != NULL) {
        tap_is_int(moe_grid_check(&g, &e), MOE_EUNSUP, "%s: refused: %s", what, e.text);
        return;
    }
    tap_is_int(moe_grid_check(&g, &e), 0, "%s: %s", what, e.text);
    for (uint32_t i = 0; i < json_array_size(owner); i++)
        for (uint32_t r = 0; r < parts; r++)
            same = same && moe_grid_holds(&g, 0, i, r) ==
                (json_integer_value(json_array_get(owner, i)) == r);
    for (uint32_t r = 0; r < json_array_size(first); r++) {
        uint64_t at = (uint64_t)json_integer_value(json_array_get(first, r));

        same = same && moe_grid_stage(&g, at) == r && (at == 0 || moe_grid_stage(&g, at - 1) ==
            r - 1);
    }
    tap_ok(same && (owner != NULL || first != NULL), "%s: as there", what);
}

int
main(void)
{
    json_t *cases = json_object_get(golden_json("shard/cut.json"), "cases");

    tap_is_int((long long)json_array_size(cases), 160, "all cases are there");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        json_t *c = json_array_get(cases, i);

        if (json_object_get(c, "tensors") != NULL)
            check_case(c);
        else
            check_grid(c);
    }
    return tap_done();
}
