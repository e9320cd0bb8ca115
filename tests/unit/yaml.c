/* SPDX-License-Identifier: Apache-2.0 */
/* Strict YAML: what values become, what is refused, and where it is said to be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/yaml.h"
#include "tests/scratch.h"
#include "tests/tap.h"

/* The tree of text, written by jansson, is `want`. */
static void
becomes(const char *text, const char *want)
{
    struct moe_err e = { 0, "" };
    struct moe_yaml *y = NULL;
    char *got = NULL;

    if (moe_yaml_parse(text, strlen(text), "f", &y, &e) == 0)
        got = json_dumps(moe_yaml_root(y), JSON_COMPACT | JSON_ENCODE_ANY);
    tap_is_str(got != NULL ? got : e.text, want, "becomes %s", want);
    free(got);
    moe_yaml_free(y);
}

static void
refused(const char *text, int code, const char *want)
{
    struct moe_err e = { 0, "" };
    struct moe_yaml *y;

    tap_is_int(moe_yaml_parse(text, strlen(text), "f", &y, &e), code, "refused: %.20s", want);
    tap_is_str(e.text, want, "with the place");
    moe_yaml_free(y);
}

static void
values(void)
{
    becomes("a: 1\nb: [x, 2.5, -0.5e3]\nc:\n  d: null\n  e: true\n  f: false\n",
        "{\"a\":1,\"b\":[\"x\",2.5,-500.0],\"c\":{\"d\":null,\"e\":true,\"f\":false}}");
    becomes("- no\n- on\n- Yes\n- NULL\n- True\n- ~\n",
        "[\"no\",\"on\",\"Yes\",\"NULL\",\"True\",\"~\"]");
    becomes("- 0x10\n- 010\n- +1\n- 1_000\n- .5\n- 1.\n- .inf\n- 1:30\n- 2001-01-01\n- 1e400\n",
        "[\"0x10\",\"010\",\"+1\",\"1_000\",\".5\",\"1.\",\".inf\",\"1:30\",\"2001-01-01\","
        "\"1e400\"]");
    becomes("- -7\n- 9223372036854775807\n- -9223372036854775808\n- 1e2\n",
        "[-7,9223372036854775807,-9223372036854775808,100.0]");
    becomes("a: \"1\"\nb: 'true'\nc: \"\"\nd:\ne: |\n  x\n  y\nf: >-\n  x\n  y\n",
        "{\"a\":\"1\",\"b\":\"true\",\"c\":\"\",\"d\":null,\"e\":\"x\\ny\\n\",\"f\":\"x y\"}");
    becomes("{1: x, true: y, \"\": z}", "{\"1\":\"x\",\"true\":\"y\",\"\":\"z\"}");
    becomes("\"\\u00e9\\x41\\0\"", "\"\xc3\xa9" "A\\u0000\"");
    becomes("%YAML 1.1\n---\nx\n...\n", "\"x\"");
    becomes("# only\na: b # comment\n", "{\"a\":\"b\"}");
    becomes("null", "null");
    becomes("[]", "[]");
}

