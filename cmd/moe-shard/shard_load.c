/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of counts. What is made of them is the planner's.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_load.h"
#include "common/base/json.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/formats/naming.h"
#include "common/formats/source.h"

/* One count as it comes. */
struct cell { uint32_t layer, expert; double count; };

struct reader {
    const char *path;
    struct cell *cells;
    size_t n, cap;
    size_t line;
    struct moe_err *e;
};

static int
bad(struct reader *r, const char *what)
{
    return moe_err_set(r->e, MOE_EFORMAT, "%s:%zu: %s", r->path, r->line, what);
}

static int
push(struct reader *r, uint64_t layer, uint64_t expert, double count)
{
    if (layer >= SHARD_LOAD_MAX_LAYERS || expert >= SHARD_LOAD_MAX_EXPERTS)
        return bad(r, "a layer or an expert past the limits");
    if (!(count >= 0 && isfinite(count)))
        return bad(r, "a count that is negative or no number");
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 4096 : 2 * r->cap;
        struct cell *p = realloc(r->cells, cap * sizeof(*p));

        if (p == NULL)
            return moe_err_set(r->e, MOE_ENOMEM, "%s: out of memory", r->path);
        r->cells = p;
        r->cap = cap;
    }
    r->cells[r->n++] = (struct cell){ (uint32_t)layer, (uint32_t)expert, count };
    return 0;
}

/* ---- Lines ---------------------------------------------------------------------------- */

/* The next field of a line, ended by a NUL; NULL: there is none. */
static char *
field(char **at)
{
    char *p = *at, *tab;

    if (p == NULL)
        return NULL;
    tab = strchr(p, '\t');
    *at = tab == NULL ? NULL : tab + 1;
    if (tab != NULL)
        *tab = '\0';
    return p;
}

static bool
whole(const char *s, int64_t hi, uint64_t *out)
{
    int64_t v;

    if (s == NULL || moe_num_int(s, 0, hi, "", &v, NULL) != 0)
        return false;
    *out = (uint64_t)v;
    return true;
}

static int
count_line(struct reader *r, char *line)
{
    char *at = line, *layer = field(&at), *expert = field(&at), *count = field(&at);
    uint64_t l, x;
    double v;

    if (at != NULL || count == NULL || !whole(layer, INT32_MAX, &l) ||
        !whole(expert, INT32_MAX, &x))
        return bad(r, "not layer, expert and count with tabs between");
    if (moe_num_real(count, -1e300, 1e300, "", &v, NULL) != 0)
        return bad(r, "the count is no number");
    return push(r, l, x, v);
}

static int
trace_line(struct reader *r, char *line)
{
    char *at = line, *layer = field(&at), *token = field(&at), *list = field(&at);
    uint64_t l, t, x;
    int rc = 0;

    if (at != NULL || list == NULL || !whole(layer, INT32_MAX, &l) || !whole(token, INT64_MAX, &t))
        return bad(r, "not layer, token and experts with tabs between");
    while (rc == 0 && list != NULL) {
        char *comma = strchr(list, ',');

        if (comma != NULL)
            *comma = '\0';
        if (!whole(list, INT32_MAX, &x))
            return bad(r, "experts are not numbers with commas between");
        rc = push(r, l, x, 1);
        list = comma == NULL ? NULL : comma + 1;
    }
    return rc;
}

static int
read_lines(struct reader *r, struct moe_buf *b, bool *trace)
{
    char *p = b->p, *end;
    int rc = 0;

    if (strlen(b->p) != b->len)
        return moe_err_set(r->e, MOE_EFORMAT, "%s: a NUL in a text", r->path);
    *trace = false;
    for (; rc == 0 && *p != '\0'; p = end) {
        end = strchr(p, '\n');
        if (end == NULL)
            end = p + strlen(p);
        else
            *end++ = '\0';
        r->line++;
        if (p[0] != '\0' && p[strlen(p) - 1] == '\r')
            p[strlen(p) - 1] = '\0';
        if (r->line == 1 && strcmp(p, "layer\texpert\tcount") == 0)
            continue;
        if (r->line == 1 && strcmp(p, "layer\ttoken\texperts") == 0)
            *trace = true;
        else
            rc = *trace ? trace_line(r, p) : count_line(r, p);
    }
    return rc;
}

