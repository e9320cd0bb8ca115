/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b with 64 bytes (RFC 7693) of whole files, by OpenSSL. */
#ifndef MOE_TRUST_BLAKE_H
#define MOE_TRUST_BLAKE_H

#include "common/base/err.h"

#define MOE_BLAKE_LEN 64

/* The digest of all that regular file fd holds; name is for messages. Errors: MOE_EIO. */
int moe_blake_fd(int fd, const char *name, unsigned char sum[static MOE_BLAKE_LEN],
    struct moe_err *e);

#endif
