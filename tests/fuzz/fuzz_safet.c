/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a safetensors file. What is read tiles the data, is found by
 * name, and comes back the same after writing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/formats/safet.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
check_tiles(const struct moe_safet *s)
{
    uint64_t at = 0, bytes;

    for (size_t k = 0; k < moe_safet_n(s); k++) {
        const struct moe_tensor *t = moe_safet_at(s, moe_safet_by_offset(s, k));

        if (t->begin != at || t->end < at || t->rank > MOE_SAFET_MAX_RANK ||
            !moe_safet_bytes(t->dtype, t->shape, t->rank, &bytes) || bytes != t->end - at)
            abort();
        at = t->end;
        if (strlen(t->name) == t->name_len && moe_safet_find(s, t->name) != t)
            abort();
    }
    if (at != moe_safet_data_len(s))
        abort();
}

static void
check_back(const struct moe_safet *s)
{
    struct moe_tensor *t = malloc((moe_safet_n(s) + 1) * sizeof(*t));
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_safet *back;
    size_t n = 0;

    for (size_t k = 0; t != NULL && k < moe_safet_n(s); k++) {
        t[n] = *moe_safet_at(s, moe_safet_by_offset(s, k));
        if (strlen(t[n].name) != t[n].name_len || strcmp(t[n].name, "__metadata__") == 0)
            goto out;
        n++;
    }
    if (t == NULL || moe_safet_write(&b, t, n, NULL, 8, NULL) != 0 ||
        moe_safet_parse(b.p + 8, b.len - 8, moe_safet_data_len(s), "", &back, NULL) != 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        const struct moe_tensor *u = moe_safet_at(back, i);

        if (strcmp(u->name, t[i].name) != 0 || u->dtype != t[i].dtype || u->rank != t[i].rank ||
            memcmp(u->shape, t[i].shape, (size_t)u->rank * sizeof(*u->shape)) != 0 ||
            u->begin != t[i].begin || u->end != t[i].end)
            abort();
    }
    moe_safet_free(back);
out:
    moe_buf_fini(&b);
    free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct moe_safet *s;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    if (moe_safet_fd(fd, "fuzz", &s, &e) == 0) {
        check_tiles(s);
        check_back(s);
        (void)moe_safet_meta(s, "format");
        moe_safet_free(s);
    } else if (s != NULL || e.text[0] == '\0') {
        abort();
    }
    close(fd);
    /* The text alone too, so that mutations need not keep the length right. */
    if (n > 8 && moe_safet_parse((const char *)p + 8, n - 8, UINT64_MAX, "fuzz", &s, &e) == 0) {
        check_tiles(s);
        check_back(s);
        moe_safet_free(s);
    }
    return 0;
}