static void
strictness(void)
{
    char deep[400];

    refused("", MOE_EFORMAT, "f:1:1: no document");
    refused("# nothing\n", MOE_EFORMAT, "f:1:1: no document");
    refused("a: 1\n---\nb: 2\n", MOE_EFORMAT, "f:2:1: a second document");
    refused("a: &x 1\n", MOE_EFORMAT, "f:1:4: anchors are not read");
    refused("a: &x [1]\n", MOE_EFORMAT, "f:1:4: anchors are not read");
    refused("a: *x\n", MOE_EFORMAT, "f:1:4: aliases are not read");
    refused("a: !!str 1\n", MOE_EFORMAT, "f:1:4: tags are not read");
    refused("a: !x {}\n", MOE_EFORMAT, "f:1:4: tags are not read");
    refused("%TAG ! tag:x,2000:\n---\na: 1\n", MOE_EFORMAT, "f:1:1: tags are not read");
    refused("a:\n  <<: {b: 1}\n", MOE_EFORMAT, "f:2:3: merge keys are not read");
    refused("a: 1\nb: 2\na: 3\n", MOE_EFORMAT, "f:3:1: duplicate key");
    refused("? [a]\n: b\n", MOE_EFORMAT, "f:1:3: a key is one word");
    refused("? {a: b}\n: c\n", MOE_EFORMAT, "f:1:3: a key is one word");
    refused("?\n: x\n", MOE_EFORMAT, "f:1:2: a key is missing");
    refused("\"a\\0b\": x\n", MOE_EFORMAT, "f:1:1: NUL in a key");
    refused("a: 9223372036854775808\n", MOE_EFORMAT, "f:1:4: number out of range");
    refused("\xef\xbb\xbf" "a: 1\n", MOE_EFORMAT, "f:1:1: byte order mark");
    refused("a: \xc3\xa9\nb: \xff\n", MOE_EFORMAT, "f:2:4: not UTF-8");
    refused("a: 1\nb: \x01\n", MOE_EFORMAT, "f:2:4: control characters are not allowed");
    refused("a: [1\nb: 2\n", MOE_EFORMAT, "f:2:2: did not find expected ',' or ']'");
    refused("a: \"x\n", MOE_EFORMAT, "f:2:1: found unexpected end of stream");
    refused("a:\n\t- 1\n", MOE_EFORMAT,
        "f:2:1: found character that cannot start any token");
    memset(deep, '[', MOE_YAML_MAX_DEPTH + 1);
    memset(deep + MOE_YAML_MAX_DEPTH + 1, ']', MOE_YAML_MAX_DEPTH + 1);
    deep[2 * MOE_YAML_MAX_DEPTH + 2] = '\0';
    refused(deep, MOE_ELIMIT, "f:1:65: nested too deep");
    memmove(deep, deep + 1, strlen(deep));
    deep[2 * MOE_YAML_MAX_DEPTH] = '\0';
    {
        struct moe_err e = { 0, "" };
        struct moe_yaml *y;

        tap_is_int(moe_yaml_parse(deep, strlen(deep), "f", &y, &e), 0, "as deep as allowed");
        moe_yaml_free(y);
        tap_is_int(moe_yaml_parse("x", MOE_YAML_MAX_BYTES + 1, "f", &y, &e), MOE_ELIMIT,
            "too large, not read");
    }
}

static void
places(void)
{
    static const char text[] = "name: x\nlist:\n  - true\n  - true\n  - {a: null, c: 1}\n";
    static const char *const keys[] = { "a", "b", NULL };
    struct moe_err e = { 0, "" };
    struct moe_yaml *y;
    const json_t *list, *last;

    tap_is_int(moe_yaml_parse(text, sizeof(text) - 1, "dir/f.yaml", &y, &e), 0, "parsed");
    list = json_object_get(moe_yaml_root(y), "list");
    last = json_array_get(list, 2);
    tap_is_int(moe_yaml_fail(y, list, &e, "%s is %d", "x", 5), MOE_EFORMAT, "the code");
    tap_is_str(e.text, "dir/f.yaml:3:3: x is 5", "a list");
    moe_yaml_fail(y, json_array_get(list, 0), &e, "no");
    tap_is_str(e.text, "dir/f.yaml:3:5: no", "true");
    moe_yaml_fail(y, json_array_get(list, 1), &e, "no");
    tap_is_str(e.text, "dir/f.yaml:4:5: no", "another true");
    tap_ok(json_is_true(json_array_get(list, 1)), "which jansson knows as such");
    moe_yaml_fail(y, json_object_get(last, "a"), &e, "no");
    tap_is_str(e.text, "dir/f.yaml:5:9: no", "null");
    moe_yaml_fail(y, json_true(), &e, "no");
    tap_is_str(e.text, "dir/f.yaml: no", "what is not of the tree");
    moe_yaml_fail(y, NULL, &e, "no");
    tap_is_str(e.text, "dir/f.yaml: no", "nothing at all");
    tap_is_int(moe_yaml_only(y, last, keys, &e), MOE_EFORMAT, "a key too many");
    tap_is_str(e.text, "dir/f.yaml:5:15: c: unknown key", "named at its place");
    tap_is_int(moe_yaml_only(y, list, keys, &e), MOE_EFORMAT, "a list has no keys");
    tap_is_str(e.text, "dir/f.yaml:3:3: a mapping is expected", "said so");
    moe_yaml_free(y);
    moe_yaml_parse("{a: 1, b: 2}", 12, "f", &y, &e);
    tap_is_int(moe_yaml_only(y, moe_yaml_root(y), keys, &e), 0, "all keys known");
    moe_yaml_free(y);
    moe_yaml_free(NULL);
}

int
main(void)
{
    struct moe_err e = { 0, "" };
    struct moe_yaml *y;

    values();
    strictness();
    places();
    scratch_enter();
    scratch_put("f.yaml", "a: 1\na: 2\n");
    tap_is_int(moe_yaml_file("f.yaml", &y, &e), MOE_EFORMAT, "a file");
    tap_is_str(e.text, "f.yaml:2:1: duplicate key", "is named");
    tap_is_int(moe_yaml_file("none.yaml", &y, &e), MOE_ENOENT, "a missing one");
    scratch_leave();
    return tap_done();
}
