/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who works on a store: one writer at a time, and any number of readers who must
 * not lose what they read. Both are locks that the kernel holds for an open
 * file (OFD locks), so that whoever dies lets go.
 *
 * A reader locks the newest file of STORE/lease, an epoch. A collector moves
 * what nobody refers to into STORE/trash/EPOCH, begins the next epoch, and
 * deletes the trash of an epoch when no reader of it or an earlier one is left.
 * Descriptors that are given out are the caller's; closing one ends the lock.
 */
#ifndef MOE_STORE_LEASE_H
#define MOE_STORE_LEASE_H

#include <stdint.h>

#include "common/base/err.h"

/*
 * Become the writer of the store at dirfd (path for messages), waiting at most
 * wait_ms. Returns the descriptor, or MOE_EEXIST (another writer is at work),
 * MOE_EIO, MOE_ESTOP.
 */
int moe_lease_write(int dirfd, const char *path, int wait_ms, struct moe_err *e);

/* Become a reader; needs no permission to write. Returns the descriptor or MOE_E*. */
int moe_lease_read(int dirfd, const char *path, struct moe_err *e);

/* The newest epoch. Errors: MOE_EIO, MOE_EFORMAT (there is none). */
int moe_lease_epoch(int dirfd, const char *path, uint64_t *epoch, struct moe_err *e);

/* Begin the next epoch, durably. The caller is the writer. */
int moe_lease_next(int dirfd, const char *path, struct moe_err *e);

/*
 * Whether readers may be left of an epoch up to this one: 1 or 0; if 0, no reader
 * begins in one of them either. The caller is the writer; epoch is not the newest.
 */
int moe_lease_held(int dirfd, const char *path, uint64_t epoch, struct moe_err *e);

#endif
