/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading LoRA adapters as PEFT saves them, and their product. Format:
 * PEFT's docs, "Checkpoint format", and LoraConfig.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_lora.h"
#include "common/base/read.h"

#define PREFIX "base_model.model."

struct pair {
    char *module;
    size_t a, b;                /* tensors; SIZE_MAX: not seen yet */
    uint64_t rank, in, out;
    float times;
    bool used;
};

struct quant_lora {
    struct moe_source *s;
    struct pair *pairs;         /* by module */
    size_t n;
    double alpha;
    bool stabilised;
};

/* ---- Configuration ------------------------------------------------------------ */

static int
read_config(struct quant_lora *l, const json_t *c, const char *path, struct moe_err *e)
{
    static const char *const off[] = { "use_dora", "fan_in_fan_out", "lora_bias", "use_qalora" };
    static const char *const empty[] = { "alpha_pattern", "modules_to_save", "target_parameters",
        "layer_replication", "trainable_token_indices", "megatron_config" };
    const char *type = json_string_value(json_object_get(c, "peft_type"));
    const char *bias = json_string_value(json_object_get(c, "bias"));
    const json_t *alpha = json_object_get(c, "lora_alpha");

    if (type == NULL || strcmp(type, "LORA") != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: peft_type %s: only LORA is merged", path,
            type != NULL ? type : "is missing");
    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (json_is_true(json_object_get(c, off[i])))
            return moe_err_set(e, MOE_EUNSUP, "%s: %s: is not merged", path, off[i]);
    }
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        const json_t *v = json_object_get(c, empty[i]);

        if (json_object_size(v) > 0 || json_array_size(v) > 0)
            return moe_err_set(e, MOE_EUNSUP, "%s: %s: is not merged", path, empty[i]);
    }
    if (bias != NULL && strcmp(bias, "none") != 0)
        return moe_err_set(e, MOE_EUNSUP, "%s: bias %s: is not merged", path, bias);
    if (!json_is_number(alpha) || !(json_number_value(alpha) > 0))
        return moe_err_set(e, MOE_EFORMAT, "%s: lora_alpha must be a number over 0", path);
    l->alpha = json_number_value(alpha);
    l->stabilised = json_is_true(json_object_get(c, "use_rslora"));
    return 0;
}

static int
load_config(struct quant_lora *l, const char *dir, struct moe_err *e)
{
    struct moe_buf path = MOE_BUF_INIT, text = MOE_BUF_INIT;
    json_t *c = NULL;
    int rc;

    moe_buf_fmt(&path, "%s/adapter_config.json", dir);
    if (path.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = moe_read_file(path.p, QUANT_LORA_MAX_CONFIG, &text, e)) == 0) {
        c = json_loadb(text.p != NULL ? text.p : "", text.len, JSON_REJECT_DUPLICATES, NULL);
        rc = json_is_object(c) ? read_config(l, c, path.p, e) :
            moe_err_set(e, MOE_EFORMAT, "%s: not a JSON object", path.p);
    }
    json_decref(c);
    moe_buf_fini(&path);
    moe_buf_fini(&text);
    return rc;
}

/* ---- Tensors ------------------------------------------------------------------ */

static int
refuse(const struct quant_lora *l, size_t i, const char *why, struct moe_err *e)
{
    return moe_err_set(e, MOE_EUNSUP, "%s: tensor %s: %s", moe_source_path(l->s),
        moe_source_at(l->s, i)->name, why);
}

static int
compare(const void *a, const void *b)
{
    return strcmp(((const struct pair *)a)->module, ((const struct pair *)b)->module);
}

/* Tensor i is lora_A or lora_B of a module, perhaps of an adapter called "default". */
static int
take(struct quant_lora *l, size_t i, struct moe_err *e)
{
    static const char *const ends[] = { ".lora_A.weight", ".lora_A.default.weight",
        ".lora_B.weight", ".lora_B.default.weight" };
    const struct moe_tensor *t = moe_source_at(l->s, i);
    const char *name = t->name;
    size_t n, k = 0;
    struct pair *p;

    if (strncmp(name, PREFIX, strlen(PREFIX)) == 0)
        name += strlen(PREFIX);
    n = strlen(name);
    for (; k < 4; k++) {
        size_t m = strlen(ends[k]);

        if (n > m && strcmp(name + n - m, ends[k]) == 0) {
            n -= m;
            break;
        }
    }
    if (k == 4)
        return refuse(l, i, "neither lora_A nor lora_B of a module", e);
    if (t->rank != 2 || (t->dtype != MOE_F32 && t->dtype != MOE_BF16 && t->dtype != MOE_F16))
        return refuse(l, i, "not a matrix of F32, BF16 or F16", e);
    for (p = l->pairs; p < l->pairs + l->n; p++) {
        if (strncmp(p->module, name, n) == 0 && p->module[n] == '\0')
            break;
    }
    if (p == l->pairs + l->n) {
        *p = (struct pair){ .module = strndup(name, n), .a = SIZE_MAX, .b = SIZE_MAX };
        if (p->module == NULL)
            return moe_err_set(e, MOE_ENOMEM, "out of memory");
        l->n++;
    }
    if ((k < 2 ? p->a : p->b) != SIZE_MAX)
        return refuse(l, i, "the module has two of them", e);
    if (k < 2)
        p->a = i;
    else
        p->b = i;
    return 0;
}

