/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens to the devices of their experts, by a plan: what each device computes,
 * and how many tokens go from each device to each other. Token t of a step of n lies on
 * device t * devices / n. Of an expert's copies it takes the nearest (shard_wire.h:
 * on its own device, else on its own node or over the best class of link); of several
 * that are alike the (t mod their number)-th.
 */
#ifndef MOE_SHARD_ROUTE_H
#define MOE_SHARD_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/moe-shard/shard_planfile.h"
#include "cmd/moe-shard/shard_wire.h"
#include "common/base/err.h"

/* A trace: which experts each token chose, layer by layer. */
struct shard_route_choice { uint32_t layer, first, n; uint64_t token; };

struct shard_route_trace {
    struct shard_route_choice *choice;  /* [n] as in the file */
    size_t n;
    uint32_t *experts;          /* of all choices, one after the other */
    size_t n_experts, cap, cap_experts;
    uint64_t tokens;            /* the highest number and one */
};

/* Lines of layer, token and experts (commas between), with their heading. Errors: MOE_EFORMAT. */
int shard_route_read(const char *path, struct shard_route_trace *out, struct moe_err *e);
void shard_route_fini(struct shard_route_trace *t);

enum shard_route_way {
    SHARD_ROUTE_DIRECT,         /* a message to each device that needs the token */
    SHARD_ROUTE_RAIL            /* one to each node, to the device of equal number there, then on */
};

/* Counts of one layer and one run of tokens. */
struct shard_route_flow {
    uint64_t *load;             /* [devices] (token, expert) pairs */
    uint64_t *sent;             /* [devices][devices] tokens */
};

int shard_route_flow_new(size_t devices, struct shard_route_flow *f, struct moe_err *e);
void shard_route_flow_free(struct shard_route_flow *f);

/*
 * Add a step: tokens [from, to) of the trace's layer `id`, which is layer l of the plan.
 * Errors: MOE_EFORMAT (an expert the plan does not have), MOE_ENOMEM.
 */
int shard_route_layer(const struct shard_planfile *p, size_t l, const struct shard_wire *w,
    const struct shard_route_trace *t, enum shard_route_way way, uint64_t from, uint64_t to,
    struct shard_route_flow *f, struct moe_err *e);

#endif
