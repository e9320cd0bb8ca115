/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the index of a sharded model. Opens no files.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/scan.h"
#include "common/formats/shards.h"

struct entry {
    const char *tensor, *file;
    size_t tensor_len;
};

struct moe_shards {
    char *name;                 /* of the index, for messages */
    struct entry *entries;      /* by file, then tensor */
    size_t n, cap;
    size_t *first;              /* [files + 1]: entries of each file */
    size_t files;
    struct moe_arena arena;
};

static int
no_memory(const char *name, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
}

bool
moe_shards_name_ok(const char *s, size_t n)
{
    static const char ext[] = ".safetensors";
    size_t k = sizeof(ext) - 1;

    if (n <= k || memcmp(s + n - k, ext, k) != 0 || memchr(s, '\0', n) != NULL)
        return false;
    for (size_t at = 0; at <= n;) {
        const char *slash = memchr(s + at, '/', n - at);
        size_t len = slash != NULL ? (size_t)(slash - s) - at : n - at;

        if (len == 0 || (len == 1 && s[at] == '.') ||
            (len == 2 && s[at] == '.' && s[at + 1] == '.'))
            return false;
        at += len + 1;
    }
    return true;
}

static int
add(struct moe_shards *s, struct moe_scan *j, struct moe_err *e)
{
    struct entry *t;
    int rc;

    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 256 : s->cap * 2;

        if ((t = realloc(s->entries, cap * sizeof(*t))) == NULL)
            return no_memory(s->name, e);
        s->entries = t;
        s->cap = cap;
    }
    t = &s->entries[s->n];
    t->tensor_len = j->text.len;
    if ((t->tensor = moe_arena_text(&s->arena, j->text.p, j->text.len)) == NULL)
        return no_memory(s->name, e);
    if ((rc = moe_scan_str(j, e)) != 0)
        return rc;
    if (!moe_shards_name_ok(j->text.p, j->text.len))
        return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s: '%s' is no .safetensors file beneath"
            " the directory", s->name, t->tensor, j->text.p);
    /* Most entries name the file of the one before. */
    if (s->n > 0 && strcmp(s->entries[s->n - 1].file, j->text.p) == 0)
        t->file = s->entries[s->n - 1].file;
    else if ((t->file = moe_arena_text(&s->arena, j->text.p, j->text.len)) == NULL)
        return no_memory(s->name, e);
    s->n++;
    return 0;
}

static int
parse_map(struct moe_shards *s, struct moe_scan *j, struct moe_err *e)
{
    bool more;
    int rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e);

    while (rc == 0 && (rc = moe_scan_next(j, &more, e)) == 0 && more)
        rc = add(s, j, e);
    return rc;
}

static bool
text_is(const struct moe_scan *j, const char *want)
{
    return j->text.len == strlen(want) && memcmp(j->text.p, want, j->text.len) == 0;
}

static int
parse_meta(struct moe_scan *j, struct moe_err *e)
{
    bool more;
    int rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e);

    while (rc == 0 && (rc = moe_scan_next(j, &more, e)) == 0 && more) {
        double size;

        if (!text_is(j, "total_size"))
            rc = moe_scan_skip(j, e);
        else if ((rc = moe_scan_real(j, &size, e)) == 0 && size < 0)
            rc = moe_scan_fail(j, e, "total_size is negative");
    }
    return rc;
}

static int
parse_index(struct moe_shards *s, struct moe_scan *j, struct moe_err *e)
{
    bool more, map = false, meta = false;
    int rc = moe_scan_enter(j, MOE_SCAN_OBJECT, e);

    while (rc == 0 && (rc = moe_scan_next(j, &more, e)) == 0 && more) {
        if (text_is(j, "weight_map")) {
            rc = map ? moe_scan_fail(j, e, "weight_map twice") : parse_map(s, j, e);
            map = true;
        } else if (text_is(j, "metadata")) {
            rc = meta ? moe_scan_fail(j, e, "metadata twice") : parse_meta(j, e);
            meta = true;
        } else {
            rc = moe_scan_skip(j, e);
        }
    }
    if (rc == 0)
        rc = moe_scan_end(j, e);
    if (rc == 0 && s->n == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %s", s->name,
            map ? "weight_map is empty" : "no weight_map");
    return rc;
}

