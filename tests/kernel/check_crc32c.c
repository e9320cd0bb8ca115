/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C: the examples of RFC 3720, B.4, and the variants at all lengths. */
#include <string.h>

#include "tests/kernel/checkkern.h"
#include "tests/tap.h"

static void
examples(const struct moe_kernels *k)
{
    static const uint8_t scsi[48] = { 0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14,
        [31] = 0x18, 0x28, [40] = 0x02 };
    uint8_t b[32];

    memset(b, 0, sizeof(b));
    tap_is_int(k->crc32c(0, b, 32), 0x8a9136aa, "%s: 32 bytes of zeros", k->tier);
    memset(b, 0xff, sizeof(b));
    tap_is_int(k->crc32c(0, b, 32), 0x62a8ab43, "%s: 32 bytes of ones", k->tier);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    tap_is_int(k->crc32c(0, b, 32), 0x46dd794e, "%s: incrementing", k->tier);
    for (int i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    tap_is_int(k->crc32c(0, b, 32), 0x113fdb5c, "%s: decrementing", k->tier);
    tap_is_int(k->crc32c(0, scsi, sizeof(scsi)), 0xd9963a56, "%s: an iSCSI command", k->tier);
    tap_is_int(k->crc32c(0, "123456789", 9), 0xe3069283, "%s: \"123456789\"", k->tier);
    tap_is_int(k->crc32c(k->crc32c(0, "1234", 4), "56789", 5), 0xe3069283, "%s: continued",
        k->tier);
}

static void
tier(const struct moe_kernels *k)
{
    ck_begin("crc32c", k->tier);
    for (size_t n = 0; n < 20000; n += n < 300 ? 1 : 257) {
        uint8_t *p = ck_buf(0, n);
        uint32_t crc = ck_rand();

        for (size_t i = 0; i < n; i++)
            p[i] = (uint8_t)ck_rand();
        ck_expect(ck_ref()->crc32c(crc, p, n) == k->crc32c(crc, p, n), "n %zu", n);
    }
    ck_end();
}

static void
run(void)
{
    const struct moe_kernels *k;

    examples(ck_ref());
    for (size_t t = 0; (k = ck_tier(t)) != NULL; t++) {
        examples(k);
        tier(k);
    }
}

const struct ck_check check_crc32c = { "crc32c", run, NULL };
