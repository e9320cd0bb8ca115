/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_model SPEC DIR OUT: model DIR as the GGUF file that llama.cpp's converter
 * made of it. SPEC (tests/data/quant/gguf_file) has its keys, and each tensor's
 * type, shape and SHA-256, which what is written must have. Lists of metadata
 * (tokens, merges) are left out.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/family.h"
#include "common/engine/ggufplan.h"
#include "common/formats/ggufw.h"
#include "common/formats/naming.h"
#include "common/formats/qload.h"

static struct moe_err err;
static struct moe_source *src;
static struct moe_qscheme *scheme;
static const struct moe_family *family;
static struct moe_family plan;

static void
need(bool yes, const char *what)
{
    if (yes)
        return;
    fprintf(stderr, "gguf_model: %s: %s\n", what, err.text);
    exit(2);
}

static void *
memory(size_t n)
{
    void *p = calloc(1, n + 1);

    need(p != NULL, "memory");
    return p;
}

struct values { size_t rows, cols; float *v; };

/* All numbers of a tensor, as rows of its last dimension. */
static struct values
numbers(const char *name)
{
    size_t i = moe_source_find(src, name);
    const struct moe_tensor *t;
    struct values x = { 1, 1, NULL };
    const void *p;

    need(i != SIZE_MAX, name);
    t = moe_source_at(src, i);
    for (int d = 0; d < t->rank; d++)
        *(d + 1 < t->rank ? &x.rows : &x.cols) *= t->shape[d];
    x.v = memory(x.rows * x.cols * sizeof(float));
    need(moe_source_map(src, i, &p, &err) == 0, name);
    moe_dtype_to_f32(t->dtype, p, x.rows * x.cols, x.v);
    return x;
}

static struct moe_qmat
qmat(enum moe_weight w, size_t l, int64_t x)
{
    char name[MOE_FAMILY_MAX_NAME];
    struct moe_qmat q;

    moe_family_tensor(family, w, l, x < 0 ? 0 : (size_t)x, "", name);
    need(moe_qload_source(scheme, src, name, strstr(family->weights[w], "{e}") != NULL ? -1 : x,
        &q, &err) == 0, name);
    return q;
}

static struct values
decode(const struct moe_qmat *q)
{
    struct values x = { q->rows, q->cols, memory(q->rows * q->cols * sizeof(float)) };

    moe_qmat_rows(q, 0, q->rows, x.v);
    return x;
}

static struct values
turned(struct values x)
{
    struct values y = { x.cols, x.rows, memory(x.rows * x.cols * sizeof(float)) };

    for (size_t r = 0; r < x.rows; r++)
        for (size_t c = 0; c < x.cols; c++)
            y.v[c * x.rows + r] = x.v[r * x.cols + c];
    free(x.v);
    return y;
}

/* How a stack of this family lies. */
static struct moe_naming
stack(enum moe_weight w, size_t l)
{
    char name[MOE_FAMILY_MAX_NAME];
    struct moe_naming n;

    if (!moe_naming_parse(family->name, 1000, moe_family_tensor(family, w, l, 0, "", name), &n))
        (void)moe_naming_parse(family->name, 1000,
            moe_family_tensor(family, w, l, 0, ".weight", name), &n);
    return n;
}

/* Rows of gate or of up of what holds both. */
static struct values
half_of(struct values both, bool up, bool turns)
{
    struct values x = { both.rows / 2, both.cols, memory(both.rows / 2 * both.cols * 4) };

    for (size_t r = 0; r < x.rows; r++)
        memcpy(x.v + r * x.cols, both.v + (turns ? 2 * r + up : r + up * x.rows) * x.cols,
            x.cols * sizeof(float));
    free(both.v);
    return x;
}

/* Whether the experts of the family lie one by one here. */
static bool
single(enum moe_weight w, size_t l)
{
    char name[MOE_FAMILY_MAX_NAME];

    return family->weights[w] != NULL && moe_source_find(src,
        moe_family_tensor(family, w, l, 0, ".weight", name)) != SIZE_MAX;
}

