/* SPDX-License-Identifier: Apache-2.0 */
/* pack-quantized and int-quantized against compressed-tensors 0.20.1. */
#include <string.h>

#include "tests/golden_qmat.h"
#include "tests/tap.h"

static const char *const files[] = {
    "int3_sym_g64", "int4_asym_g128", "int4_asym_g64", "int4_sym_channel", "int4_sym_g128",
    "int4_sym_g128_f16", "int4_sym_g32", "int4_sym_g64", "int8_asym_channel_pack",
    "int8_sym_channel_w8a8", "int8_sym_g128_pack",
};

int
main(void)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        golden_qmat_ct(files[i]);
    return tap_done();
}
