/* SPDX-License-Identifier: Apache-2.0 */
/* A first placement: spare slots to the largest loads a copy, copies to the emptiest devices. */
#ifndef MOE_SHARD_SEED_H
#define MOE_SHARD_SEED_H

#include "cmd/moe-shard/shard_search.h"
#include "common/base/err.h"

/*
 * Fill all slots. parts > 1: no more copies of over 1/parts of a mean device than parts - 1 a
 * device, as far as can be; 0: no such limit. Errors: MOE_EUNSUP (two copies would have to be on
 * one device).
 */
int shard_seed(struct shard_search *s, size_t parts, struct moe_err *e);

#endif
