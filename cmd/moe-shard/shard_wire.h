/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is between the devices of a plan: how near each is to each other, and the
 * seconds of a byte. A wire is either a pair's own (NVLinks from one device to
 * the other), or shares the ports of its two devices with their other wires.
 */
#ifndef MOE_SHARD_WIRE_H
#define MOE_SHARD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/system/topo.h"

struct shard_wire_pair {
    uint32_t far;               /* 0: the same device; of two others the smaller is the nearer */
    bool own;                   /* no other pair slows it */
    double per_byte;            /* seconds; 0: no time is reckoned */
};

struct shard_wire {
    size_t n, nodes;            /* devices; nodes of as many each, in a row */
    struct shard_wire_pair *pair;   /* [n][n], the same both ways */
    struct moe_topo topo;       /* n 0 when it was not made of one */
    size_t *device;             /* [n] of the topology */
};

/* n devices on nodes of as many each; bytes a second within a node and beyond, 0: no time. */
int shard_wire_nodes(size_t n, size_t nodes, double within, double beyond, struct shard_wire *out,
    struct moe_err *e);

/*
 * The accelerators of a topology file in its order (network cards are none). A bandwidth that it
 * does not tell is looked up in `classes` ("NV=25G,SYS=10G": bytes a second one way, of one NVLink;
 * NULL: none). Nodes are its NVLink islands, or else its NUMA nodes, when these are of
 * equal size and in a row; else there is one node. Errors: reading's, MOE_EFORMAT, MOE_EUSAGE.
 */
int shard_wire_topo(const char *path, const char *classes, struct shard_wire *out,
    struct moe_err *e);

void shard_wire_fini(struct shard_wire *w);

/*
 * Seconds of an exchange of bytes [n][n], from row to column: of the slowest of all own wires and
 * all ports, each way. Work: n x n.
 */
double shard_wire_time(const struct shard_wire *w, const double *bytes);

/* A wire or a port that bytes went over, both ways. */
struct shard_wire_use { size_t a, b; double bytes, seconds; };   /* a == b: the port of a */

/* All own wires, then all ports that are used by some pair; freed by the caller, *n of them. */
struct shard_wire_use *shard_wire_uses(const struct shard_wire *w, const double *bytes, size_t *n,
    struct moe_err *e);

/* Name of a device, as in the topology or its number. */
void shard_wire_name(const struct shard_wire *w, size_t g, char name[MOE_TOPO_NAME]);

#endif
