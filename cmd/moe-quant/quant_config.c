/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text of quantization_config: groups with their targets, and the
 * list of what is ignored. Formats: compressed-tensors 0.20, DeepSeek's fp8.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_config.h"

#define EXPERTS "experts\\.[0-9]+\\.(gate_proj|up_proj|down_proj|w1|w2|w3)$"
#define MAX_SCHEMES 128         /* more than there are */

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "config.json: out of memory");
}

/* Whether a kept tensor is the weight of a linear module, which loaders look up. */
static bool
is_linear(const struct moe_tensor *t, const struct moe_naming *n)
{
    if (n->part != MOE_PART_WEIGHT || t->rank != 2)
        return false;
    switch (n->role) {
    case MOE_ROLE_HEAD:
    case MOE_ROLE_ATTN:
    case MOE_ROLE_ROUTER:
    case MOE_ROLE_SHARED:
    case MOE_ROLE_SHARED_GATE:
    case MOE_ROLE_DENSE:
    case MOE_ROLE_MTP:
    case MOE_ROLE_OTHER_TOWER:
        return true;
    default:
        return false;
    }
}

static json_t *
ignored(struct moe_source *s, const struct quant_plan *p)
{
    const struct moe_config *c = moe_source_config(s);
    json_t *list = json_array();
    bool head = false;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        struct moe_naming n;

        if (quant_plan_quantised(x) || !moe_naming_parse(c->family, c->layers, x->name, &n))
            continue;
        head = head || n.role == MOE_ROLE_HEAD;
        if (x->scheme.codec != NULL)
            json_array_append_new(list, json_string(x->name));
        else if (is_linear(moe_source_at(s, x->src), &n))
            json_array_append_new(list, json_string(n.module));
    }
    if (!head)      /* tied to the embedding: the module is there without a tensor */
        json_array_append_new(list, json_string("lm_head"));
    return list;
}

/* Whether a matrix is stored by scheme g, and is one of the routed experts. */
static bool
in_group(const struct quant_plan_item *x, const struct quant_scheme *g, bool expert)
{
    return quant_plan_quantised(x) && (x->role == MOE_ROLE_EXPERT) == expert &&
        quant_scheme_same(&x->scheme, g);
}

/* The expression that matches the experts with scheme g. */
static json_t *
expert_target(const struct quant_plan *p, const struct quant_scheme *g)
{
    struct moe_buf b = MOE_BUF_INIT;
    bool others = false, first = true;
    json_t *t;
    int last = -1;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        others = others || (x->role == MOE_ROLE_EXPERT && x->scheme.codec != NULL &&
            !in_group(x, g, true));
    }
    if (!others)
        return json_string("re:.*\\." EXPERTS);
    moe_buf_str(&b, "re:.*\\.layers\\.(");
    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (!in_group(x, g, true) || x->layer == last)
            continue;
        moe_buf_fmt(&b, "%s%d", first ? "" : "|", x->layer);
        first = false;
        last = x->layer;
    }
    moe_buf_str(&b, ")\\..*\\." EXPERTS);
    t = b.bad ? NULL : json_string(b.p);
    moe_buf_fini(&b);
    return t;
}

/* Experts by an expression, others by their names. */
static json_t *
targets(const struct quant_plan *p, const struct quant_scheme *g)
{
    json_t *list = json_array();
    bool experts = false;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        experts = experts || in_group(x, g, true);
        if (in_group(x, g, false))
            json_array_append_new(list, json_string(x->name));
    }
    if (experts)
        json_array_insert_new(list, 0, expert_target(p, g));
    return list;
}

/* The schemes of the plan, each once; their number. */
static size_t
schemes(const struct quant_plan *p, struct quant_scheme *list)
{
    size_t n = 0, k;

    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];

        if (!quant_plan_quantised(x))
            continue;
        for (k = 0; k < n && !quant_scheme_same(&list[k], &x->scheme); k++)
            ;
        if (k == n && n < MAX_SCHEMES)
            list[n++] = x->scheme;
    }
    return n;
}

static json_t *
groups(const struct quant_plan *p, const struct quant_scheme *list, size_t n)
{
    json_t *all = json_object();

    for (size_t k = 0; k < n; k++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "group_%zu", k);
        json_object_set_new(all, name, json_pack("{s:o,s:o,s:o,s:n,s:s}",
            "targets", targets(p, &list[k]), "weights", quant_scheme_weights(&list[k]),
            "input_activations", quant_scheme_activations(&list[k]), "output_activations",
            "format", list[k].codec->format));
    }
    return all;
}

