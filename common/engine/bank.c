/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the loading of a layer's experts. What a matrix becomes on the device is
 * weights.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/bank.h"
#include "common/engine/weights.h"
#include "common/formats/naming.h"

/* One layer: what its experts are stored as, and packing them on all threads. */
struct bank {
    struct moe_model *m;
    size_t layer;
    bool stacked;
    struct moe_expert *experts;
    struct part {                   /* of gate, up and down */
        struct moe_qmat q;
        struct moe_repack from;     /* rows of q, or of gate's */
        struct moe_packed form;
    } (*parts)[3];                  /* [experts] */
    bool *packed;                   /* [experts] */
    size_t bytes;                   /* of the records so far */
    const struct moe_record **record;   /* [experts]: those that are packed already, or NULL */
    const void **host;              /* [experts]: where they are mapped */
    struct moe_err failed;          /* of any job */
};

/* ---- Packing ---------------------------------------------------------------------- */

static void
pack_expert(void *ctx, size_t x, int worker)
{
    struct bank *p = ctx;
    const struct part *t = p->parts[x];
    struct moe_err e;

    (void)worker;
    if (!p->packed[x])
        return;
    if (moe_weights_pack(p->m, &p->experts[x].gate, &t[0].form, &t[0].from, &t[1].from,
        &e) != 0 ||
        moe_weights_pack(p->m, &p->experts[x].down, &t[2].form, &t[2].from, NULL, &e) != 0)
        __atomic_store_n(&p->failed.code, MOE_ENOMEM, __ATOMIC_RELAXED);
}

/*
 * A place for expert x among the layer's records, laid out as moe-packed(5) has
 * them but without a checksum; *done is false when its encoding is another.
 */
static int
place_expert(struct bank *p, size_t x, bool *done, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct part *t = p->parts[x];
    struct moe_packed *gate = &t[0].form, *up = &t[1].form, *down = &t[2].form;
    struct moe_expert *to = &p->experts[x];
    struct moe_packed_expert record;
    int rc;

    *done = moe_weights_packable(&t[0].from, h->expert_inter, gate) &&
        moe_weights_packable(&t[1].from, h->expert_inter, up) &&
        moe_weights_packable(&t[2].from, h->hidden, down) && gate->kind == up->kind &&
        gate->group == up->group && gate->scale_dtype == up->scale_dtype &&
        gate->zeros == up->zeros;
    if (!*done)
        return 0;
    if ((rc = moe_packed_expert_layout(gate, down, &record, e)) != 0)
        return rc;
    to->gate = moe_weights_packed(gate, true, NULL, p->bytes);
    to->down = moe_weights_packed(down, false, NULL, p->bytes + record.down_at);
    p->bytes += record.bytes;
    return 0;
}

/* One piece of memory for all records of the layer: large enough for huge pages. */
static int
pack_all(struct bank *p, struct moe_pool *pool, struct moe_err *e)
{
    struct moe_mem *mem;
    int rc;

    if (p->bytes == 0)
        return 0;
    if ((rc = moe_weights_alloc(p->m, p->bytes, &mem, e)) != 0)
        return rc;
    for (size_t x = 0; x < p->m->hp.experts; x++) {
        if (p->packed[x])
            p->experts[x].gate.data.mem = p->experts[x].down.data.mem = mem;
    }
    if (pool != NULL)
        moe_pool_run(pool, p->m->hp.experts, pack_expert, p);
    for (size_t x = 0; x < p->m->hp.experts && pool == NULL; x++)
        pack_expert(p, x, 0);
    return p->failed.code == 0 ? 0 : moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
}

/* ---- Records that are there already --------------------------------------------- */

/* The module that expert x is: what the names of its projections, or of the stack, begin with. */
static const char *
module_of(const struct bank *p, size_t x, char name[MOE_FAMILY_MAX_NAME])
{
    const struct moe_family *f = p->m->family;
    bool single = f->weights[MOE_W_EXPERT_GATE] != NULL;
    char *end;

    (void)moe_family_tensor(f, single ? MOE_W_EXPERT_GATE : MOE_W_EXPERTS_GATE_UP, p->layer, x,
        "", name);
    if ((end = strrchr(name, '.')) == NULL)
        end = name + strlen(name);
    if (single)
        *end = 0;
    else
        (void)snprintf(end, MOE_FAMILY_MAX_NAME - (size_t)(end - name), ".%zu", x);
    return name;
}