static int
finish(struct quant_lora *l, struct pair *p, struct moe_err *e)
{
    const struct moe_tensor *a, *b;

    if (p->a == SIZE_MAX || p->b == SIZE_MAX)
        return refuse(l, p->a == SIZE_MAX ? p->b : p->a, "its other half is missing", e);
    a = moe_source_at(l->s, p->a);
    b = moe_source_at(l->s, p->b);
    p->rank = a->shape[0];
    p->in = a->shape[1];
    p->out = b->shape[0];
    if (p->rank == 0 || p->rank > QUANT_LORA_MAX_RANK || b->shape[1] != p->rank)
        return refuse(l, p->a, "its rank is 0, too high, or not that of lora_B", e);
    p->times = (float)(l->alpha / (l->stabilised ? sqrt((double)p->rank) : (double)p->rank));
    return 0;
}

int
quant_lora_open(const char *dir, struct quant_lora **out, struct moe_err *e)
{
    struct quant_lora *l = calloc(1, sizeof(*l));
    struct moe_buf path = MOE_BUF_INIT;
    int rc;

    *out = NULL;
    moe_buf_fmt(&path, "%s/adapter_model.safetensors", dir);
    if (l == NULL || path.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = load_config(l, dir, e)) == 0 && (rc = moe_source_open(path.p, &l->s, e)) == 0 &&
        (l->pairs = calloc(moe_source_n(l->s) + 1, sizeof(*l->pairs))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < moe_source_n(l->s); i++)
        rc = take(l, i, e);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = finish(l, &l->pairs[i], e);
    if (rc == 0 && l->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no tensors", path.p);
    moe_buf_fini(&path);
    if (rc != 0) {
        quant_lora_close(l);
        return rc;
    }
    qsort(l->pairs, l->n, sizeof(*l->pairs), compare);
    *out = l;
    return 0;
}

void
quant_lora_close(struct quant_lora *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; l->pairs != NULL && i < l->n; i++)
        free(l->pairs[i].module);
    free(l->pairs);
    moe_source_close(l->s);
    free(l);
}

size_t
quant_lora_find(struct quant_lora *l, const char *module)
{
    char name[1024];
    struct pair key = { .module = name }, *p;
    size_t n = strlen(module);

    if (n >= sizeof(name))
        return 0;
    memcpy(name, module, n + 1);
    if ((p = bsearch(&key, l->pairs, l->n, sizeof(key), compare)) == NULL)
        return 0;
    p->used = true;
    return (size_t)(p - l->pairs) + 1;
}

int
quant_lora_fits(const struct quant_lora *l, size_t pair, uint64_t rows, uint64_t cols,
    struct moe_err *e)
{
    const struct pair *p = &l->pairs[pair - 1];

    if (p->out == rows && p->in == cols)
        return 0;
    return moe_err_set(e, MOE_EFORMAT, "%s: %s: %llu x %llu does not go with a matrix of %llu x"
        " %llu", moe_source_path(l->s), p->module, (unsigned long long)p->out,
        (unsigned long long)p->in, (unsigned long long)rows, (unsigned long long)cols);
}

int
quant_lora_check(const struct quant_lora *l, struct moe_err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!l->pairs[i].used)
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: the model has no such matrix",
                moe_source_path(l->s), l->pairs[i].module);
    }
    return 0;
}

/* ---- The product -------------------------------------------------------------- */

/* n rows of a tensor as float, in slot and the one after. */
static int
rows_of(const struct quant_lora *l, size_t i, uint64_t row, uint64_t n, struct quant_scratch *w,
    int slot, float **out, struct moe_err *e)
{
    const struct moe_tensor *t = moe_source_at(l->s, i);
    size_t count = (size_t)(n * t->shape[1]), size = moe_dtype_bits(t->dtype) / 8;
    void *raw = quant_input_scratch(w, slot, count * size);
    int rc;

    *out = quant_input_scratch(w, slot + 1, count * sizeof(float));
    if (raw == NULL || *out == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    if ((rc = moe_source_read(l->s, i, row * t->shape[1] * size, raw, count * size, e)) == 0)
        (void)moe_dtype_to_f32(t->dtype, raw, count, *out);
    return rc;
}

int
quant_lora_apply(const struct quant_lora *l, size_t pair, uint64_t row, uint64_t n,
    uint64_t cols, struct quant_scratch *w, float *x, struct moe_err *e)
{
    const struct pair *p = &l->pairs[pair - 1];
    float *a, *b, *sum;
    int rc;

    if ((rc = rows_of(l, p->a, 0, p->rank, w, 0, &a, e)) != 0 ||
        (rc = rows_of(l, p->b, row, n, w, 2, &b, e)) != 0)
        return rc;
    if ((sum = quant_input_scratch(w, 4, (size_t)cols * sizeof(*sum))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (uint64_t r = 0; r < n; r++) {
        memset(sum, 0, (size_t)cols * sizeof(*sum));
        for (uint64_t k = 0; k < p->rank; k++)
            for (uint64_t c = 0; c < cols; c++)
                sum[c] += b[r * p->rank + k] * a[k * cols + c];
        for (uint64_t c = 0; c < cols; c++)
            x[r * cols + c] += sum[c] * p->times;
    }
    return 0;
}
