/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ordered bytes of a vocabulary. */
#include <stdlib.h>
#include <string.h>

#include "common/engine/lexicon.h"

/* What is sorted: the bytes themselves travel along, for qsort has no context. */
struct entry { const char *p; uint32_t len, id; };

static int
by_bytes(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    uint32_t n = x->len < y->len ? x->len : y->len;
    int c = memcmp(x->p, y->p, n);

    if (c != 0)
        return c;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Bytes of every token into text; ends[id] is where those of id end. */
static int
gather(const struct moe_tokenizer *t, struct moe_lexicon *l, uint32_t *ends, struct moe_err *e)
{
    uint32_t known = moe_tokenizer_size(t);
    int rc;

    for (uint32_t id = 0; id < l->ids; id++) {
        if (id < known && !moe_tokenizer_is_special(t, id)
            && (rc = moe_tokenizer_bytes(t, id, &l->text, e)) != 0)
            return rc;
        if (l->text.bad || l->text.len > UINT32_MAX)
            return moe_err_set(e, MOE_ENOMEM, "vocabulary: out of memory");
        ends[id] = (uint32_t)l->text.len;
    }
    return 0;
}

static uint32_t
common(const struct entry *a, const struct entry *b)
{
    uint32_t n = 0;

    while (n < a->len && n < b->len && a->p[n] == b->p[n])
        n++;
    return n;
}

static void
order(struct moe_lexicon *l, const uint32_t *ends, struct entry *list)
{
    size_t n = 0;

    for (uint32_t id = 0; id < l->ids; id++) {
        uint32_t from = id == 0 ? 0 : ends[id - 1];

        l->by_id[id] = UINT32_MAX;
        if (ends[id] > from)
            list[n++] = (struct entry){ l->text.p + from, ends[id] - from, id };
    }
    qsort(list, n, sizeof(*list), by_bytes);
    l->n = n;
    for (size_t i = 0; i < n; i++) {
        l->by_id[list[i].id] = (uint32_t)i;
        l->word[i] = (struct moe_lexicon_word){ list[i].id, (uint32_t)(list[i].p - l->text.p),
            list[i].len, i == 0 ? 0 : common(&list[i - 1], &list[i]) };
    }
}

int
moe_lexicon_new(const struct moe_tokenizer *t, uint32_t ids, struct moe_lexicon **out,
    struct moe_err *e)
{
    struct moe_lexicon *l = calloc(1, sizeof(*l));
    uint32_t *ends = malloc(((size_t)ids + 1) * sizeof(*ends));
    struct entry *list = malloc(((size_t)ids + 1) * sizeof(*list));
    int rc = 0;

    *out = NULL;
    if (l != NULL) {
        l->word = malloc(((size_t)ids + 1) * sizeof(*l->word));
        l->by_id = malloc(((size_t)ids + 1) * sizeof(*l->by_id));
    }
    if (l == NULL || ends == NULL || list == NULL || l->word == NULL || l->by_id == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "vocabulary: out of memory");
        goto out;
    }
    l->ids = ids;
    if ((rc = gather(t, l, ends, e)) != 0)
        goto out;
    order(l, ends, list);
    *out = l;
    l = NULL;
out:
    moe_lexicon_free(l);
    free(ends);
    free(list);
    return rc;
}

void
moe_lexicon_free(struct moe_lexicon *l)
{
    if (l == NULL)
        return;
    free(l->word);
    free(l->by_id);
    moe_buf_fini(&l->text);
    free(l);
}

const char *
moe_lexicon_bytes(const struct moe_lexicon *l, uint32_t id, size_t *n)
{
    const struct moe_lexicon_word *w;

    *n = 0;
    if (id >= l->ids || l->by_id[id] == UINT32_MAX)
        return NULL;
    w = &l->word[l->by_id[id]];
    *n = w->len;
    return l->text.p + w->at;
}