static int
compare_text(const char *a, size_t na, const char *b, size_t nb)
{
    int c = memcmp(a, b, na < nb ? na : nb);

    return c != 0 ? c : (na > nb) - (na < nb);
}

static int
by_tensor(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    return compare_text(a->tensor, a->tensor_len, b->tensor, b->tensor_len);
}

static int
by_file(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    int c = a->file == b->file ? 0 : strcmp(a->file, b->file);

    return c != 0 ? c : by_tensor(pa, pb);
}

/* Sort, refuse what is there twice, and find where each file begins. */
static int
sort(struct moe_shards *s, struct moe_err *e)
{
    qsort(s->entries, s->n, sizeof(*s->entries), by_tensor);
    for (size_t i = 1; i < s->n; i++) {
        if (by_tensor(&s->entries[i - 1], &s->entries[i]) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s twice in the weight_map", s->name,
                s->entries[i].tensor);
    }
    qsort(s->entries, s->n, sizeof(*s->entries), by_file);
    for (size_t i = 0; i < s->n; i++)
        s->files += i == 0 || strcmp(s->entries[i - 1].file, s->entries[i].file) != 0;
    if (s->files > MOE_SHARDS_MAX_FILES)
        return moe_err_set(e, MOE_ELIMIT, "%s: %zu files, over %d", s->name, s->files,
            MOE_SHARDS_MAX_FILES);
    if ((s->first = malloc((s->files + 1) * sizeof(*s->first))) == NULL)
        return no_memory(s->name, e);
    s->files = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (i == 0 || strcmp(s->entries[i - 1].file, s->entries[i].file) != 0)
            s->first[s->files++] = i;
    }
    s->first[s->files] = s->n;
    return 0;
}

int
moe_shards_parse(const char *json, size_t n, const char *name, struct moe_shards **out,
    struct moe_err *e)
{
    struct moe_shards *s;
    struct moe_scan j;
    int rc;

    *out = NULL;
    if (n > MOE_SHARDS_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: %zu bytes, over %zu", name, n,
            MOE_SHARDS_MAX_BYTES);
    if ((s = calloc(1, sizeof(*s))) == NULL ||
        (s->name = moe_arena_text(&s->arena, name, strlen(name))) == NULL) {
        moe_shards_free(s);
        return no_memory(name, e);
    }
    moe_scan_init(&j, json, n, s->name);
    if ((rc = parse_index(s, &j, e)) == 0)
        rc = sort(s, e);
    moe_scan_fini(&j);
    if (rc != 0) {
        moe_shards_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void
moe_shards_free(struct moe_shards *s)
{
    if (s == NULL)
        return;
    moe_arena_fini(&s->arena);
    free(s->entries);
    free(s->first);
    free(s);
}

size_t
moe_shards_files(const struct moe_shards *s)
{
    return s->files;
}

const char *
moe_shards_file(const struct moe_shards *s, size_t f)
{
    return s->entries[s->first[f]].file;
}

int
moe_shards_check(const struct moe_shards *s, size_t f, const struct moe_safet *h,
    struct moe_err *e)
{
    const struct entry *t = &s->entries[s->first[f]];
    size_t n = s->first[f + 1] - s->first[f], i = 0, k = 0;

    /* Both lists ascend, so one walk finds what only one of them has. */
    while (i < n || k < moe_safet_n(h)) {
        const struct moe_tensor *u = k < moe_safet_n(h) ? moe_safet_by_name(h, k) : NULL;
        int c = u == NULL ? -1 : i == n ? 1 :
            compare_text(t[i].tensor, t[i].tensor_len, u->name, u->name_len);

        if (c < 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s is not in %s", s->name, t[i].tensor,
                t[i].file);
        if (c > 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: tensor %s of %s is not in the weight_map",
                s->name, u->name, moe_shards_file(s, f));
        i++;
        k++;
    }
    return 0;
}
