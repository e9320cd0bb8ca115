/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of experts from any bytes; the program is compiled in. */
/* covers: cmd/moe-shard/shard_load.c */
#include "cmd/moe-shard/shard_load.c"
#include "tests/fuzz/asfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char path[ASFILE_PATH];
    struct moe_err e = { 0, "" };
    int fd = asfile(p, n, path);
    struct shard_load l;

    if (shard_load_read(path, &l, &e) == 0) {
        if (l.layers == 0 || l.experts == 0)
            abort();
        shard_load_fini(&l);
    } else if (e.code == 0 || e.text[0] == '\0') {
        abort();
    }
    close(fd);
    return 0;
}