/* Expert x from its record, if it has one: *done. */
static int
take_record(struct bank *p, size_t x, bool *done, struct moe_err *e)
{
    char name[MOE_FAMILY_MAX_NAME];
    const struct moe_record *r = moe_records_find(p->m->records, module_of(p, x, name));
    const struct moe_hparams *h = &p->m->hp;
    struct moe_expert *to = &p->experts[x];
    struct moe_packed_expert at;
    struct moe_mem *mem;
    int rc;

    *done = r != NULL;
    if (r == NULL)
        return 0;
    if (!r->scheme->expert || r->scheme->matrix.rows != h->expert_inter ||
        r->scheme->matrix.cols != h->hidden)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not a record of an expert of %zu x %zu",
            moe_source_path(p->m->source), moe_source_at(p->m->source, r->tensor)->name,
            h->expert_inter, h->hidden);
    if ((rc = moe_weights_record(p->m, r, &mem, &p->host[x], e)) != 0 ||
        (rc = moe_packed_expert_layout(&r->scheme->matrix, &r->scheme->down, &at, e)) != 0)
        return rc;
    p->record[x] = r;
    to->gate = moe_weights_packed(&r->scheme->matrix, true, mem, 0);
    to->down = moe_weights_packed(&r->scheme->down, false, mem, at.down_at);
    return 0;
}

static void
check_record(void *ctx, size_t x, int worker)
{
    struct bank *p = ctx;

    (void)worker;
    if (p->record[x] != NULL && moe_records_check(p->m->source, p->record[x], p->host[x],
        NULL) != 0)
        __atomic_store_n(&p->failed.code, MOE_EFORMAT, __ATOMIC_RELAXED);
}

/* Checksums of all records of the layer; the first damaged one is told. */
static int
check_all(struct bank *p, struct moe_pool *pool, struct moe_err *e)
{
    int rc = 0;

    if (pool != NULL)
        moe_pool_run(pool, p->m->hp.experts, check_record, p);
    for (size_t x = 0; x < p->m->hp.experts && rc == 0 && (pool == NULL || p->failed.code != 0);
        x++)
        if (p->record[x] != NULL)
            rc = moe_records_check(p->m->source, p->record[x], p->host[x], e);
    return rc;
}

/* ---- Experts under names of their own ------------------------------------------------ */

static int
load_single(struct bank *p, size_t x, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct moe_expert *to = &p->experts[x];
    struct part *t = p->parts[x];
    const struct {
        enum moe_weight w;
        size_t rows, cols;
        struct moe_matrix *out;
    } list[3] = {
        { MOE_W_EXPERT_GATE, h->expert_inter, h->hidden, &to->gate },
        { MOE_W_EXPERT_UP, h->expert_inter, h->hidden, &to->up },
        { MOE_W_EXPERT_DOWN, h->hidden, h->expert_inter, &to->down },
    };
    int rc;

    for (int i = 0; i < 3; i++) {
        struct moe_weights_at at = { p->m, list[i].w, p->layer, x };

        if ((rc = moe_weights_qmat(at, p->m->family->expert_slices ? (int64_t)x : -1,
            list[i].rows, list[i].cols, &t[i].q, e)) != 0)
            return rc;
        t[i].from = (struct moe_repack){ &t[i].q, 0, 1 };
    }
    if ((rc = place_expert(p, x, &p->packed[x], e)) != 0 || p->packed[x])
        return rc;
    for (int i = 0; i < 3; i++)
        if ((rc = moe_weights_stored(p->m, &t[i].q, list[i].out, e)) != 0)
            return rc;
    return 0;
}

/* ---- Stacks ---------------------------------------------------------------------------- */

