/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and tensors that do not go together: JSON gives a configuration "q",
 * tensors "t" (name: [type, [shape]]), a module "m" and an expert "e". Whatever
 * is found lies within its tensors, and a checked matrix can be decoded.
 */
/* covers: common/formats/qparts.c common/formats/qload.c */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/formats/qload.h"

#define MAX_TENSORS 32
#define MAX_RANK 5
#define MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct store {
    struct moe_tensor t[MAX_TENSORS];
    uint64_t shape[MAX_TENSORS][MAX_RANK];
    size_t n;
    unsigned char data[MAX_BYTES];
};

static void
must(int yes)
{
    if (!yes)
        abort();
}

static const struct moe_tensor *
find(void *ctx, const char *name)
{
    struct store *s = ctx;

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->t[i].name, name) == 0)
            return &s->t[i];
    return NULL;
}

static int
bytes(void *ctx, const struct moe_tensor *t, uint64_t at, uint64_t len, const void **p,
    struct moe_err *e)
{
    struct store *s = ctx;

    (void)e;
    must(at <= t->end - t->begin && len <= t->end - t->begin - at);
    *p = s->data + at;
    return 0;
}

/* A tensor that a safetensors header could hold, if it is small. */
static void
add(struct store *s, const char *name, const json_t *v)
{
    const json_t *type = json_array_get(v, 0), *dims = json_array_get(v, 1);
    struct moe_tensor *t = &s->t[s->n];

    *t = (struct moe_tensor){ .name = name, .shape = s->shape[s->n] };
    if (s->n == MAX_TENSORS - 1 || !json_is_string(type) || json_array_size(dims) > MAX_RANK ||
        !moe_dtype_find(json_string_value(type), json_string_length(type), &t->dtype))
        return;
    t->rank = (int)json_array_size(dims);
    for (int i = 0; i < t->rank; i++)
        s->shape[s->n][i] = (uint64_t)json_integer_value(json_array_get(dims, (size_t)i));
    if (moe_safet_bytes(t->dtype, t->shape, t->rank, &t->end) && t->end <= MAX_BYTES)
        s->n++;
}

static void
load(struct store *s, const struct moe_qscheme *scheme, const char *module, int64_t expert)
{
    const struct moe_qparts_from from = { s, "fuzz", find, bytes };
    struct moe_err e = { 0, "" };
    struct moe_qmat m;
    int rc = moe_qload_qmat(scheme, &from, module, expert, &m, &e);

    must(rc == 0 || (e.code == rc && e.text[0] != '\0'));
    if (rc == 0 && m.rows * m.cols <= MAX_BYTES) {
        float *out = malloc(m.rows * m.cols * sizeof(*out));

        if (out != NULL)
            moe_qmat_rows(&m, 0, m.rows, out);
        free(out);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    json_t *tree, *v;
    const json_t *q, *m;
    struct moe_qscheme *scheme;
    struct store *s;
    const char *name;

    if (moe_json_parse((const char *)p, n, "fuzz", &tree, NULL) != 0)
        return 0;
    q = json_object_get(tree, "q");
    m = json_object_get(tree, "m");
    if ((s = calloc(1, sizeof(*s))) != NULL && json_is_string(m) &&
        moe_qscheme_new(q, "fuzz", &scheme, NULL) == 0) {
        memset(s->data, 0x3c, sizeof(s->data));
        json_object_foreach(json_object_get(tree, "t"), name, v)
            add(s, name, v);
        load(s, scheme, json_string_value(m), -1);
        load(s, scheme, json_string_value(m), json_integer_value(json_object_get(tree, "e")));
        moe_qscheme_free(scheme);
    }
    free(s);
    json_decref(tree);
    return 0;
}