static struct values
expert(enum moe_weight w, size_t l, size_t x)
{
    enum moe_weight from = w == MOE_W_EXPERT_DOWN ? MOE_W_EXPERTS_DOWN : MOE_W_EXPERTS_GATE_UP;
    struct moe_naming n;
    struct moe_qmat q;
    struct values v;

    if (single(w, l)) {
        q = qmat(w, l, (int64_t)x);
        return decode(&q);
    }
    n = stack(from, l);
    q = qmat(from, l, (int64_t)x);
    v = decode(&q);
    if (n.transposed && q.enc == MOE_ENC_PLAIN)
        v = turned(v);
    return w == MOE_W_EXPERT_DOWN ? v : half_of(v, w == MOE_W_EXPERT_UP, n.interleaved);
}

/* Row i of a head from the order of halves to that of pairs. */
static struct values
paired(struct values x, size_t heads)
{
    struct values y = { x.rows, x.cols, memory(x.rows * x.cols * sizeof(float)) };
    size_t dim = x.rows / heads;

    for (size_t r = 0; r < x.rows; r++) {
        size_t i = r % dim, from = r - i + i % 2 * (dim / 2) + i / 2;

        memcpy(y.v + r * x.cols, x.v + from * x.cols, x.cols * sizeof(float));
    }
    free(x.v);
    return y;
}

/* One part of kv_b, heads [nope or v_dim][kv_lora] together; keys turned over. */
static struct values
part_of_kv_b(enum moe_weight w, size_t l, size_t heads, size_t mine)
{
    struct moe_qmat q = qmat(MOE_W_KV_B, l, -1);
    struct values all = decode(&q), x = { heads * mine, q.cols, NULL };
    size_t per = all.rows / heads, first = w == MOE_W_K_B ? 0 : per - mine;

    x.v = memory(x.rows * x.cols * sizeof(float));
    for (size_t h = 0; h < heads; h++) {
        struct values one = { mine, x.cols, memory(mine * x.cols * sizeof(float)) };

        memcpy(one.v, all.v + (h * per + first) * x.cols, mine * x.cols * sizeof(float));
        if (w == MOE_W_K_B)
            one = turned(one);
        memcpy(x.v + h * mine * x.cols, one.v, mine * x.cols * sizeof(float));
        free(one.v);
    }
    free(all.v);
    return x;
}

/* ---- Bytes ------------------------------------------------------------------------ */

static void
put_values(struct moe_buf *b, const char *type, struct values x)
{
    for (size_t i = 0; i < x.rows * x.cols; i++) {
        uint16_t h = strcmp(type, "F16") == 0 ? moe_dtype_f32_f16(x.v[i]) :
            moe_dtype_f32_bf16(x.v[i]);

        if (strcmp(type, "F32") == 0)
            moe_buf_add(b, &x.v[i], 4);
        else
            moe_buf_add(b, &h, 2);
    }
    free(x.v);
}

/* d = F16 of the largest magnitude / 127, then 32 codes. */
static void
put_q8_0(struct moe_buf *b, struct values x)
{
    for (size_t i = 0; i < x.rows * x.cols; i += 32) {
        float most = 0, d, id;
        uint16_t h;

        for (size_t k = 0; k < 32; k++) {
            float a = x.v[i + k] < 0 ? -x.v[i + k] : x.v[i + k];

            most = a > most ? a : most;
        }
        d = most / 127;
        id = d != 0 ? 1 / d : 0;
        h = moe_dtype_f32_f16(d);
        moe_buf_add(b, &h, 2);
        for (size_t k = 0; k < 32; k++) {
            float v = x.v[i + k] * id;

            moe_buf_byte(b, (char)(v < 0 ? (int)(v - 0.5f) : (int)(v + 0.5f)));
        }
    }
    free(x.v);
}

/* An expert of gpt-oss in MXFP4: every block its scale and nibbles in ggml's order. */
static void
put_mxfp4(struct moe_buf *b, enum moe_weight w, size_t l, size_t x)
{
    bool down = w == MOE_W_EXPERT_DOWN;
    struct moe_qmat q = qmat(down ? MOE_W_EXPERTS_DOWN : MOE_W_EXPERTS_GATE_UP, l, (int64_t)x);
    size_t blocks = q.cols / 32, step = down ? 1 : 2;

    for (size_t r = w == MOE_W_EXPERT_UP; r < q.rows; r += step)
        for (size_t k = r * blocks; k < (r + 1) * blocks; k++) {
            const unsigned char *p = (const unsigned char *)q.data + 16 * k;

            moe_buf_byte(b, ((const char *)q.scale)[k]);
            for (size_t i = 0; i < 16; i++) {
                int lo = p[i / 2] >> (i % 2 * 4) & 15, hi = p[8 + i / 2] >> (i % 2 * 4) & 15;

                moe_buf_byte(b, (char)(lo | hi << 4));
            }
        }
}

