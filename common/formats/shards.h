/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.safetensors.index.json: which file holds which tensor. Parsed without
 * opening anything, then compared with the headers of the files both ways.
 * Names and files belong to the moe_shards.
 *
 * metadata.total_size must be a number when it is there, but its value is not
 * compared: writers disagree on what it counts (tied tensors, padding).
 */
#ifndef MOE_FORMATS_SHARDS_H
#define MOE_FORMATS_SHARDS_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/formats/safet.h"

#define MOE_SHARDS_MAX_BYTES ((size_t)256 << 20)    /* of the text */
#define MOE_SHARDS_MAX_FILES 100000

struct moe_shards;

/*
 * File names must end in ".safetensors", be relative and hold no empty, "."
 * or ".." component; opening them beneath the directory is the caller's.
 * Errors: MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_shards_parse(const char *json, size_t n, const char *name, struct moe_shards **out,
    struct moe_err *e);
void moe_shards_free(struct moe_shards *s);

/* The files by name, ascending. */
size_t moe_shards_files(const struct moe_shards *s);
const char *moe_shards_file(const struct moe_shards *s, size_t f);

/*
 * Header h of file f holds the tensors the index gives it and no other.
 * Once this holds for every file, no tensor is in two. Errors: MOE_EFORMAT.
 */
int moe_shards_check(const struct moe_shards *s, size_t f, const struct moe_safet *h,
    struct moe_err *e);

/* Whether s is the name of a file beneath a directory by its text alone. */
bool moe_shards_name_ok(const char *s, size_t n);

#endif
