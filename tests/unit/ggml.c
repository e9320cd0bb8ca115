/* SPDX-License-Identifier: Apache-2.0 */
/* Types of ggml: sizes as gguf-py 0.19.0 has them, and sizes that overflow. */
#include <stdint.h>

#include "common/formats/ggml.h"
#include "tests/tap.h"

static const struct { uint32_t type; uint64_t elements, bytes; const char *name; } want[] = {
    { 0, 1, 4, "F32" }, { 1, 1, 2, "F16" }, { 2, 32, 18, "Q4_0" }, { 6, 32, 22, "Q5_0" },
    { 8, 32, 34, "Q8_0" }, { 10, 256, 84, "Q2_K" }, { 11, 256, 110, "Q3_K" },
    { 12, 256, 144, "Q4_K" }, { 13, 256, 176, "Q5_K" }, { 14, 256, 210, "Q6_K" },
    { 23, 256, 136, "IQ4_XS" }, { 28, 1, 8, "F64" }, { 30, 1, 2, "BF16" },
    { 35, 256, 66, "TQ2_0" }, { 39, 32, 17, "MXFP4" }, { 40, 64, 36, "NVFP4" },
};

int
main(void)
{
    uint64_t e = 0, n = 0;

    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        bool yes = moe_ggml_block(want[i].type, &e, &n);

        tap_ok(yes && e == want[i].elements && n == want[i].bytes, "block of %s", want[i].name);
        tap_is_str(moe_ggml_name(want[i].type), want[i].name, "name of %s", want[i].name);
    }
    tap_ok(!moe_ggml_block(4, &e, &n) && !moe_ggml_block(UINT32_MAX, &e, &n) &&
        moe_ggml_name(5) == NULL, "types that do not exist");
    tap_ok(moe_ggml_bytes(8, (uint64_t[]){ 64, 3, 2, 1 }, &n) && n == 2 * 3 * 2 * 34, "a stack");
    tap_ok(!moe_ggml_bytes(8, (uint64_t[]){ 63, 3, 1, 1 }, &n), "part of a block");
    tap_ok(moe_ggml_bytes(24, (uint64_t[]){ INT64_MAX, 1, 1, 1 }, &n) && n == INT64_MAX, "largest");
    tap_ok(!moe_ggml_bytes(25, (uint64_t[]){ INT64_MAX, 1, 1, 1 }, &n), "twice the largest");
    tap_ok(!moe_ggml_bytes(0, (uint64_t[]){ UINT64_MAX, 2, 1, 1 }, &n), "elements overflow");
    tap_ok(moe_ggml_bytes(0, (uint64_t[]){ 0, 2, 1, 1 }, &n) && n == 0, "no rows");
    tap_ok(!moe_ggml_bytes(0, (uint64_t[]){ 0, INT64_MAX, 9, 1 }, &n), "no rows, and overflow");
    return tap_done();
}
