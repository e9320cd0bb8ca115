/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 of many files, or of many ranges of files, by a team of threads. A
 * thread advances two of them together, which is nearly twice as fast; a lone
 * file is read by one thread and digested by another. Bytes are read, not
 * mapped: a bad sector or a file that shrinks is an error and not a signal.
 * Memory: under 1 MiB a thread, whatever the sizes.
 */
#ifndef MOE_TRUST_DIGESTQ_H
#define MOE_TRUST_DIGESTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/base/progress.h"
#include "common/trust/digest.h"

#define MOE_DIGESTQ_REST UINT64_MAX      /* to the end */
#define MOE_DIGESTQ_HERE UINT64_MAX      /* from where the descriptor stands: a pipe */

struct moe_digestq_job {
    /* Given. */
    const char *name;       /* for messages, borrowed */
    int fd;                 /* open for reading, stays the caller's; -1: open() gives it */
    uint64_t at;            /* first byte, or MOE_DIGESTQ_HERE */
    uint64_t len;           /* bytes, or MOE_DIGESTQ_REST */
    bool leaf;              /* a zero byte goes before them: a leaf of merkle.h */
    /* Result. */
    int rc;                 /* 0 or MOE_E* */
    uint64_t bytes;         /* that were digested */
    unsigned char sum[MOE_DIGEST_LEN];
    char *why;              /* text of a failure until done() has been called, or NULL */
};

struct moe_digestq {
    struct moe_digestq_job *jobs;
    size_t n;

    /*
     * Open job i when its turn comes: a descriptor that is closed after, or a
     * negative MOE_E*. Called by any thread. NULL if all jobs have their fd.
     */
    int (*open)(void *ctx, size_t i, struct moe_err *e);

    /*
     * Job i is done: called in ascending order, one at a time, by any thread.
     * e has the text when job i failed. A negative result, with its text in e,
     * ends the whole run.
     */
    int (*done)(void *ctx, size_t i, struct moe_err *e);

    void *ctx;
    struct moe_progress *progress;      /* told of bytes, or NULL */
};

/*
 * Digest all jobs. 0 when all were done, whether or not some failed; or what
 * done() returned, MOE_ESTOP, MOE_ENOMEM. A job fails with what open()
 * returned, MOE_EIO (reading) or MOE_EFORMAT (ends before len).
 */
int moe_digestq_run(const struct moe_digestq *q, struct moe_pool *pool, struct moe_err *e);

#endif
