/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns moe-cut.json and the folder source/ beside it: writing and reading back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/moe-shard/shard_set.h"
#include "common/base/beneath.h"
#include "common/base/json.h"
#include "common/base/jsonw.h"
#include "common/base/num.h"
#include "common/base/read.h"

#define VERSION 1
#define MAX_NAME 512        /* of a file */

static const char *const deals[] = { "linear", "round-robin", "map" };
static const char *const spreads[] = { "no", "chunk", "balanced" };
static const char *const layouts[] = { "dirs", "files" };

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

void
shard_set_fini(struct shard_set *s)
{
    for (size_t f = 0; f < s->n_files; f++) {
        free(s->files[f].head);
        moe_safet_free(s->files[f].safet);
    }
    if (s->config.tree != NULL)
        moe_config_free(&s->config);
    moe_grid_fini(&s->grid);
    free(s->files);
    free(s->aux);
    free(s->t);
    free(s->file_of);
    free(s->sums);
    free(s->unordered);
    moe_arena_fini(&s->arena);
    *s = (struct shard_set){ .n = 0 };
}

/* ---- Writing -------------------------------------------------------------------- */

static void
put_str(struct moe_jsonw *w, const char *key, const char *s)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, s, strlen(s));
}

static void
put_uint(struct moe_jsonw *w, const char *key, uint64_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

/* Who holds which expert: a list of groups for each expert of each layer. */
static void
put_owner(struct moe_jsonw *w, const struct moe_grid *g)
{
    moe_jsonw_key(w, "owner");
    moe_jsonw_open(w, '[');
    for (uint64_t l = 0; l < g->layers; l++) {
        moe_jsonw_open(w, '[');
        for (uint64_t x = 0; x < g->experts; x++) {
            moe_jsonw_open(w, '[');
            for (uint32_t k = 0; k < g->ep; k++) {
                if (moe_grid_holds(g, l, x, k))
                    moe_jsonw_uint(w, k);
            }
            moe_jsonw_close(w, ']');
        }
        moe_jsonw_close(w, ']');
    }
    moe_jsonw_close(w, ']');
}

static void
put_tensors(struct moe_jsonw *w, const struct shard_set *s)
{
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_key(w, "unordered");
    moe_jsonw_open(w, '[');
    for (size_t i = 0; i < s->n; i++) {
        if (s->unordered[i])
            moe_jsonw_str(w, s->t[i]->name, strlen(s->t[i]->name));
    }
    moe_jsonw_close(w, ']');
    moe_jsonw_key(w, "sha256");
    moe_jsonw_open(w, '{');
    for (size_t i = 0; i < s->n; i++)
        put_str(w, s->t[i]->name, moe_digest_hex(s->sums[i], hex));
    moe_jsonw_close(w, '}');
}

static void
record(const struct shard_set *s, struct moe_buf *b)
{
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    put_uint(&w, "moe_cut", VERSION);
    put_uint(&w, "tp", s->grid.tp);
    put_uint(&w, "ep", s->grid.ep);
    put_uint(&w, "pp", s->grid.pp);
    put_uint(&w, "layers", s->grid.layers);
    put_uint(&w, "experts", s->grid.experts);
    put_str(&w, "deal", deals[s->grid.deal]);
    if (s->grid.deal == MOE_GRID_MAP)
        put_owner(&w, &s->grid);
    put_str(&w, "uneven", spreads[s->spread]);
    put_str(&w, "layout", layouts[s->layout]);
    moe_jsonw_key(&w, "directory");
    moe_jsonw_bool(&w, s->directory);
    moe_jsonw_key(&w, "index");
    moe_jsonw_bool(&w, s->index);
    moe_jsonw_key(&w, "files");
    moe_jsonw_open(&w, '[');
    for (size_t f = 0; f < s->n_files; f++) {
        moe_jsonw_open(&w, '{');
        put_str(&w, "name", s->files[f].name);
        put_uint(&w, "data", s->files[f].data);
        moe_jsonw_close(&w, '}');
    }
    moe_jsonw_close(&w, ']');
    moe_jsonw_key(&w, "beside");
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; i < s->n_aux; i++)
        moe_jsonw_str(&w, s->aux[i], strlen(s->aux[i]));
    moe_jsonw_close(&w, ']');
    put_tensors(&w, s);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

int
shard_set_write(const struct shard_set *s, struct moe_outdir *d, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    for (size_t f = 0; f < s->n_files && rc == 0; f++) {
        char name[MAX_NAME];
        int n = snprintf(name, sizeof(name), "source/%s.head", s->files[f].name);

        if (n < 0 || n >= (int)sizeof(name))
            rc = moe_err_set(e, MOE_ELIMIT, "%s: the name is too long", s->files[f].name);
        else
            rc = moe_outdir_put(d, name, s->files[f].head, s->files[f].head_len, e);
    }
    if (rc == 0) {
        record(s, &b);
        rc = b.bad ? no_memory(e) : moe_outdir_put(d, SHARD_SET_FILE, b.p, b.len, e);
    }
    moe_buf_fini(&b);
    return rc;
}

/* ---- Reading --------------------------------------------------------------------- */

/* One reading: the tree, and where things are for messages. */
struct reader {
    struct moe_json_at at;
    int dirfd;
    const char *path;
    struct shard_set *s;
    struct moe_err *e;
};

static int
get_u32(struct reader *r, const char *key, uint32_t *out)
{
    int64_t v;
    int rc = moe_json_int(r->at, key, true, 0, 1, MOE_GRID_MAX, &v, r->e);

    *out = (uint32_t)v;
    return rc;
}

/* A word of a list: its place. */
static int
get_word(struct reader *r, const char *key, const char *const *words, size_t n, size_t *out)
{
    const char *s;
    int rc = moe_json_str(r->at, key, true, NULL, &s, r->e);

    for (*out = 0; rc == 0 && *out < n; ++*out)
        if (strcmp(s, words[*out]) == 0)
            return 0;
    return rc != 0 ? rc : moe_err_set(r->e, MOE_EFORMAT, "%s: %s: '%s' is not known", r->at.name,
        key, s);
}

static int
bad(struct reader *r, const char *what)
{
    return moe_err_set(r->e, MOE_EFORMAT, "%s: %s", r->at.name, what);
}

static int
get_owner(struct reader *r)
{
    struct moe_grid *g = &r->s->grid;
    const json_t *layers, *one, *who;
    uint64_t n;
    size_t l, x, k;
    int rc = moe_json_arr(r->at, "owner", true, &layers, r->e);

    if (rc != 0)
        return rc;
    if (!moe_num_mul(g->layers, g->experts, &n) || !moe_num_mul(n, g->ep, &n) ||
        json_array_size(layers) != g->layers || n > MOE_JSON_MAX_BYTES)
        return bad(r, "owner: not a list for each layer");
    if ((g->owner = calloc((size_t)n + 1, 1)) == NULL)
        return no_memory(r->e);
    json_array_foreach((json_t *)(uintptr_t)layers, l, one) {
        if (json_array_size(one) != g->experts)
            return bad(r, "owner: not a list for each expert");
        json_array_foreach((json_t *)(uintptr_t)one, x, who) {
            for (k = 0; k < json_array_size(who); k++) {
                json_int_t v = json_integer_value(json_array_get(who, k));

                if (!json_is_integer(json_array_get(who, k)) || v < 0 || v >= g->ep)
                    return bad(r, "owner: not a group of the grid");
                g->owner[(l * g->experts + x) * g->ep + (size_t)v] = 1;
            }
            if (k == 0)
                return bad(r, "owner: an expert that no group holds");
        }
    }
    return 0;
}

static int
get_grid(struct reader *r)
{
    struct shard_set *s = r->s;
    int64_t v;
    size_t word;
    int rc;

    if ((rc = moe_json_int(r->at, "moe_cut", true, 0, 0, INT64_MAX, &v, r->e)) != 0)
        return rc;
    if (v != VERSION)
        return moe_err_set(r->e, MOE_EUNSUP, "%s: version %" PRId64 ", not %d", r->at.name, v,
            VERSION);
    if ((rc = get_u32(r, "tp", &s->grid.tp)) != 0 || (rc = get_u32(r, "ep", &s->grid.ep)) != 0 ||
        (rc = get_u32(r, "pp", &s->grid.pp)) != 0)
        return rc;
    if ((rc = moe_json_int(r->at, "layers", true, 0, 0, 1 << 20, &v, r->e)) != 0)
        return rc;
    s->grid.layers = (uint64_t)v;
    if ((rc = moe_json_int(r->at, "experts", true, 0, 0, 1 << 20, &v, r->e)) != 0)
        return rc;
    s->grid.experts = (uint64_t)v;
    if ((rc = get_word(r, "deal", deals, 3, &word)) != 0)
        return rc;
    s->grid.deal = (enum moe_grid_deal)word;
    if (moe_grid_check(&s->grid, r->e) != 0)
        return moe_err_at(r->e, "%s", r->at.name);
    if (s->grid.deal == MOE_GRID_MAP && (rc = get_owner(r)) != 0)
        return rc;
    if ((rc = get_word(r, "uneven", spreads, 3, &word)) != 0)
        return rc;
    s->spread = (enum moe_cut_spread)word;
    if ((rc = get_word(r, "layout", layouts, 2, &word)) != 0)
        return rc;
    s->layout = (enum shard_ranks_layout)word;
    if ((rc = moe_json_bool(r->at, "directory", true, false, &s->directory, r->e)) != 0)
        return rc;
    return moe_json_bool(r->at, "index", true, false, &s->index, r->e);
}

/* A name that a file made in one directory may have. */
static bool
is_name(const char *s)
{
    return *s != '\0' && *s != '.' && strchr(s, '/') == NULL && strlen(s) < MAX_NAME - 16;
}

static int
get_head(struct reader *r, struct shard_set_file *f)
{
    struct moe_buf b = MOE_BUF_INIT;
    char name[MAX_NAME];
    size_t n;
    int fd, rc;

    (void)snprintf(name, sizeof(name), "source/%s.head", f->name);
    if ((fd = moe_beneath_open(r->dirfd, r->path, name, r->e)) < 0)
        return fd;
    rc = moe_read_fd(fd, name, MOE_SAFET_MAX_HEADER + 8, &b, r->e);
    (void)close(fd);
    if (rc == 0 && b.len < 8)
        rc = moe_err_set(r->e, MOE_EFORMAT, "%s: ends before the length of a header", name);
    if (rc == 0 && (rc = moe_safet_length((unsigned char *)b.p, name, &n, r->e)) == 0)
        rc = n + 8 != b.len ? moe_err_set(r->e, MOE_EFORMAT, "%s: not the header it says", name) :
            moe_safet_parse(b.p + 8, n, f->data, name, &f->safet, r->e);
    if (rc != 0) {
        moe_buf_fini(&b);
        return moe_err_at(r->e, "%s", r->path);
    }
    f->head_len = b.len;
    f->head = moe_buf_take(&b);
    return f->head == NULL ? no_memory(r->e) : 0;
}

static int
get_files(struct reader *r)
{
    struct shard_set *s = r->s;
    const json_t *files, *beside;
    int rc;

    if ((rc = moe_json_arr(r->at, "files", true, &files, r->e)) != 0 ||
        (rc = moe_json_arr(r->at, "beside", true, &beside, r->e)) != 0)
        return rc;
    s->files = calloc(json_array_size(files) + 1, sizeof(*s->files));
    s->aux = calloc(json_array_size(beside) + 1, sizeof(*s->aux));
    if (s->files == NULL || s->aux == NULL)
        return no_memory(r->e);
    for (size_t i = 0; i < json_array_size(files); i++) {
        struct moe_json_at at = { json_array_get(files, i), r->at.name };
        struct shard_set_file *f = &s->files[i];
        const char *name;
        int64_t data;

        if ((rc = moe_json_str(at, "name", true, NULL, &name, r->e)) != 0 ||
            (rc = moe_json_int(at, "data", true, 0, 0, INT64_MAX, &data, r->e)) != 0)
            return rc;
        if (!is_name(name))
            return bad(r, "files: not a name for a file");
        f->data = (uint64_t)data;
        if ((f->name = moe_arena_text(&s->arena, name, strlen(name))) == NULL)
            return no_memory(r->e);
        s->n_files++;
        if ((rc = get_head(r, f)) != 0)
            return rc;
    }
    for (size_t i = 0; i < json_array_size(beside); i++) {
        const char *name = json_string_value(json_array_get(beside, i));

        if (name == NULL || !is_name(name))
            return bad(r, "beside: not a name for a file");
        if ((s->aux[s->n_aux++] = moe_arena_text(&s->arena, name, strlen(name))) == NULL)
            return no_memory(r->e);
    }
    return s->n_files > 0 ? 0 : bad(r, "files: there is none");
}

static int
get_tensors(struct reader *r)
{
    struct shard_set *s = r->s;
    const json_t *sums, *unordered;
    int rc;

    for (size_t f = 0; f < s->n_files; f++)
        s->n += moe_safet_n(s->files[f].safet);
    s->t = calloc(s->n + 1, sizeof(*s->t));
    s->file_of = calloc(s->n + 1, sizeof(*s->file_of));
    s->sums = calloc(s->n + 1, sizeof(*s->sums));
    s->unordered = calloc(s->n + 1, sizeof(*s->unordered));
    if (s->t == NULL || s->file_of == NULL || s->sums == NULL || s->unordered == NULL)
        return no_memory(r->e);
    if ((rc = moe_json_obj(r->at, "sha256", true, &sums, r->e)) != 0 ||
        (rc = moe_json_arr(r->at, "unordered", true, &unordered, r->e)) != 0)
        return rc;
    if (json_object_size(sums) != s->n)
        return bad(r, "sha256: not one for each tensor");
    for (size_t f = 0, i = 0; f < s->n_files; f++) {
        const struct moe_safet *h = s->files[f].safet;

        for (size_t k = 0; k < moe_safet_n(h); k++, i++) {
            const char *hex;

            s->t[i] = moe_safet_at(h, moe_safet_by_offset(h, k));
            s->file_of[i] = f;
            hex = json_string_value(json_object_get(sums, s->t[i]->name));
            if (hex == NULL || !moe_digest_unhex(hex, strlen(hex), s->sums[i]))
                return moe_err_set(r->e, MOE_EFORMAT, "%s: sha256: none of %s", r->at.name,
                    s->t[i]->name);
        }
    }
    for (size_t k = 0; k < json_array_size(unordered); k++) {
        const char *name = json_string_value(json_array_get(unordered, k));
        size_t i = 0;

        while (i < s->n && (name == NULL || s->t[i] == NULL || strcmp(s->t[i]->name, name) != 0))
            i++;
        if (i == s->n)
            return bad(r, "unordered: not a tensor");
        s->unordered[i] = true;
    }
    return 0;
}

static int
get_config(struct reader *r)
{
    struct moe_buf b = MOE_BUF_INIT;
    int fd, rc;

    for (size_t i = 0; i < r->s->n_aux; i++) {
        if (r->s->aux[i] == NULL || strcmp(r->s->aux[i], "config.json") != 0)
            continue;
        if ((fd = moe_beneath_open(r->dirfd, r->path, "config.json", r->e)) < 0)
            return fd;
        rc = moe_read_fd(fd, "config.json", MOE_CONFIG_MAX_BYTES, &b, r->e);
        (void)close(fd);
        if (rc == 0)
            rc = moe_config_parse(b.p, b.len, "config.json", &r->s->config, r->e);
        moe_buf_fini(&b);
        return rc != 0 ? moe_err_at(r->e, "%s", r->path) : 0;
    }
    return 0;
}

int
shard_set_read(int dirfd, const char *path, struct shard_set *s, struct moe_err *e)
{
    static const char *const keys[] = { "moe_cut", "tp", "ep", "pp", "layers", "experts", "deal",
        "owner", "uneven", "layout", "directory", "index", "files", "beside", "unordered",
        "sha256", NULL };
    struct reader r = { { NULL, SHARD_SET_FILE }, dirfd, path, s, e };
    struct moe_buf b = MOE_BUF_INIT;
    json_t *tree = NULL;
    int fd, rc;

    *s = (struct shard_set){ .n = 0 };
    if ((fd = moe_beneath_open(dirfd, path, SHARD_SET_FILE, e)) < 0)
        return fd;
    rc = moe_read_fd(fd, SHARD_SET_FILE, MOE_JSON_MAX_BYTES, &b, e);
    (void)close(fd);
    if (rc != 0 || (rc = moe_json_parse(b.p, b.len, SHARD_SET_FILE, &tree, e)) != 0)
        goto out;
    r.at.o = tree;
    if (!json_is_object(tree))
        rc = bad(&r, "not an object");
    else if ((rc = moe_json_only(r.at, keys, e)) == 0 && (rc = get_grid(&r)) == 0 &&
        (rc = get_files(&r)) == 0 && (rc = get_tensors(&r)) == 0)
        rc = get_config(&r);
out:
    json_decref(tree);
    moe_buf_fini(&b);
    if (rc != 0) {
        moe_err_at(e, "%s", path);
        shard_set_fini(s);
    }
    return rc;
}