/* How a stack lies: by the name it has and the family's way with it. */
static struct moe_naming
layout_of(const struct bank *p, enum moe_weight w)
{
    char name[MOE_FAMILY_MAX_NAME];
    struct moe_naming n;

    (void)moe_family_tensor(p->m->family, w, p->layer, 0, "", name);
    if (!moe_naming_parse(p->m->family->name, (int64_t)p->m->hp.n_layers, name, &n))
        (void)moe_naming_parse(p->m->family->name, (int64_t)p->m->hp.n_layers,
            moe_family_tensor(p->m->family, w, p->layer, 0, ".weight", name), &n);
    return n;
}

/*
 * Rows first, first + step ... of q, of which there are `rows`, as a matrix
 * [rows][cols] of its own memory; transposed: q is [cols][all rows].
 */
static int
pick_plain(struct bank *p, const struct moe_qmat *q, bool transposed, size_t first, size_t step,
    struct moe_qmat *out, struct moe_err *e)
{
    size_t size = moe_dtype_bits(q->dtype) / 8, ld = q->cols;
    const unsigned char *from = q->data;
    unsigned char *to;
    void *held;
    int rc = moe_weights_hold(p->m, out->rows * out->cols * size, &held, e);

    if (rc != 0)
        return rc;
    to = held;
    for (size_t r = 0; r < out->rows; r++) {
        size_t row = first + r * step;

        for (size_t c = 0; c < out->cols; c++, to += size)
            memcpy(to, from + (transposed ? c * ld + row : row * ld + c) * size, size);
    }
    out->data = held;
    out->data_len = out->rows * out->cols * size;
    return 0;
}

/* The same of MXFP4: 16 bytes and a scale for 32 columns. */
static int
pick_mx(struct bank *p, const struct moe_qmat *q, size_t first, size_t step,
    struct moe_qmat *out, struct moe_err *e)
{
    size_t codes = q->cols / 2, scales = q->cols / 32;
    void *data, *scale;
    int rc;

    if ((rc = moe_weights_hold(p->m, out->rows * codes, &data, e)) != 0 ||
        (rc = moe_weights_hold(p->m, out->rows * scales, &scale, e)) != 0)
        return rc;
    for (size_t r = 0; r < out->rows; r++) {
        size_t row = first + r * step;

        memcpy((char *)data + r * codes, (const char *)q->data + row * codes, codes);
        memcpy((char *)scale + r * scales, (const char *)q->scale + row * scales, scales);
    }
    out->data = data;
    out->scale = scale;
    out->data_len = out->rows * codes;
    out->scale_len = out->rows * scales;
    return 0;
}

static int
pick(struct bank *p, const struct moe_qmat *q, bool transposed, size_t first, size_t step,
    size_t rows, size_t cols, struct moe_qmat *out, struct moe_err *e)
{
    *out = *q;
    out->rows = rows;
    out->cols = cols;
    if (q->enc == MOE_ENC_PLAIN)
        return pick_plain(p, q, transposed, first, step, out, e);
    if (q->enc == MOE_ENC_OSS_MXFP4 && !transposed)
        return pick_mx(p, q, first, step, out, e);
    return moe_err_set(e, MOE_EUNSUP, "%s: layer %zu: stacked experts of encoding %s",
        moe_source_path(p->m->source), p->layer, moe_qmat_enc_name(q->enc));
}

/*
 * Rows first, first + step ... of expert x of numbers [experts][width] as a vector
 * on the device, as many as `to` has rows.
 */
