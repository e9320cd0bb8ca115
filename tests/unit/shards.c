/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a sharded model: parsing, names of files, the comparison both ways. */
#include <stdio.h>
#include <string.h>

#include "common/formats/shards.h"
#include "tests/tap.h"

static struct moe_err err;

static int
parse(const char *text, struct moe_shards **s)
{
    return moe_shards_parse(text, strlen(text), "index.json", s, &err);
}

/* A header whose tensors are the letters of names. */
static struct moe_safet *
header(const char *names)
{
    char text[512] = "{";
    size_t at = 1;
    struct moe_safet *s;

    for (size_t i = 0; names[i] != '\0'; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"%c\":{\"dtype\":\"U8\","
            "\"shape\":[],\"data_offsets\":[%zu,%zu]}", i > 0 ? "," : "", names[i], i, i + 1);
    snprintf(text + at, sizeof(text) - at, "}");
    if (moe_safet_parse(text, strlen(text), UINT64_MAX, "h", &s, &err) != 0)
        return NULL;
    return s;
}

static void
check_names(void)
{
    static const char *const good[] = {
        "a.safetensors", "sub/a.safetensors", "..a.safetensors", "a b.safetensors",
        "sub/.x/a..safetensors"
    };
    static const char *const bad[] = {
        "", ".safetensors", "a.bin", "/a.safetensors", "../a.safetensors", "sub/../a.safetensors",
        "./a.safetensors", "sub//a.safetensors", "sub/./a.safetensors", "a.safetensors/",
        "a.SAFETENSORS", "..", "/.safetensors"
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        tap_ok(moe_shards_name_ok(good[i], strlen(good[i])), "'%s' is a name", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_ok(!moe_shards_name_ok(bad[i], strlen(bad[i])), "'%s' is none", bad[i]);
    tap_ok(!moe_shards_name_ok("a\0b.safetensors", 15), "nor with a NUL");
}

static void
check_compare(void)
{
    struct moe_shards *s;
    struct moe_safet *h;

    if (!tap_is_int(parse("{\"metadata\":{\"total_size\":4.0,\"x\":[1]},\"other\":{},"
        "\"weight_map\":{\"b\":\"2.safetensors\",\"a\":\"1.safetensors\","
        "\"d\":\"1.safetensors\",\"c\":\"2.safetensors\"}}", &s), 0, "an index"))
        return;
    tap_is_int((long long)moe_shards_files(s), 2, "two files");
    tap_is_str(moe_shards_file(s, 0), "1.safetensors", "the first");
    tap_is_str(moe_shards_file(s, 1), "2.safetensors", "the second");
    h = header("da");
    tap_is_int(moe_shards_check(s, 0, h, &err), 0, "the first agrees");
    tap_is_int(moe_shards_check(s, 1, h, &err), MOE_EFORMAT, "not for the second");
    moe_safet_free(h);
    h = header("bc");
    tap_is_int(moe_shards_check(s, 1, h, &err), 0, "the second agrees");
    moe_safet_free(h);
    h = header("b");
    tap_is_int(moe_shards_check(s, 1, h, &err), MOE_EFORMAT, "one is missing");
    tap_is_str(err.text, "index.json: tensor c is not in 2.safetensors", "which");
    moe_safet_free(h);
    h = header("bxc");
    tap_is_int(moe_shards_check(s, 1, h, &err), MOE_EFORMAT, "one is too many");
    tap_is_str(err.text, "index.json: tensor x of 2.safetensors is not in the weight_map", "which");
    moe_safet_free(h);
    h = header("");
    tap_is_int(moe_shards_check(s, 1, h, &err), MOE_EFORMAT, "an empty file");
    moe_safet_free(h);
    moe_shards_free(s);
}

static void
check_refusals(void)
{
    static const char *const bad[] = {
        "", "[]", "{}", "{\"weight_map\":{}}", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":\"../m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"/m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\",\"a\":\"m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\",\"a\":\"n.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\"},\"weight_map\":{\"b\":\"m.safetensors\"}}",
        "{\"metadata\":{},\"metadata\":{},\"weight_map\":{\"a\":\"m.safetensors\"}}",
        "{\"metadata\":{\"total_size\":\"1\"},\"weight_map\":{\"a\":\"m.safetensors\"}}",
        "{\"metadata\":{\"total_size\":-1},\"weight_map\":{\"a\":\"m.safetensors\"}}",
        "{\"metadata\":7,\"weight_map\":{\"a\":\"m.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"m.safetensors\"}}x",
        "{\"weight_map\":{\"a\":\"m.safetensors\"}", "{\"weight_map\":{\"a\":\"m.bin\"}}",
    };
    struct moe_shards *s;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_ok(parse(bad[i], &s) == MOE_EFORMAT && s == NULL, "refused: %s", err.text);
    tap_is_int(moe_shards_parse("{", MOE_SHARDS_MAX_BYTES + 1, "x", &s, &err), MOE_ELIMIT,
        "too long a text");
}

int
main(void)
{
    check_names();
    check_compare();
    check_refusals();
    return tap_done();
}
