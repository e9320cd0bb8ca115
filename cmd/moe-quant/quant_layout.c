/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns what matrices of a layer must agree in, and the order of the output.
 * Loaders make one module of q, k and v, of gate and up, and of all experts of a
 * layer (vLLM's rule), so these have one scheme, and those that share a scale
 * have one range.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_layout.h"

struct entry { uint64_t key; size_t item; };

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* ---- Keys --------------------------------------------------------------------- */

#define ALONE (UINT64_C(1) << 63)

/* Which module of a layer a matrix is loaded into, or 0. */
static unsigned
module_of(const struct quant_plan_item *x)
{
    bool gate_up = x->proj == MOE_PROJ_GATE || x->proj == MOE_PROJ_UP;

    switch (x->role) {
    case MOE_ROLE_EXPERT: return 1;
    case MOE_ROLE_SHARED: return 2;
    case MOE_ROLE_DENSE: return gate_up ? 3 : 4;
    case MOE_ROLE_ATTN:
        if (x->proj == MOE_PROJ_Q || x->proj == MOE_PROJ_K || x->proj == MOE_PROJ_V)
            return 5;
        return x->proj == MOE_PROJ_Q_A || x->proj == MOE_PROJ_KV_A ? 6 : 0;
    default: return 0;
    }
}

static uint64_t
scheme_key(const struct quant_plan_item *x, size_t i)
{
    unsigned m = module_of(x);

    return m == 0 || x->layer < 0 ? ALONE | i : ((uint64_t)x->layer << 3) | m;
}

/* Matrices that share the scale of all: gate and up of one expert; q, k and v. */
static uint64_t
range_key(const struct quant_plan_item *x, size_t i)
{
    bool gate_up = x->proj == MOE_PROJ_GATE || x->proj == MOE_PROJ_UP;
    uint64_t k = scheme_key(x, i);

    if (k & ALONE)
        return k;
    if (x->scheme.codec->scale != QUANT_SCALE_E4M3)
        return ALONE | i;
    if (x->role != MOE_ROLE_EXPERT && x->role != MOE_ROLE_SHARED)
        return k;
    return gate_up ? k << 32 | (uint32_t)(x->expert + 1) : ALONE | i;
}

static int
compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Items by key; those for which `want` is false are left out. */
static struct entry *
sorted(const struct quant_plan *p, uint64_t (*key)(const struct quant_plan_item *, size_t),
    bool (*want)(const struct quant_plan_item *), size_t *n)
{
    struct entry *t = malloc((p->n + 1) * sizeof(*t));

    *n = 0;
    for (size_t i = 0; t != NULL && i < p->n; i++) {
        if (want(&p->items[i]))
            t[(*n)++] = (struct entry){ key(&p->items[i], i), i };
    }
    if (t != NULL)
        qsort(t, *n, sizeof(*t), compare);
    return t;
}

/* ---- Groups ------------------------------------------------------------------- */

static uint64_t
divisor(uint64_t cols, uint64_t most)
{
    uint64_t g = most;

    while (g >= 32 && cols % g != 0)
        g /= 2;
    return g >= 32 ? g : 0;
}

static int
no_group(struct moe_source *s, const struct quant_plan_item *x, struct moe_err *e)
{
    uint64_t fits = divisor(x->cols, 128), g = x->scheme.group;
    const char *path = moe_source_path(s), *name = moe_source_at(s, x->src)->name;

    if (g == QUANT_POLICY_AUTO)
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu columns are no multiple of any"
            " group (128, 64, 32)", path, name, (unsigned long long)x->cols);
    if (fits == 0 || !quant_scheme_grouped(x->scheme.codec))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu columns are no multiple of the"
            " group of %llu", path, name, (unsigned long long)x->cols, (unsigned long long)g);
    return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: %llu columns are no multiple of the group"
        " of %llu; %llu would fit", path, name, (unsigned long long)x->cols,
        (unsigned long long)g, (unsigned long long)fits);
}

