/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a range of a file has another digest than it should: it is read once more
 * from the page cache and once from the disk, past the cache (O_DIRECT), and
 * digested by OpenSSL, which shares no code with the first digest.
 */
#ifndef MOE_TRUST_REREAD_H
#define MOE_TRUST_REREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/err.h"
#include "common/trust/digest.h"

enum moe_reread {
    MOE_REREAD_CHANGED,     /* the file was written while it was checked */
    MOE_REREAD_TRANSIENT,   /* memory and disk are well: the processor, or its memory, erred */
    MOE_REREAD_CACHE,       /* the disk is well, the page cache is not */
    MOE_REREAD_DISK,        /* the disk is not well */
    MOE_REREAD_UNKNOWN      /* wrong in memory, and the disk cannot be read past the cache */
};

/* "disk", "page cache" ... */
const char *moe_reread_name(enum moe_reread r);

/*
 * Judge the range [at, at + len) of fd, which should have digest sum and was
 * found to have another. before: what fstat() said when the file was opened.
 * Errors: MOE_EIO, MOE_EFORMAT (ends early), MOE_ENOMEM, MOE_ESTOP.
 */
int moe_reread_judge(int fd, const char *name, uint64_t at, uint64_t len,
    const unsigned char sum[static MOE_DIGEST_LEN], const struct stat *before,
    enum moe_reread *out, struct moe_err *e);

/*
 * Digest the range past the page cache. *direct is false when the file system
 * has no such way, and nothing was digested then.
 */
int moe_reread_direct(int fd, const char *name, uint64_t at, uint64_t len,
    unsigned char sum[static MOE_DIGEST_LEN], bool *direct, struct moe_err *e);

#endif
