/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model's tensors over links of unequal speed, so that all are done at about
 * the same time: bytes in proportion to bandwidth, nothing lost, nothing twice.
 */
#ifndef MOE_SHARD_SHARE_H
#define MOE_SHARD_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define SHARD_SHARE_MAX 4096    /* links */

/* "25G,25G,12.5G": bytes a second each. Freed by the caller, *n of them. Errors: MOE_EUSAGE. */
int shard_share_links(const char *text, double **out, size_t *n, struct moe_err *e);

/*
 * Whole bytes of each link by largest remainder (Hamilton's method): they sum to total, each within
 * 1 of its share. Of equal remainders the first.
 */
void shard_share_bytes(uint64_t total, const double *bandwidth, size_t links, uint64_t *out);

/*
 * A link for each item of size[n]: the largest first, each to the link whose share has most room
 * left for its bandwidth, then single items moved and exchanged as long as the last link is done
 * earlier. Every link gets one. Errors: MOE_EUNSUP (fewer items than links), MOE_ENOMEM.
 */
int shard_share_deal(const uint64_t *size, size_t n, const double *bandwidth, size_t links,
    uint32_t *link, struct moe_err *e);

#endif
