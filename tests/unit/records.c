/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a packed file: found by module, refused where they are wrong, checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/engine/records.h"
#include "common/formats/safet.h"
#include "tests/scratch.h"
#include "tests/tap.h"

static const struct moe_packedmeta_scheme scheme = {
    .matrix = { MOE_PACKED_I4, MOE_BF16, 16, 32, 32, false, false },
};

/* A file m.safetensors of records with these names, the checksum of the last one wrong. */
static void
write_file(const char *const *names, size_t n)
{
    const char *meta[MOE_PACKEDMETA_STRINGS];
    struct moe_buf json = MOE_BUF_INIT, out = MOE_BUF_INIT;
    struct moe_tensor t[4];
    struct moe_err e = { 0, "" };
    uint64_t bytes = 0;
    unsigned char *p;
    FILE *f;

    moe_packedmeta_bytes(&scheme, &bytes);
    for (size_t i = 0; i < n; i++)
        t[i] = (struct moe_tensor){ .name = names[i], .dtype = MOE_U8, .rank = 1,
            .shape = &bytes };
    p = calloc(1, bytes);
    if (moe_packedmeta_write(&scheme, 1, &json, meta, &e) != 0 ||
        moe_safet_write(&out, t, n, meta, 4096, &e) != 0)
        tap_ok(false, "a file: %s", e.text);
    moe_packed_seal(p, bytes);
    for (size_t i = 0; i < n; i++) {
        p[7] = i > 0 && i == n - 1;
        moe_buf_add(&out, p, bytes);
    }
    if ((f = fopen("m.safetensors", "wb")) == NULL || fwrite(out.p, 1, out.len, f) != out.len ||
        fclose(f) != 0)
        tap_ok(false, "write m.safetensors");
    free(p);
    moe_buf_fini(&json);
    moe_buf_fini(&out);
}

static void
found(void)
{
    static const char *const names[] = { "b.packed.0", "ab.packed.0", "a.packed.0" };
    struct moe_err e = { 0, "" };
    struct moe_source *s = NULL;
    struct moe_records *r = NULL;
    const void *p = NULL;

    write_file(names, 3);
    tap_is_int(moe_source_open("m.safetensors", &s, &e), 0, "a file of records");
    tap_is_int(moe_records_open(s, &r, &e), 0, "opened");
    for (size_t i = 0; i < 3; i++) {
        char module[8] = { 0 };
        const struct moe_record *x;

        memcpy(module, names[i], strcspn(names[i], "."));
        x = moe_records_find(r, module);
        tap_ok(x != NULL && strcmp(moe_source_at(s, x->tensor)->name, names[i]) == 0 &&
            x->scheme->matrix.cols == 32, "%s is found", module);
        tap_ok(x != NULL && moe_records_map(s, x, &p, &e) == 0 && (uintptr_t)p % 64 == 0,
            "and mapped where kernels can read it");
        tap_is_int(x == NULL ? 0 : moe_records_check(s, x, p, &e), i == 2 ? MOE_EFORMAT : 0,
            i == 2 ? "its damage is seen" : "its checksum holds");
    }
    tap_ok(moe_records_find(r, "aa") == NULL && moe_records_find(r, "") == NULL &&
        moe_records_find(r, "abc") == NULL, "others are not");
    moe_records_close(r);
    moe_source_close(s);
}

static void
refused(const char *const *names, size_t n, const char *word, const char *what)
{
    struct moe_err e = { 0, "" };
    struct moe_source *s = NULL;
    struct moe_records *r = NULL;

    write_file(names, n);
    tap_is_int(moe_source_open("m.safetensors", &s, &e), 0, "a file");
    tap_is_int(moe_records_open(s, &r, &e), MOE_EFORMAT, "%s", what);
    tap_ok(strstr(e.text, word) != NULL && r == NULL, "it names %s: %s", word, e.text);
    moe_source_close(s);
}

int
main(void)
{
    static const char *const far[] = { "a.packed.0", "a.packed.1" };
    static const char *const plain[] = { "a.weight" };
    struct moe_err e = { 0, "" };
    struct moe_source *s = NULL;
    struct moe_records *r = NULL;

    scratch_enter();
    found();
    refused(far, 2, "a.packed.1", "a scheme that is not there");
    write_file(plain, 1);
    tap_is_int(moe_source_open("m.safetensors", &s, &e), 0, "a file without records");
    tap_is_int(moe_records_open(s, &r, &e), 0, "has none");
    tap_ok(r != NULL && moe_records_find(r, "a") == NULL, "and none is found");
    moe_records_close(r);
    moe_source_close(s);
    scratch_leave();
    return tap_done();
}
