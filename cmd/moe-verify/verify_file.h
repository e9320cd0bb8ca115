/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a command line names: opening what a person or a list named,
 * and walking through directories.
 */
#ifndef MOE_VERIFY_FILE_H
#define MOE_VERIFY_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/err.h"

#define VERIFY_FILE_MAX_DEPTH 64    /* directories within directories */

/*
 * Open path, relative to the current directory; symbolic links are followed.
 * Only a regular file is opened: a named pipe would block, a device act.
 * Returns the descriptor, MOE_ENOENT (no such file) or MOE_EIO.
 */
int verify_file_open(const char *path, struct moe_err *e);

struct verify_files {
    struct verify_file {
        const char *name;       /* as it is listed */
        const char *rel;        /* beneath the root, or NULL: name is the path */
        size_t root;
        uint64_t bytes;         /* when it was found */
    } *f;
    size_t n, cap;
    struct verify_root { int fd; const char *name; } *roots;
    size_t n_roots, cap_roots;
    size_t troubles;            /* entries that could not be taken, each with a line on stderr */
    struct moe_arena text;
};

#define VERIFY_FILES_INIT { NULL, 0, 0, NULL, 0, 0, 0, MOE_ARENA_INIT }

/*
 * Add an operand: "-" or a path as it is; of a directory every regular file
 * beneath, in order of name. Inside it links to directories, links that lead
 * nowhere and what cannot be read are troubles; pipes, sockets and devices are
 * left out with a word. Errors: MOE_ENOENT, MOE_EIO, MOE_ENOMEM, MOE_ELIMIT,
 * MOE_EFORMAT (an empty directory).
 */
int verify_file_add(struct verify_files *w, const char *operand, struct moe_err *e);

/* Open file i: beneath its directory if it was found in one. As verify_file_open(). */
int verify_file_at(const struct verify_files *w, size_t i, struct moe_err *e);

void verify_file_fini(struct verify_files *w);

#endif
