/* SPDX-License-Identifier: Apache-2.0 */
/* Values of GGUF metadata: each kind at its limits, and the wrong kind. */
#include <stdint.h>
#include <string.h>

#include "common/formats/ggufkv.h"
#include "tests/tap.h"

static struct moe_gguf_kv
kv(enum moe_gguf_kind kind, const void *raw, size_t len)
{
    return (struct moe_gguf_kv){ "k", kind, false, 1, raw, len };
}

static void
is_int(enum moe_gguf_kind kind, const char *raw, int64_t want)
{
    struct moe_gguf_kv x = kv(kind, raw, moe_ggufkv_size(kind));
    int64_t v = 77;

    tap_ok(moe_ggufkv_int(&x, &v) && v == want, "%s %lld", moe_ggufkv_kind_name(kind),
        (long long)want);
}

int
main(void)
{
    static const char ones[] = "\xff\xff\xff\xff\xff\xff\xff\xff";
    static const char top[] = "\xff\xff\xff\xff\xff\xff\xff\x7f";
    static const char words[] = "\2\0\0\0\0\0\0\0a\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0b";
    struct moe_gguf_kv x;
    const char *p = NULL;
    size_t n = 0, at = 0;
    int64_t v;
    double r = 0;
    bool yes = false;

    is_int(MOE_GGUF_U8, ones, 255);
    is_int(MOE_GGUF_I8, ones, -1);
    is_int(MOE_GGUF_U16, ones, 65535);
    is_int(MOE_GGUF_I16, ones, -1);
    is_int(MOE_GGUF_U32, ones, 4294967295);
    is_int(MOE_GGUF_I32, ones, -1);
    is_int(MOE_GGUF_I64, ones, -1);
    is_int(MOE_GGUF_U64, top, INT64_MAX);
    is_int(MOE_GGUF_I16, "\x00\x80", -32768);
    x = kv(MOE_GGUF_U64, ones, 8);
    tap_ok(!moe_ggufkv_int(&x, &v), "2^64 - 1 is no int64");
    x = kv(MOE_GGUF_F32, "\0\0\x20\xc1", 4);
    tap_ok(moe_ggufkv_real(&x, &r) && r == -10.0, "-10.0f");
    tap_ok(!moe_ggufkv_int(&x, &v) && !moe_ggufkv_bool(&x, &yes) && !moe_ggufkv_str(&x, &p, &n),
        "a float is nothing else");
    x = kv(MOE_GGUF_F64, "\0\0\0\0\0\0\xf8\x3f", 8);
    tap_ok(moe_ggufkv_real(&x, &r) && r == 1.5, "1.5");
    x = kv(MOE_GGUF_BOOL, "\1", 1);
    tap_ok(moe_ggufkv_bool(&x, &yes) && yes && !moe_ggufkv_int(&x, &v) &&
        !moe_ggufkv_real(&x, &r), "true");
    x = kv(MOE_GGUF_STRING, words, 10);
    tap_ok(moe_ggufkv_str(&x, &p, &n) && n == 2 && memcmp(p, "a", 2) == 0, "a string with a NUL");
    x = (struct moe_gguf_kv){ "k", MOE_GGUF_STRING, true, 3, (const unsigned char *)words, 27 };
    tap_ok(!moe_ggufkv_str(&x, &p, &n), "an array is no string");
    tap_ok(moe_ggufkv_str_next(&x, &at, &p, &n) && n == 2, "first of an array");
    tap_ok(moe_ggufkv_str_next(&x, &at, &p, &n) && n == 0, "second, empty");
    tap_ok(moe_ggufkv_str_next(&x, &at, &p, &n) && n == 1 && *p == 'b', "third");
    tap_ok(!moe_ggufkv_str_next(&x, &at, &p, &n), "no fourth");
    x = (struct moe_gguf_kv){ "k", MOE_GGUF_I16, true, 3,
        (const unsigned char *)"\1\0\2\0\xfd\xff", 6 };
    tap_ok(!moe_ggufkv_int(&x, &v), "an array is no integer");
    tap_ok(moe_ggufkv_int_at(&x, 2, &v) && v == -3, "an element");
    tap_ok(!moe_ggufkv_int_at(&x, 3, &v) && !moe_ggufkv_real_at(&x, 0, &r), "past the end");
    return tap_done();
}
