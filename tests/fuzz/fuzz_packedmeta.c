/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the text of a header with moe.packed keys, and as the list of
 * schemes alone. What is read is written and read again the same, and every
 * tensor is a record that fits or is not one.
 */
#include <stdlib.h>
#include <string.h>

#include "common/formats/packedmeta.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
must(int yes)
{
    if (!yes)
        abort();
}

static int
same(const struct moe_packed *a, const struct moe_packed *b)
{
    return a->kind == b->kind && a->scale_dtype == b->scale_dtype && a->rows == b->rows &&
        a->cols == b->cols && a->group == b->group && a->zeros == b->zeros && a->bias == b->bias;
}

static struct moe_safet *
header(const char *const *meta)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_safet *s = NULL;

    if (moe_safet_write(&b, NULL, 0, meta, 8, NULL) == 0)
        must(moe_safet_parse(b.p + 8, b.len - 8, 0, "fuzz", &s, NULL) == 0);
    moe_buf_fini(&b);
    return s;
}

static void
check_back(const struct moe_packedmeta *p)
{
    const char *meta[MOE_PACKEDMETA_STRINGS];
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_packedmeta *back;
    struct moe_safet *s;

    must(moe_packedmeta_write(p->schemes, p->n, &json, meta, NULL) == 0);
    must((s = header(meta)) != NULL);
    must(moe_packedmeta_read(s, "fuzz", &back, NULL) == 0 && back->n == p->n);
    for (size_t i = 0; i < p->n; i++)
        must(back->schemes[i].expert == p->schemes[i].expert &&
            same(&back->schemes[i].matrix, &p->schemes[i].matrix) &&
            same(&back->schemes[i].down, &p->schemes[i].down));
    moe_packedmeta_free(back);
    moe_safet_free(s);
    moe_buf_fini(&json);
}

static void
check(const struct moe_safet *s)
{
    const struct moe_packedmeta_scheme *scheme;
    struct moe_err e = { 0, "" };
    struct moe_packedmeta *p;
    uint64_t bytes = 0;
    size_t module;

    if (moe_packedmeta_read(s, "fuzz", &p, &e) != 0) {
        must(p == NULL && e.code < 0 && e.text[0] != '\0');
        return;
    }
    for (size_t i = 0; p != NULL && i < moe_safet_n(s); i++) {
        const struct moe_tensor *t = moe_safet_at(s, i);
        int rc = moe_packedmeta_record(p, s, t, "fuzz", &scheme, &module, &e);

        must(rc == 0 || (scheme == NULL && e.text[0] != '\0'));
        if (scheme != NULL)
            must(module > 0 && module < t->name_len && moe_packedmeta_bytes(scheme, &bytes) &&
                bytes == t->end - t->begin);
    }
    if (p != NULL)
        check_back(p);
    moe_packedmeta_free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    const char *meta[] = { "moe.packed", "rows16", "moe.packed.version", "1",
        "moe.packed.schemes", NULL, NULL };
    struct moe_safet *s = NULL;
    char *list = malloc(n + 1);

    must(list != NULL);
    if (n > 0)
        memcpy(list, p, n);
    list[n] = '\0';
    if (moe_safet_parse(list, n, UINT64_MAX, "fuzz", &s, NULL) == 0)
        check(s);
    moe_safet_free(s);
    meta[5] = list;
    if ((s = header(meta)) != NULL)
        check(s);
    moe_safet_free(s);
    free(list);
    return 0;
}
