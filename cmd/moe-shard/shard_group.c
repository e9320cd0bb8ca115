/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the two levels: groups to nodes, then each node's experts to its devices. */
#include <stdlib.h>

#include "cmd/moe-shard/shard_group.h"

int
shard_group_place(const struct shard_place_in *in, size_t groups, size_t nodes, uint32_t *slot,
    struct moe_err *e)
{
    size_t per = in->experts / groups, each = groups / nodes, local = each * per;
    size_t devices = in->devices / nodes, at = 0;
    double *sum = calloc(in->domains * groups, sizeof(*sum));
    double *load = calloc(in->domains * local, sizeof(*load));
    double *speed = calloc(nodes, sizeof(*speed));
    uint32_t *room = calloc(nodes, sizeof(*room)), *mine = calloc(groups, sizeof(*mine));
    struct shard_place_in top = { groups, nodes, in->domains, sum, room, speed };
    int rc = 0;

    if (sum == NULL || load == NULL || speed == NULL || room == NULL || mine == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
        goto out;
    }
    for (size_t k = 0; k < nodes; k++) {
        room[k] = (uint32_t)each;
        for (size_t g = 0; g < devices; g++)
            speed[k] += in->speed[k * devices + g];
    }
    for (size_t d = 0; d < in->domains; d++) {
        for (size_t x = 0; x < in->experts; x++)
            sum[d * groups + x / per] += in->load[d * in->experts + x];
    }
    if ((rc = shard_place_layer(&top, mine, e)) != 0)
        goto out;
    for (size_t k = 0; rc == 0 && k < nodes; k++) {
        struct shard_place_in sub = { local, devices, in->domains, load, in->room + k * devices,
            in->speed + k * devices };
        uint32_t *to = slot + at;
        size_t slots = 0;

        for (size_t g = 0; g < devices; g++)
            slots += sub.room[g];
        at += slots;
        for (size_t d = 0; d < in->domains; d++) {
            for (size_t x = 0; x < local; x++)
                load[d * local + x] = in->load[d * in->experts +
                    mine[k * each + x / per] * per + x % per];
        }
        rc = shard_place_layer(&sub, to, e);
        for (size_t i = 0; rc == 0 && i < slots; i++)
            to[i] = (uint32_t)(mine[k * each + to[i] / per] * per + to[i] % per);
    }
out:
    free(sum);
    free(load);
    free(speed);
    free(room);
    free(mine);
    return rc;
}
