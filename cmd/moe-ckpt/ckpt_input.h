/* SPDX-License-Identifier: Apache-2.0 */
/* What `moe-ckpt save` saves: the names of its files, and the bytes of one into a saver. */
#ifndef CKPT_INPUT_H
#define CKPT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/progress.h"
#include "common/store/loader.h"
#include "common/store/saver.h"

struct ckpt_input {
    const char *path;           /* as given */
    char *only;                 /* the name in the save, when it is one file or a stream */
    enum moe_snapshot_shape shape;
    bool stream;
    int dirfd;                  /* of a directory, or -1 */
    char **name;                /* ascending */
    size_t n;
    uint64_t bytes;             /* of all files; 0 of a stream */
    uint64_t *size;             /* of each */
};

#define CKPT_INPUT_INIT { .dirfd = -1 }

/*
 * Find out what path is: a file, a directory (all its files and those one level
 * below; hidden ones are passed over) or "-". name: that of the file in the save, or NULL.
 * Errors: MOE_ENOENT, MOE_EUNSUP (deeper, or neither file nor directory).
 */
int ckpt_input_open(const char *path, const char *name, struct ckpt_input *out, struct moe_err *e);
void ckpt_input_close(struct ckpt_input *in);

/* What the bytes of a save are compared with: the parent, or nothing. */
struct ckpt_input_base {
    struct moe_loader *loader;
    struct moe_packs *packs;
    const struct moe_snapshot *snap;    /* NULL: nothing */
};

/* Give file i to the saver. Errors: MOE_EFORMAT (also: it changed meanwhile). */
int ckpt_input_save(const struct ckpt_input *in, size_t i, const struct ckpt_input_base *base,
    struct moe_saver *saver, struct moe_progress *progress, struct moe_err *e);

#endif
