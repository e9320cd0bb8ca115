/* SPDX-License-Identifier: Apache-2.0 */
/* The moe.packed keys: text as moe-packed(5) has it, written, read, refused; records of a file. */
#include <stdlib.h>
#include <string.h>

#include "common/formats/packedmeta.h"
#include "tests/tap.h"

/* By the page: keys in its order, no blanks. */
static const char two[] =
    "[{\"record\":\"expert\","
    "\"gate_up\":{\"kind\":\"i4\",\"rows\":64,\"cols\":128,\"scale\":\"BF16\",\"group\":32,"
    "\"zeros\":true,\"bias\":false},"
    "\"down\":{\"kind\":\"i8\",\"rows\":128,\"cols\":64,\"scale\":\"F16\",\"group\":64,"
    "\"zeros\":false,\"bias\":true}},"
    "{\"record\":\"matrix\",\"matrix\":{\"kind\":\"bf16\",\"rows\":16,\"cols\":128,"
    "\"bias\":true}}]";

static const struct moe_packedmeta_scheme schemes[2] = {
    { true, { MOE_PACKED_I4, MOE_BF16, 64, 128, 32, true, false },
        { MOE_PACKED_I8, MOE_F16, 128, 64, 64, false, true } },
    { .matrix = { MOE_PACKED_BF16, MOE_BF16, 16, 128, 0, false, true } },
};

static bool
same(const struct moe_packed *a, const struct moe_packed *b)
{
    return a->kind == b->kind && a->scale_dtype == b->scale_dtype && a->rows == b->rows &&
        a->cols == b->cols && a->group == b->group && a->zeros == b->zeros && a->bias == b->bias;
}

/* A header with these keys and tensors; the data begins at a multiple of 4096. */
static struct moe_safet *
header(const char *const *meta, const struct moe_tensor *t, size_t n)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_safet *s = NULL;

    if (moe_safet_write(&b, t, n, meta, 4096, &e) != 0 ||
        moe_safet_parse(b.p + 8, b.len - 8, UINT64_MAX, "t", &s, &e) != 0)
        tap_ok(false, "a header: %s", e.text);
    moe_buf_fini(&b);
    return s;
}

static void
written(void)
{
    const char *meta[MOE_PACKEDMETA_STRINGS];
    struct moe_packedmeta_scheme odd = schemes[1];
    struct moe_buf json = MOE_BUF_INIT;
    struct moe_err e = { 0, "" };
    struct moe_packedmeta *p = NULL;
    struct moe_safet *s;

    tap_is_int(moe_packedmeta_write(schemes, 2, &json, meta, &e), 0, "two schemes");
    tap_is_str(meta[0], "moe.packed", "the key of the layout");
    tap_is_str(meta[1], "rows16", "its name");
    tap_is_str(meta[2], "moe.packed.version", "the key of the version");
    tap_is_str(meta[3], "1", "the version");
    tap_is_str(meta[4], "moe.packed.schemes", "the key of the schemes");
    tap_is_str(meta[5], two, "the schemes");
    tap_ok(meta[6] == NULL, "the end");
    s = header(meta, NULL, 0);
    tap_is_int(moe_packedmeta_read(s, "t", &p, &e), 0, "read: %s", e.text);
    if (tap_ok(p != NULL && p->n == 2, "two of them"))
        tap_ok(p->schemes[0].expert && same(&p->schemes[0].matrix, &schemes[0].matrix) &&
            same(&p->schemes[0].down, &schemes[0].down) && !p->schemes[1].expert &&
            same(&p->schemes[1].matrix, &schemes[1].matrix), "the same");
    moe_packedmeta_free(p);
    moe_safet_free(s);
    odd.matrix.cols = 3;
    tap_is_int(moe_packedmeta_write(&odd, 1, &json, meta, &e), MOE_EUNSUP, "not a shape");
    tap_is_int(moe_packedmeta_write(schemes, MOE_PACKEDMETA_MAX_SCHEMES + 1, &json, meta, &e),
        MOE_ELIMIT, "too many");
    moe_buf_fini(&json);
}

static void
sizes(void)
{
    uint64_t bytes = 0;

    /*
     * 8 + 2: 64 rows are 4 blocks, twice, of 64 * 3 and 16 * 64 bytes; then 8 blocks of
     * a bias, 64 of scales and 16 * 64 of codes: 8 * 1216 + 8 * 1152 + 4 in pages.
     */
    tap_ok(moe_packedmeta_bytes(&schemes[0], &bytes) && bytes == 20480, "bytes of the expert");
    tap_ok(moe_packedmeta_bytes(&schemes[1], &bytes) && bytes == 8192, "bytes of the matrix");
}

