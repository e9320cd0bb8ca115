/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of topologies share. */
#ifndef MOE_SYSTEM_TOPO_FORM_H
#define MOE_SYSTEM_TOPO_FORM_H

#include "common/base/xml.h"
#include "common/system/topo.h"

/* One more device; its name must be new. Errors: MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM. */
int moe_topo_add(struct moe_topo *t, const char *name, const char *kind, const char *file,
    struct moe_err *e);

/* The device of this name, or t->n. */
size_t moe_topo_find(const struct moe_topo *t, const char *name, size_t len);

/* Links between all devices, all MOE_TOPO_SELF: not known yet. */
int moe_topo_links(struct moe_topo *t, struct moe_err *e);

/*
 * NVLinks counted: direct [n][n], and to switches [n]. Sets MOE_TOPO_NV between those that have
 * some to each other, or both to switches. Errors: MOE_EFORMAT (not as many both ways).
 */
int moe_topo_nvlinks(struct moe_topo *t, const uint32_t *direct, const uint32_t *switched,
    const char *file, struct moe_err *e);

/* Bandwidth of what has none: of PCIe the slower of both devices' own links. */
void moe_topo_pci(struct moe_topo *t);

/* Readers of one form; file is for messages. */
int moe_topo_smi(char *text, const char *file, struct moe_topo *t, struct moe_err *e);
int moe_topo_lines(char *text, const char *file, struct moe_topo *t, struct moe_err *e);
int moe_topo_yaml(const char *p, size_t n, const char *file, struct moe_topo *t,
    struct moe_err *e);
int moe_topo_nccl(const struct moe_xml *root, const char *file, struct moe_topo *t,
    struct moe_err *e);
int moe_topo_hwloc(const struct moe_xml *root, const char *file, bool cpus, struct moe_topo *t,
    struct moe_err *e);

#endif