static json_t *
compressed_tensors(struct moe_source *s, const struct quant_plan *p,
    const struct quant_scheme *list, size_t n)
{
    const char *format = list[0].codec->format;

    for (size_t k = 1; k < n; k++) {
        if (strcmp(list[k].codec->format, format) != 0)
            format = "mixed-precision";
    }
    return json_pack("{s:s,s:s,s:s,s:n,s:n,s:o,s:o}",
        "quant_method", "compressed-tensors", "format", format,
        "quantization_status", "compressed", "global_compression_ratio", "kv_cache_scheme",
        "ignore", ignored(s, p), "config_groups", groups(p, list, n));
}

static json_t *
deepseek(struct moe_source *s, const struct quant_plan *p)
{
    return json_pack("{s:s,s:s,s:s,s:[i,i],s:o}", "quant_method", "fp8", "fmt", "e4m3",
        "activation_scheme", "dynamic", "weight_block_size", 128, 128,
        "modules_to_not_convert", ignored(s, p));
}

/* One method a model: DeepSeek's form cannot be mixed. */
static int
check_method(const struct quant_scheme *list, size_t n, struct moe_err *e)
{
    for (size_t k = 1; k < n; k++) {
        if ((list[k].codec->format == NULL) != (list[0].codec->format == NULL))
            return moe_err_set(e, MOE_EUNSUP, "%s and %s cannot be told in one configuration",
                list[0].codec->name, list[k].codec->name);
    }
    return 0;
}

/* The member's text, its inner lines indented as those of a top-level member. */
static int
member(struct moe_source *s, const struct quant_plan *p, const struct quant_scheme *list,
    size_t n, struct moe_buf *b, struct moe_err *e)
{
    json_t *q = list[0].codec->format == NULL ? deepseek(s, p) :
        compressed_tensors(s, p, list, n);
    char *text = q != NULL ? json_dumps(q, JSON_INDENT(2)) : NULL;

    json_decref(q);
    if (text == NULL)
        return no_memory(e);
    for (const char *c = text; *c != '\0'; c++) {
        moe_buf_byte(b, *c);
        if (*c == '\n')
            moe_buf_str(b, "  ");
    }
    free(text);
    return 0;
}

/* The source's own text, so that nothing else in it changes. */
static int
original(struct moe_source *s, struct moe_buf *b, struct moe_err *e)
{
    const struct moe_config *c = moe_source_config(s);
    json_t *copy;
    char *text;
    int rc;

    if (moe_source_is_dir(s) && json_object_get(c->tree, "quantization_config") == NULL)
        return moe_source_aux(s, "config.json", MOE_CONFIG_MAX_BYTES, b, e);
    copy = json_copy(c->tree);
    json_object_del(copy, "quantization_config");
    text = json_dumps(copy, JSON_INDENT(2));
    rc = copy == NULL || text == NULL ? no_memory(e) : 0;
    if (rc == 0)
        moe_buf_str(b, text);
    free(text);
    json_decref(copy);
    return rc;
}

static void
trim(struct moe_buf *b)
{
    while (b->len > 0 && strchr(" \t\r\n", b->p[b->len - 1]) != NULL)
        b->len--;
}

int
quant_config_make(struct moe_source *s, const struct quant_plan *p, struct moe_buf *b,
    struct moe_err *e)
{
    struct quant_scheme list[MAX_SCHEMES];
    size_t n = schemes(p, list);
    int rc;

    if (moe_source_config(s) == NULL)
        return 0;
    if ((rc = check_method(list, n, e)) != 0 || (rc = original(s, b, e)) != 0)
        return rc;
    if (n == 0)
        return b->bad ? no_memory(e) : 0;
    trim(b);
    b->len--;               /* the closing brace: the text has been parsed as an object */
    trim(b);
    moe_buf_str(b, ",\n  \"quantization_config\": ");
    if ((rc = member(s, p, list, n, b, e)) != 0)
        return rc;
    moe_buf_str(b, "\n}\n");
    return b->bad ? no_memory(e) : 0;
}