static int
stack_bias(struct bank *p, enum moe_weight w, const char *suffix, size_t x, size_t width,
    size_t first, size_t step, struct moe_matrix *to, struct moe_err *e)
{
    char name[MOE_FAMILY_MAX_NAME];
    struct moe_source *s = p->m->source;
    size_t i = moe_source_find(s, moe_family_tensor(p->m->family, w, p->layer, x, suffix, name));
    const struct moe_tensor *t;
    const void *all;
    float *v;
    int rc;

    if (i == SIZE_MAX)
        return moe_err_set(e, MOE_ENOENT, "%s: %s: the tensor is missing", moe_source_path(s),
            name);
    t = moe_source_at(s, i);
    if (t->rank != 2 || t->shape[0] != p->m->hp.experts || t->shape[1] != width ||
        !moe_dtype_is_float(t->dtype) || moe_dtype_bits(t->dtype) < 16)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s: not numbers [%zu, %zu]", moe_source_path(s),
            name, p->m->hp.experts, width);
    if ((rc = moe_source_map(s, i, &all, e)) != 0)
        return rc;
    if ((v = malloc((width + 1) * sizeof(*v))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    moe_dtype_to_f32(t->dtype, (const char *)all + x * width * (moe_dtype_bits(t->dtype) / 8),
        width, v);
    for (size_t r = 0; r < to->rows; r++)
        v[r] = v[first + r * step];
    rc = moe_weights_upload(p->m, v, to->rows, &to->bias, e);
    free(v);
    return rc;
}

/* Gate and up of expert x: halves of the stack, or rows that alternate. */
static int
store_gate_up(struct bank *p, size_t x, const struct moe_naming *n, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    const struct part *t = p->parts[x];
    struct moe_expert *to = &p->experts[x];
    size_t inter = h->expert_inter;
    struct moe_qmat half;
    int rc;

    if (t[0].q.enc == MOE_ENC_PLAIN && !n->transposed && !n->interleaved) {
        if ((rc = moe_weights_stored(p->m, &t[0].q, &to->gate, e)) != 0)
            return rc;
        to->gate.rows = inter;
        to->up = to->gate;
        to->up.data.at = moe_matrix_bytes(&to->gate);
        return 0;
    }
    if ((rc = pick(p, &t[0].q, n->transposed, t[0].from.first, t[0].from.step, inter, h->hidden,
        &half, e)) != 0 || (rc = moe_weights_stored(p->m, &half, &to->gate, e)) != 0 ||
        (rc = pick(p, &t[0].q, n->transposed, t[1].from.first, t[1].from.step, inter, h->hidden,
        &half, e)) != 0)
        return rc;
    return moe_weights_stored(p->m, &half, &to->up, e);
}

static int
store_down(struct bank *p, size_t x, bool transposed, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct moe_qmat whole = p->parts[x][2].q;
    int rc;

    if (transposed && (rc = pick(p, &p->parts[x][2].q, true, 0, 1, h->hidden, h->expert_inter,
        &whole, e)) != 0)
        return rc;
    return moe_weights_stored(p->m, &whole, &p->experts[x].down, e);
}

static int
load_stacked(struct bank *p, size_t x, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct moe_weights_at in = { p->m, MOE_W_EXPERTS_GATE_UP, p->layer, x };
    struct moe_weights_at out = { p->m, MOE_W_EXPERTS_DOWN, p->layer, x };
    struct moe_naming n = layout_of(p, in.w), d = layout_of(p, out.w);
    size_t inter = h->expert_inter, step = n.interleaved ? 2 : 1;
    struct part *t = p->parts[x];
    int rc;

    n.transposed = n.transposed && !moe_weights_present(&in, "_blocks");
    d.transposed = d.transposed && !moe_weights_present(&out, "_blocks");
    if ((rc = moe_weights_qmat(in, (int64_t)x, n.transposed ? h->hidden : 2 * inter,
        n.transposed ? 2 * inter : h->hidden, &t[0].q, e)) != 0 ||
        (rc = moe_weights_qmat(out, (int64_t)x, d.transposed ? inter : h->hidden,
        d.transposed ? h->hidden : inter, &t[2].q, e)) != 0)
        return rc;
    t[0].from = (struct moe_repack){ &t[0].q, 0, step };
    t[1].from = (struct moe_repack){ &t[0].q, n.interleaved ? 1 : inter, step };
    t[2].from = (struct moe_repack){ &t[2].q, 0, 1 };
    if (!n.transposed && !d.transposed &&
        ((rc = place_expert(p, x, &p->packed[x], e)) != 0 || p->packed[x]))
        return rc;
    rc = store_gate_up(p, x, &n, e);
    return rc != 0 ? rc : store_down(p, x, d.transposed, e);
}

/* ---- Biases ------------------------------------------------------------------------- */

/* Of experts under names of their own, or of slices of stacks. */
static int
single_biases(struct bank *p, size_t x, struct moe_matrix *up, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct moe_expert *to = &p->experts[x];
    const struct {
        enum moe_weight w;
        size_t rows;
        struct moe_matrix *to;
    } list[3] = {
        { MOE_W_EXPERT_GATE, h->expert_inter, &to->gate },
        { MOE_W_EXPERT_UP, h->expert_inter, up },
        { MOE_W_EXPERT_DOWN, h->hidden, &to->down },
    };
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++) {
        struct moe_weights_at at = { p->m, list[i].w, p->layer, x };

        rc = p->m->family->expert_slices ? stack_bias(p, list[i].w, ".bias", x, list[i].rows, 0, 1,
            list[i].to, e) : moe_weights_vector(at, ".bias", list[i].rows, &list[i].to->bias, e);
    }
    return rc;
}