static void
put_typed(struct moe_buf *b, const char *type, struct values x)
{
    if (strcmp(type, "Q8_0") == 0)
        put_q8_0(b, x);
    else
        put_values(b, type, x);
}

static size_t
ne(json_t *t, size_t i)
{
    return (size_t)json_integer_value(json_array_get(json_array_get(t, 2), i));
}

static void
put_experts(struct moe_buf *b, enum moe_weight w, size_t l, json_t *t)
{
    const char *type = json_string_value(json_array_get(t, 1));

    for (size_t x = 0; x < ne(t, 2); x++) {
        if (strcmp(type, "MXFP4") == 0)
            put_mxfp4(b, w, l, x);
        else
            put_typed(b, type, expert(w, l, x));
    }
}

static void
put_biases(struct moe_buf *b, enum moe_weight w, size_t l)
{
    enum moe_weight from = w == MOE_W_EXPERT_DOWN ? MOE_W_EXPERTS_DOWN : MOE_W_EXPERTS_GATE_UP;
    char name[MOE_FAMILY_MAX_NAME];
    struct values all = numbers(moe_family_tensor(family, from, l, 0, "_bias", name));

    for (size_t x = 0; x < all.rows; x++) {
        struct values one = { w == MOE_W_EXPERT_DOWN ? 1 : all.cols, w == MOE_W_EXPERT_DOWN ?
            all.cols : 1, memory(all.cols * sizeof(float)) };

        memcpy(one.v, all.v + x * all.cols, all.cols * sizeof(float));
        put_values(b, "F32", w == MOE_W_EXPERT_DOWN ? one :
            half_of(one, w == MOE_W_EXPERT_UP, true));
    }
    free(all.v);
}

static void
put_tensor(struct moe_buf *b, enum moe_weight w, size_t l, const char *suffix, json_t *t,
    json_t *keys)
{
    const char *type = json_string_value(json_array_get(t, 1));
    char name[MOE_FAMILY_MAX_NAME], key[64];
    struct moe_qmat q;
    struct values x;

    if (w >= MOE_W_EXPERT_GATE && w <= MOE_W_EXPERT_DOWN && strcmp(suffix, ".bias") == 0) {
        put_biases(b, w, l);
    } else if (w >= MOE_W_EXPERT_GATE && w <= MOE_W_EXPERT_DOWN) {
        put_experts(b, w, l, t);
    } else if (w == MOE_W_K_B || w == MOE_W_V_B) {
        put_typed(b, type, part_of_kv_b(w, l, ne(t, 2), w == MOE_W_K_B ? ne(t, 0) : ne(t, 1)));
    } else if (json_array_size(json_array_get(t, 2)) == 1) {
        put_values(b, type, numbers(moe_family_tensor(family, w, l, 0,
            w == MOE_W_SINKS || w == MOE_W_ROUTER_BIAS ? "" : suffix, name)));
    } else {
        q = qmat(w, l, -1);
        x = decode(&q);
        if (plan.rope_pairs.value && !family->rope_pairs.value &&
            (w == MOE_W_Q || w == MOE_W_K)) {
            (void)snprintf(key, sizeof(key), "%s.attention.head_count%s",
                json_string_value(json_array_get(json_object_get(keys, "general.architecture"),
                1)), w == MOE_W_K ? "_kv" : "");
            x = paired(x, (size_t)json_integer_value(json_array_get(json_object_get(keys, key),
                1)));
        }
        put_typed(b, type, x);
    }
}

/* Which weight a tensor of the file is. */
static void
find_weight(const char *name, enum moe_weight *w, size_t *l, const char **suffix)
{
    char got[MOE_FAMILY_MAX_NAME];

    *suffix = strrchr(name, '.');
    *l = strncmp(name, "blk.", 4) == 0 ? (size_t)strtoul(name + 4, NULL, 10) : 0;
    for (int i = 0; i < MOE_W_N; i++) {
        if (plan.weights[i] == NULL)
            continue;
        *w = (enum moe_weight)i;
        moe_family_tensor(&plan, *w, *l, 0, "", got);
        if (strcmp(got, name) == 0 || (strncmp(got, name, strlen(got)) == 0 &&
            strcmp(name + strlen(got), *suffix) == 0))
            return;
    }
    need(false, name);
}