/* What reading these three keys (NULL: without it) gives; `what` is in the message. */
static void
reads(const char *layout, const char *version, const char *list, int code, const char *what)
{
    const char *meta[7] = { NULL };
    struct moe_err e = { 0, "" };
    struct moe_packedmeta *p = NULL;
    struct moe_safet *s;
    size_t n = 0;
    int rc;

    if (layout != NULL) {
        meta[n++] = "moe.packed";
        meta[n++] = layout;
    }
    if (version != NULL) {
        meta[n++] = "moe.packed.version";
        meta[n++] = version;
    }
    if (list != NULL) {
        meta[n++] = "moe.packed.schemes";
        meta[n++] = list;
    }
    s = header(meta, NULL, 0);
    rc = moe_packedmeta_read(s, "t", &p, &e);
    if (tap_is_int(rc, code, "%s: %s", what, e.text) && rc != 0)
        tap_ok(p == NULL && strncmp(e.text, "t: ", 3) == 0 && strstr(e.text, what) != NULL,
            "%s: says so", what);
    moe_packedmeta_free(p);
    moe_safet_free(s);
}

static void
refused(void)
{
#define M "[{\"record\":\"matrix\",\"matrix\":{"
#define SHAPE "\"rows\":16,\"cols\":64"
    static const struct { const char *list, *what; } bad[] = {
        { "", "moe.packed.schemes" },
        { "{}", "not a list" },
        { "[1]", "schemes[0]: not an object" },
        { "[{}]", "schemes[0]: record" },
        { "[{\"record\":\"layer\"}]", "layer is not expert or matrix" },
        { "[{\"record\":\"matrix\"}]", "matrix" },
        { "[{\"record\":\"matrix\",\"matrix\":1}]", "matrix" },
        { "[{\"record\":\"matrix\",\"gate_up\":{}}]", "gate_up: unknown key" },
        { M SHAPE "}}]", "schemes[0].matrix: kind" },
        { M "\"kind\":\"i5\"," SHAPE "}}]", "i5 is not a kind" },
        { M "\"kind\":\"bf16\"," SHAPE ",\"x\":1}}]", "x: unknown key" },
        { M "\"kind\":\"bf16\"," SHAPE ",\"group\":32}}]", "group: unknown key" },
        { M "\"kind\":\"bf16\"," SHAPE ",\"zeros\":true}}]", "zeros: unknown key" },
        { M "\"kind\":\"bf16\",\"rows\":0,\"cols\":64}}]", "rows" },
        { M "\"kind\":\"bf16\",\"rows\":16,\"cols\":-2}}]", "cols" },
        { M "\"kind\":\"bf16\"," SHAPE ",\"bias\":1}}]", "bias" },
        { M "\"kind\":\"i4\"," SHAPE ",\"group\":32}}]", "scale" },
        { M "\"kind\":\"i4\"," SHAPE ",\"scale\":\"F64\",\"group\":32}}]",
            "F64 is not BF16, F16 or F32" },
        { M "\"kind\":\"i4\"," SHAPE ",\"scale\":\"F16\"}}]", "group" },
        { M "\"kind\":\"i4\"," SHAPE ",\"scale\":\"F16\",\"group\":32,\"zeros\":null,"
            "\"bias\":\"no\"}}]", "bias" },
        { M "\"kind\":\"i4\"," SHAPE ",\"scale\":\"F16\",\"group\":128}}]",
            "schemes[0]: not a shape" },
        { M "\"kind\":\"bf16\",\"rows\":9223372036854775807,\"cols\":2}}]", "not a shape" },
        { "[{\"record\":\"expert\",\"gate_up\":{\"kind\":\"bf16\"," SHAPE "},"
            "\"down\":{\"kind\":\"bf16\"," SHAPE "}}]", "not a shape" },
        { "[{\"record\":\"expert\",\"gate_up\":{\"kind\":\"bf16\"," SHAPE "}}]", "down" },
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        reads("rows16", "1", bad[i].list, MOE_EFORMAT, bad[i].what);
    reads(NULL, "1", two, 0, "a file without the key of the layout is not packed");
    reads("rows16", "1", two, 0, "all three keys");
    reads("rows16", "1", "[]", 0, "no scheme");
    reads("rows32", "1", two, MOE_EUNSUP, "moe.packed: rows32 is not read");
    reads("rows16", "2", two, MOE_EUNSUP, "moe.packed.version: 2 is not read");
    reads("rows16", NULL, two, MOE_EFORMAT, "moe.packed.version is missing");
    reads("rows16", "1", NULL, MOE_EFORMAT, "moe.packed.schemes is missing");
}

static void
too_long(void)
{
    size_t n = MOE_PACKEDMETA_MAX_BYTES + 1;
    char *list = malloc(n + 1);

    memset(list, ' ', n);
    list[n] = '\0';
    reads("rows16", "1", list, MOE_ELIMIT, "more than");
    n = (MOE_PACKEDMETA_MAX_SCHEMES + 1) * 2;
    list[0] = '[';
    for (size_t i = 1; i <= n; i += 2) {
        list[i] = '1';
        list[i + 1] = i + 1 < n ? ',' : ']';
    }
    list[n + 1] = '\0';
    reads("rows16", "1", list, MOE_ELIMIT, "more than");
    free(list);
}

/* What a tensor is: the module's length, or -1 for not a record, or a refusal. */
static void
tensor_is(const struct moe_tensor *t, size_t n, size_t i, long want, const char *what)
{
    const char *meta[MOE_PACKEDMETA_STRINGS];
    struct moe_buf json = MOE_BUF_INIT;
    const struct moe_packedmeta_scheme *scheme = NULL;
    struct moe_err e = { 0, "" };
    struct moe_packedmeta *p = NULL;
    struct moe_safet *s;
    size_t module = 0;
    int rc;

    (void)moe_packedmeta_write(schemes, 2, &json, meta, &e);
    s = header(meta, t, n);
    (void)moe_packedmeta_read(s, "t", &p, &e);
    rc = moe_packedmeta_record(p, s, moe_safet_find(s, t[i].name), "t", &scheme, &module, &e);
    if (want < -1)
        tap_ok(rc == MOE_EFORMAT && scheme == NULL && strstr(e.text, what) != NULL, "%s: %s",
            t[i].name, e.text);
    else
        tap_ok(rc == 0 && (scheme == NULL ? -1 : (long)module) == want, "%s: %s", t[i].name,
            what);
    if (rc == 0 && scheme != NULL)
        tap_ok(scheme == &p->schemes[t[i].name[module + 8] - '0'], "%s: its scheme", t[i].name);
    moe_buf_fini(&json);
    moe_packedmeta_free(p);
    moe_safet_free(s);
}

static void
records(void)
{
    static const uint64_t expert = 20480, matrix = 8192, odd = 7, square[2] = { 64, 128 };
    struct moe_tensor t[2] = {
        { .name = "layers.0.experts.3.packed.0", .dtype = MOE_U8, .rank = 1, .shape = &expert },
        { .name = "q_proj.packed.1", .dtype = MOE_U8, .rank = 1, .shape = &matrix },
    };
    struct moe_buf b = MOE_BUF_INIT;

    moe_packedmeta_name(&b, "layers.0.experts.3", 0);
    tap_is_str(b.p, t[0].name, "the name of a record");
    moe_buf_fini(&b);
    tensor_is(t, 2, 0, 18, "an expert");
    tensor_is(t, 2, 1, 6, "a matrix");
    t[0].name = "norm.weight";
    tensor_is(t, 2, 0, -1, "not a record");
    t[0].name = "a.packed.";
    tensor_is(t, 2, 0, -1, "not a record");
    t[0].name = ".packed.0";
    tensor_is(t, 2, 0, -1, "not a record");
    t[0].name = "a.unpacked.0";
    tensor_is(t, 2, 0, -1, "not a record");
    t[0].name = "a.packed.2";
    tensor_is(t, 2, 0, -2, "no such scheme");
    t[0].name = "a.packed.00";
    tensor_is(t, 2, 0, -2, "no such scheme");
    t[0].name = "a.packed.18446744073709551616";
    tensor_is(t, 2, 0, -2, "no such scheme");
    t[0].name = "a.packed.1";
    tensor_is(t, 2, 0, -2, "20480 bytes, not 8192");
    t[0].name = "a.packed.0";
    t[0].dtype = MOE_I8;
    tensor_is(t, 2, 0, -2, "not a row of U8");
    t[0].dtype = MOE_U8;
    t[0].rank = 2;
    t[0].shape = square;
    tensor_is(t, 2, 0, -2, "not a row of U8");
    t[0] = (struct moe_tensor){ .name = "x", .dtype = MOE_U8, .rank = 1, .shape = &odd };
    tensor_is(t, 2, 1, -2, "not at a multiple of 4096");
}

int
main(void)
{
    written();
    sizes();
    refused();
    too_long();
    records();
    return tap_done();
}
