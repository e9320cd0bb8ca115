/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of experts from any bytes; the program is compiled in. */
/* covers: cmd/moe-shard/shard_affine.c */
#include "cmd/moe-shard/shard_affine.c"
#include "tests/fuzz/asfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Loads are not what is tried here. */
double
shard_place_cost(const struct shard_place_in *in, const uint32_t *slot)
{
    return in->load[slot[0]];
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char path[ASFILE_PATH];
    struct moe_err e = { 0, "" };
    int fd = asfile(p, n, path);
    struct shard_affine_pairs pairs;

    if (shard_affine_read(path, 8, &pairs, &e) == 0) {
        uint32_t room[] = { 4, 4 }, a[] = { 0, 2, 4, 6, 1, 3, 5, 7 }, b[8];
        double load[] = { .5, .1, .1, .3, .2, .2, .4, .2 }, speed[] = { 1, 1 };
        struct shard_place_in in = { 8, 2, 1, load, room, speed };

        memcpy(b, a, sizeof(b));
        for (size_t i = 0; i < pairs.n; i++) {
            (void)shard_affine_share(&in, &pairs.links[i], a, b);
            (void)shard_affine_improve(&in, &pairs.links[i], a, 2, b, &e);
        }
        shard_affine_fini(&pairs);
    }
    close(fd);
    return 0;
}
