/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of safetensors: the verdict of each file in tests/data/safetensors,
 * what is read, and what is written.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/formats/safet.h"
#include "tests/golden.h"
#include "tests/tap.h"

static struct moe_err err;

static int
from_file(const char *path, struct moe_safet **out)
{
    int fd = open(path, O_RDONLY), rc;

    rc = moe_safet_fd(fd, path, out, &err);
    close(fd);
    return rc;
}

static void
check_verdict(const char *file, const char *verdict, const char *reason)
{
    char path[256];
    struct moe_safet *s = NULL;
    int rc;

    snprintf(path, sizeof(path), "tests/data/safetensors/%s", file);
    err.text[0] = '\0';
    rc = from_file(path, &s);
    moe_safet_free(s);
    if (strcmp(verdict, "valid") == 0)
        tap_ok(rc == 0, "%s is read: %s: %s", file, reason, err.text);
    else if (strcmp(verdict, "invalid") == 0)
        tap_ok(rc < 0 && s == NULL && strncmp(err.text, path, strlen(path)) == 0,
            "%s is refused: %s: %s", file, reason, err.text);
    else
        tap_ok(rc == (strstr(file, "200_dims") != NULL ? MOE_ELIMIT : 0),
            "%s is as documented: %s", file, reason);
}

static void
check_verdicts(void)
{
    size_t n, rows = 0;
    char *text = (char *)golden_file("safetensors/verdicts.tsv", &n), *line = strchr(text, '\n');

    while (line != NULL && line[1] != '\0') {
        char *file = line + 1, *verdict = strchr(file, '\t'), *reason, *end;

        line = strchr(file, '\n');
        *verdict++ = '\0';
        reason = strchr(verdict, '\t');
        *reason++ = '\0';
        end = strchr(reason, '\t');
        *end = '\0';
        check_verdict(file, verdict, reason);
        rows++;
    }
    tap_ok(rows >= 85, "%zu verdicts", rows);
    free(text);
}

static void
check_reading(void)
{
    static const char json[] =
        "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"__metadata__\":{\"format\":\"pt\",\"k\":\"v\\u0000w\"},"
        "\"a\\u0000x\":{\"data_offsets\":[0,4],\"shape\":[],\"dtype\":\"F32\"},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[4,4]}}   ";
    struct moe_safet *s;
    const struct moe_tensor *t;
    uint64_t n;

    if (!tap_is_int(moe_safet_parse(json, strlen(json), 16, "x", &s, &err), 0, "a header"))
        return;
    tap_is_int((long long)moe_safet_n(s), 3, "three tensors");
    t = moe_safet_at(s, 0);
    tap_ok(strcmp(t->name, "b") == 0 && t->dtype == MOE_BF16 && t->rank == 2 &&
        t->shape[0] == 2 && t->shape[1] == 3 && t->begin == 4 && t->end == 16,
        "the first of the text");
    t = moe_safet_at(s, 1);
    tap_ok(t->name_len == 3 && memcmp(t->name, "a\0x", 4) == 0 && t->rank == 0, "a NUL in a name");
    tap_ok(moe_safet_count(t, &n) && n == 1, "a scalar is one element");
    tap_ok(moe_safet_count(moe_safet_at(s, 2), &n) && n == 0, "an empty one none");
    tap_ok(moe_safet_find(s, "a") == moe_safet_at(s, 2), "found by name");
    tap_ok(moe_safet_find(s, "b") == moe_safet_at(s, 0), "and another");
    tap_ok(moe_safet_find(s, "c") == NULL && moe_safet_find(s, "") == NULL, "not found");
    tap_ok(moe_safet_by_name(s, 0) == moe_safet_at(s, 2) &&
        moe_safet_by_name(s, 2) == moe_safet_at(s, 0), "ascending names");
    tap_ok(moe_safet_by_offset(s, 0) == 1 && moe_safet_by_offset(s, 1) == 2 &&
        moe_safet_by_offset(s, 2) == 0, "order of the data");
    tap_is_int((long long)moe_safet_data_at(s), (long long)strlen(json) + 8, "where data begins");
    tap_is_int((long long)moe_safet_data_len(s), 16, "bytes of data");
    tap_is_str(moe_safet_meta(s, "format"), "pt", "metadata");
    tap_ok(moe_safet_meta(s, "formats") == NULL, "missing metadata");
    tap_ok(moe_safet_meta_at(s, 1)->value_len == 3 && moe_safet_meta_at(s, 2) == NULL,
        "metadata in order");
    moe_safet_free(s);
}

