/* SPDX-License-Identifier: Apache-2.0 */
/* Trees: strictness, limits, places of errors, typed getters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/json.h"
#include "tests/tap.h"

static void
refused(const char *text, int code, const char *want)
{
    struct moe_err e = { 0, "" };
    json_t *tree;

    tap_is_int(moe_json_parse(text, strlen(text), "f", &tree, &e), code, "refused: %.30s", text);
    tap_is_str(e.text, want, "with the place");
    tap_ok(tree == NULL, "and no tree");
}

static void
strictness(void)
{
    char deep[300];
    json_t *tree;

    refused("{\"a\": 1,\n \"a\": 2}", MOE_EFORMAT, "f:2:4: duplicate key");
    refused("{\"a\\u0000b\": 1}", MOE_EFORMAT, "f:1:11: NUL in a key");
    refused("[9223372036854775808]", MOE_EFORMAT, "f:1:20: number out of range");
    refused("[1e400]", MOE_EFORMAT, "f:1:2: number out of range");
    refused("[1,]", MOE_EFORMAT, "f:1:4: a value is expected");
    refused("", MOE_EFORMAT, "f:1:1: the text ends where a value is expected");
    refused("{}x", MOE_EFORMAT, "f:1:3: text after the value");
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    refused(deep, MOE_ELIMIT, "f:1:129: nested too deep");
    tap_is_int(moe_json_parse("\"a\\u0000b\"", 10, "f", &tree, NULL), 0, "NUL in a value");
    tap_is_int((long long)json_string_length(tree), 3, "is kept");
    json_decref(tree);
    tap_is_int(moe_json_parse("x", MOE_JSON_MAX_BYTES + 1, "f", &tree, NULL), MOE_ELIMIT,
        "too large, not read");
}

static void
getters(void)
{
    static const char text[] = "{\"i\": 42, \"r\": 1.0, \"b\": true, \"s\": \"x\", "
                               "\"z\": \"a\\u0000\", \"n\": null, \"o\": {}, \"a\": []}";
    static const char *const keys[] = { "i", "r", "b", "s", "z", "n", "o", NULL };
    struct moe_err e = { 0, "" };
    struct moe_json_at at = { NULL, "f" };
    const json_t *v;
    const char *s;
    json_t *tree;
    int64_t i;
    double r;
    bool b;

    tap_is_int(moe_json_parse(text, sizeof(text) - 1, "f", &tree, &e), 0, "parsed");
    at.o = tree;
    tap_ok(moe_json_int(at, "i", true, 0, 0, 42, &i, &e) == 0 && i == 42, "integer");
    tap_is_int(moe_json_int(at, "i", true, 0, 0, 41, &i, &e), MOE_EFORMAT, "out of range");
    tap_is_str(e.text, "f: i: 42 is not within 0 to 41", "said so");
    tap_is_int(moe_json_int(at, "r", true, 0, 0, 9, &i, &e), MOE_EFORMAT, "1.0 is no integer");
    tap_is_str(e.text, "f: r: a number with a fraction where a whole number is expected", "said");
    tap_ok(moe_json_int(at, "n", false, 7, 0, 9, &i, &e) == 0 && i == 7, "null gives the fallback");
    tap_is_int(moe_json_int(at, "n", true, 7, 0, 9, &i, &e), MOE_EFORMAT, "null is not there");
    tap_is_str(e.text, "f: n: missing", "said so");
    tap_ok(moe_json_real(at, "i", true, 0, &r, &e) == 0 && r == 42, "an integer is a real");
    tap_ok(moe_json_real(at, "r", true, 0, &r, &e) == 0 && r == 1, "real");
    tap_is_int(moe_json_real(at, "s", true, 0, &r, &e), MOE_EFORMAT, "a string is no real");
    tap_ok(moe_json_bool(at, "b", true, false, &b, &e) == 0 && b, "truth value");
    tap_is_int(moe_json_bool(at, "i", true, false, &b, &e), MOE_EFORMAT, "42 is no truth value");
    tap_is_int(moe_json_str(at, "s", true, NULL, &s, &e), 0, "string");
    tap_is_str(s, "x", "its text");
    tap_is_int(moe_json_str(at, "z", true, NULL, &s, &e), MOE_EFORMAT, "NUL in a string");
    tap_ok(moe_json_str(at, "q", false, "d", &s, &e) == 0 && strcmp(s, "d") == 0, "fallback");
    tap_ok(moe_json_obj(at, "o", true, &v, &e) == 0 && json_is_object(v), "object");
    tap_is_int(moe_json_obj(at, "a", true, &v, &e), MOE_EFORMAT, "an array is no object");
    tap_ok(v == NULL, "and not handed out");
    tap_ok(moe_json_arr(at, "a", true, &v, &e) == 0 && json_is_array(v), "array");
    tap_ok(moe_json_arr(at, "q", false, &v, &e) == 0 && v == NULL, "no array");
    tap_is_int(moe_json_only(at, keys, &e), MOE_EFORMAT, "a key too many");
    tap_is_str(e.text, "f: a: unknown key", "named");
    at.o = json_object_get(tree, "a");
    tap_is_int(moe_json_int(at, "i", false, 0, 0, 9, &i, &e), MOE_EFORMAT, "no object, no member");
    tap_is_int(moe_json_only(at, keys, &e), MOE_EFORMAT, "nor a list of keys");
    json_decref(tree);
}

static void
files(void)
{
    char path[] = P_tmpdir "/moe-json-XXXXXX";
    struct moe_err e = { 0, "" };
    int fd = mkstemp(path);
    json_t *tree;

    tap_ok(fd >= 0 && write(fd, "[1]\n", 4) == 4, "a file");
    tap_ok(moe_json_file(path, &tree, &e) == 0 && json_array_size(tree) == 1, "is read");
    json_decref(tree);
    close(fd);
    unlink(path);
    tap_is_int(moe_json_file(path, &tree, &e), MOE_ENOENT, "no file");
    tap_is_int(moe_json_file("/", &tree, &e), MOE_EIO, "a directory");
}

int
main(void)
{
    strictness();
    getters();
    files();
    return tap_done();
}
