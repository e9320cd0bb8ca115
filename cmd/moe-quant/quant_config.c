/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text of quantization_config: groups with their targets, and the
 * list of what is ignored. Format: compressed-tensors 0.20, pack-quantized.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-quant/quant_config.h"

#define EXPERTS "experts\\.[0-9]+\\.(gate_proj|up_proj|down_proj|w1|w2|w3)$"

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

        if (x->quantised || !moe_naming_parse(c->family, c->layers, x->name, &n))
            continue;
        head = head || n.role == MOE_ROLE_HEAD;
        if (is_linear(moe_source_at(s, x->src), &n))
            json_array_append_new(list, json_string(n.module));
    }
    if (!head)      /* tied to the embedding: the module is there without a tensor */
        json_array_append_new(list, json_string("lm_head"));
    return list;
}

/* The expression that matches the experts of all layers with group g. */
static json_t *
target(const struct quant_plan *p, uint64_t g, bool only)
{
    struct moe_buf b = MOE_BUF_INIT;
    json_t *t;
    bool first = true;

    if (only)
        return json_string("re:.*\\." EXPERTS);
    moe_buf_str(&b, "re:.*\\.layers\\.(");
    for (size_t l = 0; l < p->layers; l++) {
        if (p->layer_group[l] != g)
            continue;
        moe_buf_fmt(&b, "%s%zu", first ? "" : "|", l);
        first = false;
    }
    moe_buf_str(&b, ")\\..*\\." EXPERTS);
    t = b.bad ? NULL : json_string(b.p);
    moe_buf_fini(&b);
    return t;
}

static json_t *
groups(const struct quant_plan *p)
{
    static const uint64_t sizes[] = { 128, 64, 32 };
    json_t *all = json_object();
    size_t used = 0, n = 0;
    bool has[3] = { false, false, false };

    for (int k = 0; k < 3; k++) {
        for (size_t l = 0; l < p->layers; l++)
            has[k] = has[k] || p->layer_group[l] == sizes[k];
        used += has[k];
    }
    for (int k = 0; k < 3; k++) {
        char name[32];

        if (!has[k])
            continue;
        (void)snprintf(name, sizeof(name), "group_%zu", n++);
        json_object_set_new(all, name, json_pack(
            "{s:[o],s:{s:i,s:s,s:b,s:s,s:I,s:b},s:n,s:n,s:s}",
            "targets", target(p, sizes[k], used == 1),
            "weights", "num_bits", p->opt.bits, "type", "int", "symmetric", 1,
            "strategy", "group", "group_size", (json_int_t)sizes[k], "dynamic", 0,
            "input_activations", "output_activations", "format", "pack-quantized"));
    }
    return all;
}

/* The member's text, its inner lines indented as those of a top-level member. */
static int
member(struct moe_source *s, const struct quant_plan *p, struct moe_buf *b, struct moe_err *e)
{
    json_t *q = json_pack("{s:s,s:s,s:s,s:n,s:n,s:o,s:o}",
        "quant_method", "compressed-tensors", "format", "pack-quantized",
        "quantization_status", "compressed", "global_compression_ratio", "kv_cache_scheme",
        "ignore", ignored(s, p), "config_groups", groups(p));
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
    int rc;

    if (moe_source_config(s) == NULL)
        return 0;
    if ((rc = original(s, b, e)) != 0)
        return rc;
    trim(b);
    b->len--;               /* the closing brace: the text has been parsed as an object */
    trim(b);
    moe_buf_str(b, ",\n  \"quantization_config\": ");
    if ((rc = member(s, p, b, e)) != 0)
        return rc;
    moe_buf_str(b, "\n}\n");
    return b->bad ? no_memory(e) : 0;
}
