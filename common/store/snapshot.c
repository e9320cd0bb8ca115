/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the bytes of a save's manifest.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/le.h"
#include "common/base/num.h"
#include "common/store/names.h"
#include "common/store/snapshot.h"

#define MAGIC 8                 /* bytes */
#define HEAD ((size_t)48)       /* magic, id, time, parent, shape, files, pairs */

static const unsigned char magic[MAGIC] = { 'm', 'o', 'e', 's', 'a', 'v', 'e', '1' };

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

bool
moe_snapshot_name_ok(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t n = strlen(name);

    if (n == 0 || n > MOE_SNAPSHOT_TEXT || name[0] == '.' || name[0] == '/')
        return false;
    return slash == NULL || (slash[1] != '\0' && slash[1] != '.' && strchr(slash + 1, '/') == NULL);
}

int
moe_snapshot_add(struct moe_snapshot *s, const struct moe_snapshot_file *f, struct moe_err *e)
{
    struct moe_snapshot_file *more, x = *f;

    if (s->n == MOE_SNAPSHOT_FILES)
        return moe_err_set(e, MOE_ELIMIT, "more than %d files", MOE_SNAPSHOT_FILES);
    if ((s->n & (s->n - 1)) == 0) {     /* at each power of two the room doubles */
        if ((more = reallocarray(s->files, s->n > 0 ? 2 * s->n : 1, sizeof(*more))) == NULL)
            return no_memory(e);
        s->files = more;
    }
    if ((x.name = moe_arena_text(&s->text, f->name, strlen(f->name))) == NULL)
        return no_memory(e);
    s->files[s->n++] = x;
    return 0;
}

int
moe_snapshot_pair(struct moe_snapshot *s, const char *key, const char *value, struct moe_err *e)
{
    struct moe_snapshot_pair *more, x;

    if (s->n_pairs == MOE_SNAPSHOT_PAIRS || strlen(key) > MOE_SNAPSHOT_TEXT ||
        strlen(value) > MOE_SNAPSHOT_TEXT)
        return moe_err_set(e, MOE_ELIMIT, "%.64s: too many pairs, or one too long", key);
    if ((more = reallocarray(s->pairs, s->n_pairs + 1, sizeof(*more))) == NULL)
        return no_memory(e);
    s->pairs = more;
    x.key = moe_arena_text(&s->text, key, strlen(key));
    x.value = moe_arena_text(&s->text, value, strlen(value));
    if (x.key == NULL || x.value == NULL)
        return no_memory(e);
    s->pairs[s->n_pairs++] = x;
    return 0;
}

/* ---- Encoding --------------------------------------------------------------------------- */

static void
put_text(struct moe_buf *b, const char *s)
{
    unsigned char n[2];

    moe_le_put16(n, (uint16_t)strlen(s));
    moe_buf_add(b, n, sizeof(n));
    moe_buf_str(b, s);
}

int
moe_snapshot_encode(struct moe_snapshot *s, struct moe_buf *b, struct moe_err *e)
{
    unsigned char p[HEAD], ref[MOE_PACK_REF];
    size_t from = b->len;
    int rc;

    memcpy(p, magic, MAGIC);
    moe_le_put64(p + 8, s->id);
    moe_le_put64(p + 16, s->time);
    moe_le_put64(p + 24, s->parent);
    moe_le_put32(p + 32, s->shape);
    moe_le_put64(p + 36, s->n);
    moe_le_put32(p + 44, (uint32_t)s->n_pairs);
    moe_buf_add(b, p, HEAD);
    for (size_t i = 0; i < s->n; i++) {
        const struct moe_snapshot_file *f = &s->files[i];

        put_text(b, f->name);
        moe_buf_byte(b, (char)f->form);
        moe_le_put64(p, f->size);
        moe_le_put64(p + 8, f->parts);
        moe_buf_add(b, p, 16);
        moe_pack_put_ref(&f->list, ref);
        moe_buf_add(b, ref, sizeof(ref));
    }
    for (size_t i = 0; i < s->n_pairs; i++) {
        put_text(b, s->pairs[i].key);
        put_text(b, s->pairs[i].value);
    }
    if (b->bad)
        return no_memory(e);
    if (b->len - from > MOE_SNAPSHOT_MAX - MOE_DIGEST_LEN)
        return moe_err_set(e, MOE_ELIMIT, "the list of files is too long");
    if ((rc = moe_digest_of(b->p + from, b->len - from, s->sum, e)) != 0)
        return rc;
    moe_buf_add(b, s->sum, MOE_DIGEST_LEN);
    return b->bad ? no_memory(e) : 0;
}

/* ---- Decoding --------------------------------------------------------------------------- */

struct in { const unsigned char *p, *end; const char *name; };

static int
bad(const struct in *in, struct moe_err *e, const char *what)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: %s", in->name, what);
}

/* n bytes more, or NULL. */
static const unsigned char *
take(struct in *in, size_t n)
{
    const unsigned char *p = in->p;

    if ((size_t)(in->end - p) < n)
        return NULL;
    in->p += n;
    return p;
}

/* A text in the arena, or NULL with *rc set. */
static const char *
take_text(struct in *in, struct moe_arena *a, int *rc, struct moe_err *e)
{
    const unsigned char *p = take(in, 2);
    size_t n = p != NULL ? moe_le_get16(p) : 0;
    const char *s;

    if (p == NULL || (p = take(in, n)) == NULL || memchr(p, '\0', n) != NULL) {
        *rc = bad(in, e, "ends within a name");
        return NULL;
    }
    if ((s = moe_arena_text(a, (const char *)p, n)) == NULL)
        *rc = no_memory(e);
    return s;
}

