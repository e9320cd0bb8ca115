/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_rewrite IN OUT: a GGUF file again, through our reader and our writer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/read.h"
#include "common/formats/ggufw.h"

/* The tensors' bytes, each followed by zeros up to where the next begins. */
static int
copy(FILE *out, int fd, const char *path, const struct moe_gguf *g, const struct moe_ggufw *w,
    struct moe_err *e)
{
    for (size_t i = 0; i < moe_gguf_n(g); i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);
        uint64_t end = i + 1 < moe_gguf_n(g) ? moe_ggufw_offset(w, i + 1) : moe_ggufw_data(w);
        uint64_t room = end - moe_ggufw_offset(w, i);
        void *p = calloc(1, (size_t)room + 1);
        int rc = p == NULL ? moe_err_set(e, MOE_ENOMEM, "out of memory") :
            moe_read_at(fd, path, p, (size_t)t->bytes, moe_gguf_data_at(g) + t->offset, e);

        if (rc == 0 && fwrite(p, 1, (size_t)room, out) != room)
            rc = moe_err_set(e, MOE_EIO, "cannot write");
        free(p);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_ggufw *w = moe_ggufw_new();
    struct moe_gguf *g = NULL;
    struct moe_err e = { 0, "" };
    FILE *out = NULL;
    int fd, rc;

    if (w == NULL || argc != 3 || (fd = open(argv[1], O_RDONLY)) < 0 ||
        (out = fopen(argv[2], "wb")) == NULL) {
        fprintf(stderr, "usage: gguf_rewrite IN OUT\n");
        return 2;
    }
    rc = moe_gguf_fd(fd, argv[1], &g, &e);
    for (size_t i = 0; rc == 0 && i < moe_gguf_kvs(g); i++)
        moe_ggufw_copy(w, moe_gguf_kv(g, i));
    for (size_t i = 0; rc == 0 && i < moe_gguf_n(g); i++) {
        const struct moe_gguf_tensor *t = moe_gguf_at(g, i);

        moe_ggufw_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    if (rc == 0 && (rc = moe_ggufw_emit(w, &b, &e)) == 0 &&
        fwrite(b.p, 1, b.len, out) != b.len)
        rc = moe_err_set(&e, MOE_EIO, "cannot write");
    if (rc == 0)
        rc = copy(out, fd, argv[1], g, w, &e);
    if (fclose(out) != 0 && rc == 0)
        rc = moe_err_set(&e, MOE_EIO, "cannot write");
    if (rc != 0)
        fprintf(stderr, "gguf_rewrite: %s\n", e.text);
    moe_gguf_free(g);
    moe_ggufw_free(w);
    moe_buf_fini(&b);
    close(fd);
    return rc == 0 ? 0 : 2;
}