static void
put_keys(struct moe_ggufw *w, json_t *keys)
{
    const char *key;
    json_t *v;

    json_object_foreach(keys, key, v) {
        const char *kind = json_string_value(json_array_get(v, 0));
        json_t *x = json_array_get(v, 1);

        if (strncmp(key, "GGUF.", 5) == 0 || strncmp(kind, "ARRAY", 5) == 0)
            continue;
        if (strcmp(kind, "STRING") == 0)
            moe_ggufw_str(w, key, json_string_value(x), json_string_length(x));
        else if (strcmp(kind, "FLOAT32") == 0)
            moe_ggufw_real(w, key, MOE_GGUF_F32, json_number_value(x));
        else if (strcmp(kind, "BOOL") == 0)
            moe_ggufw_bool(w, key, json_is_true(x));
        else
            moe_ggufw_int(w, key, MOE_GGUF_U32, json_integer_value(x));
    }
}

/* Whether the bytes have a digest. */
static bool
is_digest(const void *p, size_t n, const char *hex)
{
    unsigned char md[EVP_MAX_MD_SIZE];
    char text[2 * EVP_MAX_MD_SIZE + 1];
    unsigned len = 0;

    need(EVP_Digest(p, n, md, &len, EVP_sha256(), NULL) == 1, "digest");
    for (unsigned i = 0; i < len; i++)
        (void)snprintf(text + (size_t)2 * i, 3, "%02x", md[i]);
    return strcmp(text, hex) == 0;
}

static uint32_t
type_of(const char *name)
{
    for (uint32_t t = 0; t < 64; t++)
        if (moe_ggml_name(t) != NULL && strcmp(moe_ggml_name(t), name) == 0)
            return t;
    need(false, name);
    return 0;
}

static void
put_header(struct moe_ggufw *w, json_t *tensors, struct moe_buf *head)
{
    size_t i;
    json_t *t;

    json_array_foreach(tensors, i, t) {
        uint64_t dims[4] = { 1, 1, 1, 1 };
        int n = (int)json_array_size(json_array_get(t, 2));

        for (int d = 0; d < n; d++)
            dims[d] = ne(t, (size_t)d);
        moe_ggufw_tensor(w, json_string_value(json_array_get(t, 0)),
            type_of(json_string_value(json_array_get(t, 1))), n, dims);
    }
    need(moe_ggufw_emit(w, head, &err) == 0, "header");
}

int
main(int argc, char **argv)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_ggufw *w = moe_ggufw_new();
    json_t *spec = argc == 4 ? json_load_file(argv[1], 0, NULL) : NULL, *t;
    json_t *keys = json_object_get(spec, "keys"), *tensors = json_object_get(spec, "tensors");
    const struct moe_config *c;
    size_t i, data;
    FILE *f;

    need(spec != NULL && w != NULL, "usage: gguf_model SPEC DIR OUT");
    need(moe_source_open(argv[2], &src, &err) == 0, argv[2]);
    c = moe_source_config(src);
    need(moe_qscheme_new(c->quant, c->name, &scheme, &err) == 0, "scheme");
    family = moe_family_find(c->family);
    plan = moe_ggufplan_of(family);
    put_keys(w, keys);
    put_header(w, tensors, &b);
    data = b.len;
    json_array_foreach(tensors, i, t) {
        const char *name = json_string_value(json_array_get(t, 0)), *suffix;
        enum moe_weight weight = MOE_W_EMBED;
        size_t l, at = data + (size_t)moe_ggufw_offset(w, i);

        while (b.len < at)
            moe_buf_byte(&b, 0);
        find_weight(name, &weight, &l, &suffix);
        put_tensor(&b, weight, l, suffix, t, keys);
        need(is_digest(b.p + at, b.len - at, json_string_value(json_array_get(t, 5))), name);
    }
    while (b.len < data + (size_t)moe_ggufw_data(w))
        moe_buf_byte(&b, 0);
    f = fopen(argv[3], "wb");
    need(f != NULL && fwrite(b.p, 1, b.len, f) == b.len && fclose(f) == 0, argv[3]);
    moe_qscheme_free(scheme);
    moe_source_close(src);
    moe_ggufw_free(w);
    moe_buf_fini(&b);
    json_decref(spec);
    return 0;
}