static bool
has_scheme(const struct quant_plan_item *x)
{
    return quant_plan_quantised(x);
}

/* One group for a module: the largest that divides all its matrices. */
static int
agree_group(struct moe_source *s, struct quant_plan *p, const struct entry *t, size_t n,
    struct moe_err *e)
{
    uint64_t g = 128;

    for (size_t i = 0; i < n; i++) {
        const struct quant_plan_item *x = &p->items[t[i].item];
        uint64_t want = x->scheme.group;

        if (want == QUANT_POLICY_AUTO && (g = divisor(x->cols, g)) == 0)
            return no_group(s, x, e);
        if (want != QUANT_POLICY_AUTO && want != 0 && x->scheme.codec->rows == 1 &&
            x->cols % want != 0)
            return no_group(s, x, e);
    }
    for (size_t i = 0; i < n; i++) {
        struct quant_plan_item *x = &p->items[t[i].item];

        if (x->scheme.group == QUANT_POLICY_AUTO)
            x->scheme.group = g;
    }
    return 0;
}

static int
agree_scheme(const struct quant_plan *p, const struct entry *t, size_t n, struct moe_err *e)
{
    const struct quant_plan_item *a = &p->items[t[0].item];

    for (size_t i = 1; i < n; i++) {
        const struct quant_plan_item *b = &p->items[t[i].item];
        char one[QUANT_SCHEME_NAME], two[QUANT_SCHEME_NAME];

        if (quant_plan_quantised(a) == quant_plan_quantised(b) &&
            (!quant_plan_quantised(a) || quant_scheme_same(&a->scheme, &b->scheme)))
            continue;
        return moe_err_set(e, MOE_EUNSUP, "%s (%s) and %s (%s) are loaded as one module and must"
            " have one scheme", a->name, quant_scheme_name(&a->scheme, one), b->name,
            quant_scheme_name(&b->scheme, two));
    }
    return 0;
}

static bool
is_weight(const struct quant_plan_item *x)
{
    size_t n = strlen(x->name);

    return x->scheme.codec != NULL || (n > 7 && strcmp(x->name + n - 7, ".weight") == 0);
}

static int
by_module(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    size_t n, end;
    struct entry *t = sorted(p, scheme_key, has_scheme, &n);
    int rc = t != NULL ? 0 : no_memory(e);

    for (size_t i = 0; rc == 0 && i < n; i = end) {
        for (end = i + 1; end < n && t[end].key == t[i].key; end++)
            ;
        rc = agree_group(s, p, t + i, end - i, e);
    }
    free(t);
    if (rc != 0 || (t = sorted(p, scheme_key, is_weight, &n)) == NULL)
        return rc != 0 ? rc : no_memory(e);
    for (size_t i = 0; rc == 0 && i < n; i = end) {
        for (end = i + 1; end < n && t[end].key == t[i].key; end++)
            ;
        rc = agree_scheme(p, t + i, end - i, e);
    }
    free(t);
    return rc;
}

/* ---- Ranges and memory -------------------------------------------------------- */

static bool
needs_range(const struct quant_plan_item *x)
{
    return quant_scheme_needs_range(&x->scheme) && !x->redeal;
}

static int
number_ranges(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    size_t n;
    struct entry *t = sorted(p, range_key, needs_range, &n);

    if (t == NULL)
        return no_memory(e);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || t[i].key != t[i - 1].key)
            p->n_ranges++;
        p->items[t[i].item].range = p->n_ranges - 1;
    }
    free(t);
    if (n > 0 && moe_source_is_stream(s))
        return moe_err_set(e, MOE_EUNSUP, "%s: this format needs the largest value of a matrix"
            " before its first code, and a stream is read once: give a file",
            moe_source_path(s));
    if ((p->ranges = calloc(p->n_ranges + 1, sizeof(*p->ranges))) == NULL)
        return no_memory(e);
    return 0;
}

