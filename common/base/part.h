/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporaries: what an output is written to before it gets its name. They lie
 * beside the destination as ".NAME.XXXXXX.part", files or directories, and are
 * locked (flock) while their maker lives; those that nobody holds a lock on are
 * left over and removed when the same output is begun again.
 *
 * A struct moe_part owns its descriptors and names; moe_part_fini() ends it.
 */
#ifndef MOE_BASE_PART_H
#define MOE_BASE_PART_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "common/base/err.h"

/* Directories below directories that moe_part_drop() and the exchange remove. */
#define MOE_PART_MAX_DEPTH 64

struct moe_part {
    char *path;                 /* as the caller wrote it, for messages */
    char *real;                 /* links resolved */
    const char *name;           /* last component of real */
    char tmp[NAME_MAX + 1];     /* "" when there is no temporary */
    int dirfd;                  /* where both lie */
    int fd;                     /* the temporary */
    bool kept;                  /* by moe_part_keep() */
    bool exists;                /* something has the name, and this is what: */
    struct stat old;
};

#define MOE_PART_INIT { .dirfd = -1, .fd = -1 }

/*
 * Find out where path leads: a link is followed, so that its target is what
 * will be replaced; a link to nothing is refused. Errors: MOE_EIO, MOE_ENOMEM.
 */
int moe_part_find(struct moe_part *p, const char *path, struct moe_err *e);

/*
 * Remove what is left over, make the temporary file or directory and lock it.
 * It gets the permissions of what it will replace. Errors: MOE_EIO.
 */
int moe_part_begin(struct moe_part *p, bool directory, struct moe_err *e);

/*
 * Begin a directory that outlives its maker: NAME.part beside the destination,
 * made or found, and locked. moe_part_drop() leaves it. Errors: MOE_EIO,
 * MOE_EEXIST (another process works on it).
 */
int moe_part_keep(struct moe_part *p, struct moe_err *e);

enum moe_part_how {
    MOE_PART_NEW,       /* nothing may have the name: MOE_EEXIST */
    MOE_PART_REPLACE,   /* a file, or an empty directory, may */
    MOE_PART_EXCHANGE   /* the two change names, and what was there is removed */
};

/*
 * Give the temporary its name and make the directory durable. The caller has
 * made the content durable. Errors: MOE_EEXIST and MOE_EIO; *named tells
 * whether the name was given nevertheless, and only something after it failed.
 */
int moe_part_publish(struct moe_part *p, enum moe_part_how how, bool *named, struct moe_err *e);

/* Remove the temporary, if there still is one. */
void moe_part_drop(struct moe_part *p);

void moe_part_fini(struct moe_part *p);

#endif
