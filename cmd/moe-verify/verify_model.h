/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as its signature sees it: the regular files of a directory, or one
 * file, less what is ignored; and how it differs from a statement.
 */
#ifndef MOE_VERIFY_MODEL_H
#define MOE_VERIFY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/trust/statement.h"

#define VERIFY_MODEL_MAX_DEPTH 64

struct verify_model {
    const char *path;
    int fd;                     /* of the directory; of one file when `single` */
    bool single;
    struct verify_model_file { const char *rel; uint64_t bytes; } *f;
    size_t n, cap;              /* sorted by name */
    size_t odd;                 /* links, pipes and the like that a signature cannot cover */
    struct moe_arena text;
};

#define VERIFY_MODEL_INIT { .fd = -1, .text = MOE_ARENA_INIT }

/*
 * Find the files of path by the rules of s (links, ignored paths); `skip`, or
 * NULL, is the bundle itself. Each thing that cannot be signed gets a line on
 * standard output. Errors: MOE_EIO, MOE_ENOENT, MOE_ENOMEM, MOE_ELIMIT.
 */
int verify_model_open(struct verify_model *m, const char *path, const struct moe_statement *s,
    const struct stat *skip, struct moe_err *e);

/* 0: the files are those of s, 1: not, with a line for each difference. */
int verify_model_compare(const struct verify_model *m, struct moe_statement *s, struct moe_err *e);

/* Make s over all the files. Errors: MOE_EFORMAT (no file, a name not in UTF-8), of reading. */
int verify_model_state(const struct verify_model *m, struct moe_statement *s, struct moe_err *e);

void verify_model_close(struct verify_model *m);

#endif