static int
stacked_biases(struct bank *p, size_t x, struct moe_matrix *up, struct moe_err *e)
{
    const struct moe_hparams *h = &p->m->hp;
    struct moe_expert *to = &p->experts[x];
    bool turns = layout_of(p, MOE_W_EXPERTS_GATE_UP).interleaved;
    size_t inter = h->expert_inter, step = turns ? 2 : 1;
    int rc;

    if ((rc = stack_bias(p, MOE_W_EXPERTS_GATE_UP, "_bias", x, 2 * inter, 0, step, &to->gate,
        e)) != 0 ||
        (rc = stack_bias(p, MOE_W_EXPERTS_GATE_UP, "_bias", x, 2 * inter, turns ? 1 : inter, step,
        up, e)) != 0)
        return rc;
    return stack_bias(p, MOE_W_EXPERTS_DOWN, "_bias", x, h->hidden, 0, 1, &to->down, e);
}

static int
load_biases(struct bank *p, size_t x, struct moe_err *e)
{
    struct moe_expert *to = &p->experts[x];
    struct moe_matrix up = { .rows = p->m->hp.expert_inter };
    int rc;

    if (!p->m->hp.expert_bias)
        return 0;
    rc = p->stacked ? stacked_biases(p, x, &up, e) : single_biases(p, x, &up, e);
    if (to->gate.paired)
        to->gate.up_bias = up.bias;
    else
        to->up.bias = up.bias;
    return rc;
}

/* Whether the layer's experts are stacks; they may be the only form the family has. */
static bool
is_stacked(const struct bank *p)
{
    struct moe_weights_at at = { p->m, MOE_W_EXPERTS_GATE_UP, p->layer, 0 };

    if (p->m->family->weights[at.w] == NULL)
        return false;
    return p->m->family->weights[MOE_W_EXPERT_GATE] == NULL || moe_weights_present(&at, "") ||
        moe_weights_present(&at, ".weight") || moe_weights_present(&at, "_blocks");
}

static int
load_expert(struct bank *p, size_t x, struct moe_err *e)
{
    bool done = false;
    int rc = take_record(p, x, &done, e);

    if (rc == 0 && !done)
        rc = p->stacked ? load_stacked(p, x, e) : load_single(p, x, e);
    return rc != 0 ? rc : load_biases(p, x, e);
}

int
moe_bank_load(struct moe_model *m, size_t l, struct moe_pool *pool, struct moe_expert *out,
    struct moe_err *e)
{
    struct bank p = { .m = m, .layer = l, .experts = out };
    int rc = 0;

    p.stacked = is_stacked(&p);
    p.parts = calloc(m->hp.experts, sizeof(*p.parts));
    p.packed = calloc(m->hp.experts, sizeof(*p.packed));
    p.record = calloc(m->hp.experts, sizeof(*p.record));
    p.host = calloc(m->hp.experts, sizeof(*p.host));
    if (p.parts == NULL || p.packed == NULL || p.record == NULL || p.host == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "experts: out of memory");
    for (size_t x = 0; x < m->hp.experts && rc == 0; x++)
        rc = load_expert(&p, x, e);
    if (rc == 0)
        rc = pack_all(&p, pool, e);
    if (rc == 0)
        rc = check_all(&p, pool, e);
    free(p.parts);
    free(p.packed);
    free(p.record);
    free(p.host);
    return rc;
}
