/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Importance matrices of moe-quant from any bytes, in both forms. The program's
 * parser is no part of the library: it is compiled in.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "cmd/moe-quant/quant_imatrix.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_err e = { 0, "" };
    struct quant_imatrix *m;
    struct quant_weights w;
    enum quant_imatrix_found found;
    char path[64];
    int fd = memfd_create("imatrix", MFD_CLOEXEC);
    float h[64];

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (quant_imatrix_open(path, &m, &e) != 0) {
        if (m != NULL || e.code == 0 || e.text[0] == '\0')
            abort();
        close(fd);
        return 0;
    }
    for (int proj = 0; proj < MOE_PROJ_N; proj++) {
        for (int x = -1; x < 3; x++) {
            int rc = quant_imatrix_find(m, x < 0 ? MOE_ROLE_ATTN : MOE_ROLE_EXPERT,
                (enum moe_proj)proj, 0, x, 4, &w, &found, &e);

            if (rc == 0 && found == QUANT_IMATRIX_HERE &&
                quant_imatrix_read(m, &w, 4, h, &e) == 0 && !(h[0] >= 0))
                abort();
        }
    }
    quant_imatrix_close(m);
    close(fd);
    return 0;
}
