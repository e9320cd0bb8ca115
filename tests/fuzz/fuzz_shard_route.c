/* SPDX-License-Identifier: Apache-2.0 */
/* Routing traces from any bytes; the program is compiled in. */
/* covers: cmd/moe-shard/shard_route.c */
#include "cmd/moe-shard/shard_route.c"
#include "cmd/moe-shard/shard_wire.c"
#include "tests/fuzz/asfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char path[ASFILE_PATH];
    struct moe_err e = { 0, "" };
    int fd = asfile(p, n, path);
    struct shard_route_trace t;

    if (shard_route_read(path, &t, &e) == 0) {
        uint32_t id[] = { 0 }, room[] = { 4, 4 }, slot[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
        struct shard_planfile plan = { 1, 8, 2, 2, 8, id, room, slot };
        struct shard_route_flow f = { NULL, NULL };
        struct shard_wire w;

        if (shard_wire_nodes(2, 2, 0, 0, &w, &e) != 0 || shard_route_flow_new(2, &f, &e) != 0)
            abort();
        (void)shard_route_layer(&plan, 0, &w, &t, SHARD_ROUTE_RAIL, 0, t.tokens, &f, &e);
        shard_route_flow_free(&f);
        shard_wire_fini(&w);
        shard_route_fini(&t);
    }
    close(fd);
    return 0;
}