static int
check_memory(struct moe_source *s, const struct quant_plan_item *x, struct moe_err *e)
{
    const char *path = moe_source_path(s), *name = moe_source_at(s, x->src)->name;
    uint64_t strip = quant_scheme_strip(&x->scheme), own = quant_input_strip(&x->in);
    uint64_t scales, bytes;

    strip = (strip > own ? strip : own) * x->in.step;
    if (x->cols > QUANT_PLAN_MAX_STRIP / strip)
        return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: %llu rows of %llu values, which must be"
            " held together, are over %llu", path, name, (unsigned long long)strip,
            (unsigned long long)x->cols, (unsigned long long)QUANT_PLAN_MAX_STRIP);
    scales = quant_scheme_scales(&x->scheme, x->rows, x->cols);
    bytes = scales * (x->scheme.codec->scale == QUANT_SCALE_F32 ? 4 : 2) +
        (x->scheme.asym ? scales : 0);
    if (bytes > QUANT_PLAN_MAX_SCALES)
        return moe_err_set(e, MOE_ELIMIT, "%s: tensor %s: scales of over %llu bytes", path, name,
            (unsigned long long)QUANT_PLAN_MAX_SCALES);
    return 0;
}

int
quant_layout_agree(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    int rc = by_module(s, p, e);

    for (size_t i = 0; rc == 0 && i < p->n; i++) {
        struct quant_plan_item *x = &p->items[i];

        if (x->scheme.codec == NULL)
            continue;
        x->redeal = x->lora == 0 && quant_input_same_grid(&x->in, &x->scheme);
        rc = check_memory(s, x, e);
    }
    return rc != 0 ? rc : number_ranges(s, p, e);
}

/* ---- Output ------------------------------------------------------------------- */

static int
output(struct quant_plan *p, const struct quant_plan_item *x, const struct quant_part *part,
    struct moe_err *e)
{
    uint64_t *shape = moe_arena_get(&p->arena, sizeof(part->shape));
    size_t n = strlen(x->name), k = strlen(part->suffix);
    char *name = moe_arena_get(&p->arena, n + k + 1);

    if (shape == NULL || name == NULL)
        return no_memory(e);
    memcpy(name, x->name, n);
    memcpy(name + n, part->suffix, k + 1);
    memcpy(shape, part->shape, sizeof(part->shape));
    p->out[p->n_out++] = (struct moe_tensor){ .name = name, .dtype = part->dtype,
        .rank = part->rank, .shape = shape };
    return 0;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
check_names(struct moe_source *s, const struct quant_plan *p, struct moe_err *e)
{
    const char **names = malloc((p->n_out + 1) * sizeof(*names));
    int rc = 0;

    if (names == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n_out; i++)
        names[i] = p->out[i].name;
    qsort(names, p->n_out, sizeof(*names), compare_names);
    for (size_t i = 1; rc == 0 && i < p->n_out; i++) {
        if (strcmp(names[i - 1], names[i]) == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: tensor %s would be written twice",
                moe_source_path(s), names[i]);
    }
    free(names);
    return rc;
}

int
quant_layout_outputs(struct moe_source *s, struct quant_plan *p, struct moe_err *e)
{
    struct quant_part part[QUANT_SCHEME_PARTS];
    int rc;

    if ((p->out = calloc(QUANT_SCHEME_PARTS * p->n + 1, sizeof(*p->out))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < p->n; i++) {
        struct quant_plan_item *x = &p->items[i];
        size_t n = 0;

        x->out = p->n_out;
        if (x->scheme.codec == NULL)
            p->out[p->n_out++] = *moe_source_at(s, x->src);
        else
            n = quant_scheme_parts(&x->scheme, x->rows, x->cols, part);
        for (size_t k = 0; k < n; k++) {
            if ((rc = output(p, x, &part[k], e)) != 0)
                return rc;
        }
    }
    return check_names(s, p, e);
}
