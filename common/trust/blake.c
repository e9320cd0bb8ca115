/* SPDX-License-Identifier: Apache-2.0 */
/* Owns BLAKE2b of files, for the manifests and signatures that use it. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "common/trust/blake.h"

#define PIECE ((size_t)256 << 10)

int
moe_blake_fd(int fd, const char *name, unsigned char sum[static MOE_BLAKE_LEN], struct moe_err *e)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    char *p = malloc(PIECE);
    off_t at = 0;
    ssize_t n = 1;
    int rc = 0;

    if (c == NULL || p == NULL || EVP_DigestInit_ex(c, EVP_blake2b512(), NULL) != 1)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    while (rc == 0 && n != 0) {
        if ((n = pread(fd, p, PIECE, at)) < 0 && errno != EINTR)
            rc = moe_err_sys(e, MOE_EIO, errno, "%s", name);
        else if (n > 0 && EVP_DigestUpdate(c, p, (size_t)n) != 1)
            rc = moe_err_set(e, MOE_EIO, "%s: OpenSSL failed", name);
        at += n > 0 ? n : 0;
    }
    if (rc == 0 && EVP_DigestFinal_ex(c, sum, NULL) != 1)
        rc = moe_err_set(e, MOE_EIO, "%s: OpenSSL failed", name);
    free(p);
    EVP_MD_CTX_free(c);
    return rc;
}
