/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices a machine has and what is between each two of them, from
 *   nvidia-smi topo -m        its text, as on a terminal, in a log or pasted
 *   NCCL_TOPO_DUMP_FILE       <system version="1">
 *   lstopo --of xml           <topology>
 *   our own lines             as moe_topo_write() writes them, or by hand
 *   YAML                      by hand: devices, links, others
 * A description is whole and the same both ways, or it is refused.
 */
#ifndef MOE_SYSTEM_TOPO_H
#define MOE_SYSTEM_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_TOPO_MAX_DEVICES 1024
#define MOE_TOPO_MAX_BYTES ((size_t)64 << 20)
#define MOE_TOPO_MAX_NVLINKS 1024
#define MOE_TOPO_NAME 32

/* Best first, the names of nvidia-smi. */
enum moe_topo_class {
    MOE_TOPO_SELF,
    MOE_TOPO_NV,                /* so many NVLinks */
    MOE_TOPO_PIX,               /* one PCIe bridge at most */
    MOE_TOPO_PXB,               /* several */
    MOE_TOPO_PHB,               /* a host bridge */
    MOE_TOPO_NODE,              /* host bridges of one NUMA node */
    MOE_TOPO_SYS                /* sockets */
};

struct moe_topo_device {
    char name[MOE_TOPO_NAME];
    char kind[MOE_TOPO_NAME];   /* "gpu", "nic", or what a description says */
    int numa;                   /* -1: not known */
    uint64_t memory;            /* bytes; 0: not known */
    double speed;               /* beside the others; 1 when nothing is said */
    double pci;                 /* bytes a second of its own PCIe link; 0: not known */
    int sm;                     /* compute capability, 90 for 9.0; 0: not known */
};

struct moe_topo_link {
    enum moe_topo_class class;
    uint32_t links;             /* of MOE_TOPO_NV */
    double bandwidth;           /* bytes a second one way; 0: not known */
    char source[MOE_TOPO_NAME]; /* where the bandwidth is from; "" when not known */
};

struct moe_topo {
    size_t n;
    struct moe_topo_device *device;     /* [n] */
    struct moe_topo_link *link;         /* [n][n] symmetric */
};

/*
 * path "-": stdin. cpus: NUMA nodes are devices too, of kind "cpu", where hwloc tells of them.
 * Errors: MOE_EFORMAT with the place, MOE_ELIMIT, MOE_ENOMEM, and reading's.
 */
int moe_topo_read(const char *path, bool cpus, struct moe_topo *out, struct moe_err *e);
/* The same of n bytes and a NUL behind them, which are written over; name is for messages. */
int moe_topo_parse(char *p, size_t n, const char *name, bool cpus, struct moe_topo *out,
    struct moe_err *e);
/* The same of the machine this runs on, through hwloc. */
int moe_topo_here(bool cpus, struct moe_topo *out, struct moe_err *e);
void moe_topo_fini(struct moe_topo *t);

/* "NV4", "PIX": false when it is no class of two devices. */
bool moe_topo_class_read(const char *p, size_t n, struct moe_topo_link *out);

/*
 * A comment with the version, then lines with tabs: "device" name kind numa memory speed;
 * "link" a b class bandwidth source; "island" names that NVLinks connect, commas between.
 * "-": not known.
 */
void moe_topo_write(const struct moe_topo *t, struct moe_buf *b);

#endif