/* ---- JSON ------------------------------------------------------------------------------ */

/* A list of layers, each a list of counts; or a list of those, one a step. */
static int
json_layers(struct reader *r, const json_t *list, bool steps)
{
    size_t n = json_array_size(list);
    int rc = 0;

    for (size_t l = 0; rc == 0 && l < n; l++) {
        const json_t *row = json_array_get(list, l);

        if (!json_is_array(row))
            return moe_err_set(r->e, MOE_EFORMAT, "%s: entry %zu is no list", r->path, l);
        if (steps && json_is_array(json_array_get(row, 0))) {
            rc = json_layers(r, row, false);
            continue;
        }
        for (size_t x = 0; rc == 0 && x < json_array_size(row); x++) {
            const json_t *v = json_array_get(row, x);

            if (!json_is_number(v))
                return moe_err_set(r->e, MOE_EFORMAT, "%s: layer %zu, expert %zu: no number",
                    r->path, l, x);
            rc = push(r, l, x, json_number_value(v));
        }
        if (l > 0 && json_array_size(row) != json_array_size(json_array_get(list, 0)))
            return moe_err_set(r->e, MOE_EFORMAT, "%s: layer %zu has %zu experts, not %zu", r->path,
                l, json_array_size(row), json_array_size(json_array_get(list, 0)));
    }
    return rc;
}

static int
read_json(struct reader *r, const struct moe_buf *b)
{
    static const char *const keys[] = { "logical_count", "load", "counts", NULL };
    const json_t *list;
    json_t *tree;
    int rc = moe_json_parse(b->p, b->len, r->path, &tree, r->e);

    if (rc != 0)
        return rc;
    list = tree;
    for (size_t k = 0; json_is_object(tree) && !json_is_array(list) && keys[k] != NULL; k++)
        list = json_object_get(tree, keys[k]);
    if (!json_is_array(list))
        rc = moe_err_set(r->e, MOE_EFORMAT, "%s: neither a list nor an object with logical_count,"
            " load or counts", r->path);
    else
        rc = json_layers(r, list, true);
    json_decref(tree);
    return rc;
}

/* ---- Importance matrices ------------------------------------------------------------------ */

static int
read_gguf(struct reader *r)
{
    static const char end[] = ".counts";
    struct moe_source *s;
    uint32_t last = UINT32_MAX;
    int rc = moe_source_open(r->path, &s, r->e);

    for (size_t i = 0; rc == 0 && i < moe_source_n(s); i++) {
        const struct moe_tensor *t = moe_source_at(s, i);
        size_t n = t->name_len > strlen(end) ? t->name_len - strlen(end) : 0;
        uint64_t experts = t->rank > 0 ? t->shape[t->rank - 1] : 0;
        char name[256];
        struct moe_naming x;
        float v;

        if (n == 0 || n >= sizeof(name) || strcmp(t->name + n, end) != 0 || t->dtype != MOE_F32)
            continue;
        memcpy(name, t->name, n);
        name[n] = '\0';
        /* gate, up and down have the same counts: the first of a layer is enough. */
        if (!moe_naming_parse(NULL, 0, name, &x) || x.role != MOE_ROLE_EXPERT || !x.stacked ||
            (uint32_t)x.layer == last)
            continue;
        if (t->rank > 1 && t->shape[0] > 1)
            experts = t->shape[0];
        for (uint64_t k = 0; rc == 0 && k < experts && 4 * (k + 1) <= t->end - t->begin; k++) {
            if ((rc = moe_source_read(s, i, 4 * k, &v, 4, r->e)) == 0)
                rc = push(r, (uint64_t)x.layer, k, (double)v);
        }
        last = (uint32_t)x.layer;
    }
    moe_source_close(s);
    if (rc == 0 && r->n == 0)
        rc = moe_err_set(r->e, MOE_EFORMAT, "%s: no counts of experts", r->path);
    return rc;
}