static int
take_file(struct in *in, struct moe_snapshot *s, struct moe_err *e)
{
    struct moe_snapshot_file *f = &s->files[s->n];
    static const unsigned char none[MOE_PACK_REF];
    const unsigned char *p;
    int rc = 0;

    memset(f, 0, sizeof(*f));
    if ((f->name = take_text(in, &s->text, &rc, e)) == NULL)
        return rc;
    if ((p = take(in, 17 + MOE_PACK_REF)) == NULL)
        return bad(in, e, "ends within a file");
    f->form = p[0];
    f->size = moe_le_get64(p + 1);
    f->parts = moe_le_get64(p + 9);
    if (p[0] > MOE_SNAPSHOT_SAFET || !moe_snapshot_name_ok(f->name) ||
        (s->n > 0 && strcmp(f[-1].name, f->name) >= 0))
        return bad(in, e, "a file with a bad name or form");
    if (f->size == 0 ? f->parts != 0 || memcmp(p + 17, none, MOE_PACK_REF) != 0
                     : !moe_pack_get_ref(p + 17, &f->list) || f->list.type != MOE_PACK_IS_FILE ||
                f->parts == 0)
        return bad(in, e, "a file without its parts");
    s->n++;
    return 0;
}

static int
take_all(struct in *in, struct moe_snapshot *s, struct moe_err *e)
{
    const unsigned char *p = take(in, HEAD);
    uint64_t files, pairs;
    int rc = 0;

    s->id = moe_le_get64(p + 8);
    s->time = moe_le_get64(p + 16);
    s->parent = moe_le_get64(p + 24);
    s->shape = moe_le_get32(p + 32);
    files = moe_le_get64(p + 36);
    pairs = moe_le_get32(p + 44);
    if (s->id > MOE_NAMES_MAX || (s->parent > MOE_NAMES_MAX && s->parent != MOE_SNAPSHOT_NONE) ||
        (s->shape != MOE_SNAPSHOT_FILE && s->shape != MOE_SNAPSHOT_DIR) ||
        (s->shape == MOE_SNAPSHOT_FILE && files != 1))
        return bad(in, e, "values out of their range");
    /* Each file and pair takes bytes of its own, so that a lie reserves nothing. */
    if (files > MOE_SNAPSHOT_FILES || pairs > MOE_SNAPSHOT_PAIRS ||
        files * (19 + MOE_PACK_REF) + pairs * 4 > (size_t)(in->end - in->p))
        return bad(in, e, "more files than bytes");
    s->files = calloc(files + 1, sizeof(*s->files));
    s->pairs = calloc(pairs + 1, sizeof(*s->pairs));
    if (s->files == NULL || s->pairs == NULL)
        return no_memory(e);
    while (rc == 0 && s->n < files)
        rc = take_file(in, s, e);
    while (rc == 0 && s->n_pairs < pairs) {
        struct moe_snapshot_pair *x = &s->pairs[s->n_pairs];

        if ((x->key = take_text(in, &s->text, &rc, e)) != NULL &&
            (x->value = take_text(in, &s->text, &rc, e)) != NULL)
            s->n_pairs++;
    }
    return rc == 0 && in->p != in->end ? bad(in, e, "bytes after its end") : rc;
}

int
moe_snapshot_decode(const void *p, size_t n, const char *name, struct moe_snapshot *out,
    struct moe_err *e)
{
    struct in in = { p, p, name };
    uint64_t total = 0;
    int rc;

    *out = (struct moe_snapshot)MOE_SNAPSHOT_INIT;
    if (n < HEAD + MOE_DIGEST_LEN || n > MOE_SNAPSHOT_MAX || memcmp(p, magic, MAGIC) != 0)
        return bad(&in, e, "is no manifest of a save");
    in.end = in.p + n - MOE_DIGEST_LEN;
    if ((rc = moe_digest_of(p, n - MOE_DIGEST_LEN, out->sum, e)) != 0)
        return rc;
    if (memcmp(out->sum, in.end, MOE_DIGEST_LEN) != 0)
        return bad(&in, e, "the manifest is damaged");
    if ((rc = take_all(&in, out, e)) != 0)
        return rc;
    for (size_t i = 0; i < out->n; i++)
        if (!moe_num_add(total, out->files[i].size, &total) || total > INT64_MAX)
            return bad(&in, e, "files larger than any disk");
    return 0;
}

/* ---- Looking up ---------------------------------------------------------------------------- */

const struct moe_snapshot_file *
moe_snapshot_find(const struct moe_snapshot *s, const char *name)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(s->files[mid].name, name);

        if (c == 0)
            return &s->files[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const char *
moe_snapshot_value(const struct moe_snapshot *s, const char *key)
{
    for (size_t i = 0; i < s->n_pairs; i++)
        if (strcmp(s->pairs[i].key, key) == 0)
            return s->pairs[i].value;
    return NULL;
}

uint64_t
moe_snapshot_bytes(const struct moe_snapshot *s)
{
    uint64_t total = 0;

    for (size_t i = 0; i < s->n; i++)
        total += s->files[i].size;
    return total;
}

void
moe_snapshot_fini(struct moe_snapshot *s)
{
    free(s->files);
    free(s->pairs);
    moe_arena_fini(&s->text);
    *s = (struct moe_snapshot)MOE_SNAPSHOT_INIT;
}
