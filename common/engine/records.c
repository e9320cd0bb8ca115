/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the list of a packed model's records. What is in one is packed.c's.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/records.h"

struct moe_records {
    struct moe_packedmeta **meta;   /* [files]; NULL: none of its tensors is a record */
    size_t files;
    struct moe_record *list;        /* by module */
    size_t n;
};

static int
order(const char *a, size_t n, const struct moe_record *b)
{
    int c = memcmp(a, b->module, n < b->n ? n : b->n);

    return c != 0 ? c : n < b->n ? -1 : n > b->n;
}

static int
by_module(const void *a, const void *b)
{
    const struct moe_record *x = a;

    return order(x->module, x->n, b);
}

/* What the headers of all files say of themselves. */
static int
read_headers(const struct moe_source *s, struct moe_records *r, struct moe_err *e)
{
    int rc = 0;

    for (size_t f = 0; rc == 0 && f < r->files; f++) {
        const struct moe_safet *h = moe_source_header(s, f);

        if (h != NULL)
            rc = moe_packedmeta_read(h, moe_source_file(s, f), &r->meta[f], e);
    }
    return rc;
}

static int
collect(const struct moe_source *s, struct moe_records *r, struct moe_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < moe_source_n(s); i++) {
        size_t f = moe_source_file_of(s, i);
        const struct moe_tensor *t = moe_source_at(s, i);
        struct moe_record *to = &r->list[r->n];

        if (r->meta[f] == NULL)
            continue;
        *to = (struct moe_record){ .module = t->name, .tensor = i };
        rc = moe_packedmeta_record(r->meta[f], moe_source_header(s, f), t, moe_source_file(s, f),
            &to->scheme, &to->n, e);
        r->n += rc == 0 && to->scheme != NULL;
    }
    qsort(r->list, r->n, sizeof(*r->list), by_module);
    for (size_t i = 1; rc == 0 && i < r->n; i++)
        if (by_module(&r->list[i - 1], &r->list[i]) == 0)
            rc = moe_err_set(e, MOE_EFORMAT, "%.*s has two records", (int)r->list[i].n,
                r->list[i].module);
    return rc;
}

int
moe_records_open(const struct moe_source *s, struct moe_records **out, struct moe_err *e)
{
    struct moe_records *r = calloc(1, sizeof(*r));
    int rc;

    *out = NULL;
    if (r != NULL) {
        r->files = moe_source_files(s);
        r->meta = calloc(r->files + 1, sizeof(*r->meta));
        r->list = calloc(moe_source_n(s) + 1, sizeof(*r->list));
    }
    if (r == NULL || r->meta == NULL || r->list == NULL) {
        moe_records_close(r);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", moe_source_path(s));
    }
    if ((rc = read_headers(s, r, e)) == 0 && (rc = collect(s, r, e)) == 0)
        *out = r;
    else
        moe_records_close(r);
    return rc != 0 ? moe_err_at(e, "%s", moe_source_path(s)) : 0;
}

void
moe_records_close(struct moe_records *r)
{
    if (r == NULL)
        return;
    for (size_t f = 0; r->meta != NULL && f < r->files; f++)
        moe_packedmeta_free(r->meta[f]);
    free(r->meta);
    free(r->list);
    free(r);
}

const struct moe_record *
moe_records_find(const struct moe_records *r, const char *module)
{
    size_t lo = 0, hi = r->n, n = strlen(module);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = order(module, n, &r->list[mid]);

        if (c == 0)
            return &r->list[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

int
moe_records_map(struct moe_source *s, const struct moe_record *r, const void **p,
    struct moe_err *e)
{
    return moe_source_map(s, r->tensor, p, e);
}

int
moe_records_check(const struct moe_source *s, const struct moe_record *r, const void *p,
    struct moe_err *e)
{
    uint64_t bytes = 0;

    (void)moe_packedmeta_bytes(r->scheme, &bytes);
    if (moe_packed_intact(p, bytes))
        return 0;
    return moe_err_set(e, MOE_EFORMAT, "%s: %s: its checksum is another: it is damaged",
        moe_source_path(s), moe_source_at(s, r->tensor)->name);
}