/* ---- The matrix ------------------------------------------------------------------------------ */

static int
by_place(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

/* add: a place may come several times. */
static int
matrix(struct reader *r, bool add_up, struct shard_load *out)
{
    size_t layers = 0, experts = 0;

    if (r->n == 0)
        return moe_err_set(r->e, MOE_EFORMAT, "%s: no counts", r->path);
    qsort(r->cells, r->n, sizeof(*r->cells), by_place);
    for (size_t i = 0; i < r->n; i++) {
        layers += i == 0 || r->cells[i].layer != r->cells[i - 1].layer;
        experts = r->cells[i].expert >= experts ? r->cells[i].expert + 1 : experts;
        if (!add_up && i > 0 && by_place(&r->cells[i - 1], &r->cells[i]) == 0)
            return moe_err_set(r->e, MOE_EFORMAT, "%s: layer %" PRIu32 ", expert %" PRIu32
                ": twice", r->path, r->cells[i].layer, r->cells[i].expert);
    }
    if (layers > SHARD_LOAD_MAX_CELLS / experts)
        return moe_err_set(r->e, MOE_ELIMIT, "%s: %zu layers of %zu experts", r->path, layers,
            experts);
    out->layers = layers;
    out->experts = experts;
    out->id = calloc(layers, sizeof(*out->id));
    out->count = calloc(layers * experts, sizeof(*out->count));
    if (out->id == NULL || out->count == NULL)
        return moe_err_set(r->e, MOE_ENOMEM, "%s: out of memory", r->path);
    for (size_t i = 0, l = 0; i < r->n; i++) {
        l += i > 0 && r->cells[i].layer != r->cells[i - 1].layer;
        out->id[l] = r->cells[i].layer;
        out->count[l * experts + r->cells[i].expert] += r->cells[i].count;
    }
    return 0;
}

int
shard_load_read(const char *path, struct shard_load *out, struct moe_err *e)
{
    struct reader r = { .path = strcmp(path, "-") == 0 ? "stdin" : path, .e = e };
    struct moe_buf b = MOE_BUF_INIT;
    bool add_up = false;
    size_t first;
    int rc;

    *out = (struct shard_load){ .layers = 0 };
    if ((rc = moe_read_file(path, SHARD_LOAD_MAX_BYTES, &b, e)) != 0)
        goto out;
    first = b.len == 0 ? 0 : strspn(b.p, " \t\r\n");
    if (b.len >= 4 && memcmp(b.p, "GGUF", 4) == 0)
        rc = read_gguf(&r);
    else if (b.len > first && (b.p[first] == '[' || b.p[first] == '{')) {
        add_up = true;
        rc = read_json(&r, &b);
    } else if (b.len == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: empty", r.path);
    else
        rc = read_lines(&r, &b, &add_up);
    if (rc == 0)
        rc = matrix(&r, add_up, out);
out:
    moe_buf_fini(&b);
    free(r.cells);
    if (rc != 0)
        shard_load_fini(out);
    return rc;
}

void
shard_load_fini(struct shard_load *l)
{
    free(l->id);
    free(l->count);
    *l = (struct shard_load){ .layers = 0 };
}

void
shard_load_add(const struct shard_load *l, size_t i, double scale, double *out)
{
    double sum = 0;

    for (size_t x = 0; x < l->experts; x++)
        sum += l->count[i * l->experts + x];
    for (size_t x = 0; sum > 0 && x < l->experts; x++)
        out[x] += l->count[i * l->experts + x] / sum * scale;
}