/* Faults that the files of verdicts.tsv do not have. */
static void
check_refusals(void)
{
    static const char *const bad[] = {
        "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\",\"a\":\"1\"}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"C64\",\"shape\":[1152921504606846977,16],\"data_offsets\":[0,128]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775808,4,0],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[-0],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[18446744073709551615,0]}}",
    };
    struct moe_safet *s;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tap_ok(moe_safet_parse(bad[i], strlen(bad[i]), UINT64_MAX, "x", &s, &err) < 0 &&
            s == NULL, "refused: %s", err.text);
    }
    tap_is_int(moe_safet_parse("{", MOE_SAFET_MAX_HEADER + 1, 0, "x", &s, &err), MOE_ELIMIT,
        "a header over the limit");
}

static struct moe_tensor
tensor(const char *name, enum moe_dtype t, int rank, const uint64_t *shape)
{
    return (struct moe_tensor){ .name = name, .dtype = t, .rank = rank, .shape = shape };
}

static void
check_writing(void)
{
    static const char *const meta[] = { "moe.config", "{\"a\": \"b\"}", NULL };
    const uint64_t shape[] = { 3, 5 };
    struct moe_tensor t[3] = {
        tensor("one", MOE_U8, 2, shape), tensor("t\xc3\xa4 \"quoted\"\n", MOE_F32, 0, NULL),
        tensor("two", MOE_BF16, 1, shape)
    };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_safet *s;
    uint64_t len = 0;

    moe_buf_str(&b, "before");
    tap_is_int(moe_safet_write(&b, t, 3, meta, 64, &err), 0, "a header is written");
    tap_is_int((long long)(b.len - 6) % 64, 0, "padded");
    for (int i = 7; i >= 0; i--)
        len = len << 8 | (unsigned char)b.p[6 + i];
    tap_is_int((long long)len, (long long)b.len - 14, "its length first");
    tap_is_int(moe_safet_parse(b.p + 14, b.len - 14, 25, "x", &s, &err), 0, "and read back");
    tap_ok(strcmp(moe_safet_at(s, 1)->name, t[1].name) == 0 && moe_safet_at(s, 1)->begin == 15 &&
        moe_safet_at(s, 2)->begin == 19 && moe_safet_at(s, 2)->end == 25, "with its offsets");
    tap_is_str(moe_safet_meta(s, "format"), "pt", "format is added");
    tap_is_str(moe_safet_meta(s, "moe.config"), meta[1], "metadata is kept");
    moe_safet_free(s);

    moe_buf_clear(&b);
    t[2].name = "one";
    tap_is_int(moe_safet_write(&b, t, 3, NULL, 8, &err), MOE_EFORMAT, "a name twice: %s", err.text);
    moe_buf_clear(&b);
    t[2] = tensor("x", MOE_F4, 1, shape);
    tap_is_int(moe_safet_write(&b, t, 3, NULL, 8, &err), MOE_EFORMAT, "half a byte: %s", err.text);
    moe_buf_clear(&b);
    t[2] = tensor("bad\xff", MOE_U8, 1, shape);
    tap_is_int(moe_safet_write(&b, t, 3, NULL, 8, &err), MOE_EFORMAT, "no UTF-8: %s", err.text);
    moe_buf_clear(&b);
    tap_is_int(moe_safet_write(&b, NULL, 0, NULL, 8, &err), 0, "no tensors");
    tap_is_str(b.p + 8, "{\"__metadata__\":{\"format\":\"pt\"}}", "an empty header");
    moe_buf_fini(&b);
}

int
main(void)
{
    check_verdicts();
    check_reading();
    check_refusals();
    check_writing();
    return tap_done();
}
