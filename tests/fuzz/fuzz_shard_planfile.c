/* SPDX-License-Identifier: Apache-2.0 */
/* Plans from any bytes, written and read again; the program is compiled in. */
/* covers: cmd/moe-shard/shard_planfile.c */
#include "cmd/moe-shard/shard_planfile.c"
#include "tests/fuzz/asfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char path[ASFILE_PATH];
    struct moe_err e = { 0, "" };
    int fd = asfile(p, n, path);
    static const char *const names[] = { "x", NULL };
    struct shard_planfile a, b;

    if (shard_planfile_read(path, &a, &e) == 0) {
        struct moe_buf text = MOE_BUF_INIT;
        char again[ASFILE_PATH];
        int fd2;

        if (shard_planfile_write(&a, names, &text, &e) != 0)
            abort();
        fd2 = asfile((const uint8_t *)text.p, text.len, again);
        if (shard_planfile_read(again, &b, &e) != 0 || b.slots != a.slots ||
            memcmp(a.slot, b.slot, a.layers * a.slots * sizeof(*a.slot)) != 0)
            abort();
        for (size_t i = 0; i < a.layers; i++) {
            if (shard_planfile_layer(&a, a.id[i]) != i)
                abort();
        }
        shard_planfile_fini(&a);
        shard_planfile_fini(&b);
        moe_buf_fini(&text);
        close(fd2);
    }
    close(fd);
    return 0;
}
