/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest of one save: when it was made, its files, and for each the
 * record that lists its parts. moe-store(5) has the layout. A SHA-256 of all
 * before it stands at the end; with the ids inside, it pins every byte.
 *
 * Names and pairs of a decoded manifest live in its arena.
 */
#ifndef MOE_STORE_SNAPSHOT_H
#define MOE_STORE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/store/pack.h"

#define MOE_SNAPSHOT_MAX ((size_t)64 << 20)     /* bytes of a manifest */
#define MOE_SNAPSHOT_FILES 100000
#define MOE_SNAPSHOT_PAIRS 1000
#define MOE_SNAPSHOT_TEXT 65535                 /* bytes of a name, a key, a value */
#define MOE_SNAPSHOT_NONE UINT64_MAX            /* no parent */

enum moe_snapshot_shape { MOE_SNAPSHOT_FILE = 1, MOE_SNAPSHOT_DIR = 2 };
enum moe_snapshot_form { MOE_SNAPSHOT_OPAQUE = 0, MOE_SNAPSHOT_SAFET = 1 };

struct moe_snapshot_file {
    const char *name;           /* relative, at most one '/' */
    enum moe_snapshot_form form;
    uint64_t size, parts;
    struct moe_pack_ref list;   /* type MOE_PACK_IS_FILE; type 0 for an empty file */
};

struct moe_snapshot_pair { const char *key, *value; };

struct moe_snapshot {
    uint64_t id, time;          /* seconds since 1970 */
    uint64_t parent;            /* what its deltas were made against, or MOE_SNAPSHOT_NONE */
    enum moe_snapshot_shape shape;
    struct moe_snapshot_file *files;    /* by name, ascending */
    size_t n;
    struct moe_snapshot_pair *pairs;    /* in the order they were given */
    size_t n_pairs;
    unsigned char sum[MOE_DIGEST_LEN];  /* set by encoding and decoding */
    struct moe_arena text;
};

#define MOE_SNAPSHOT_INIT { .parent = MOE_SNAPSHOT_NONE, .text = MOE_ARENA_INIT }

/* Room for one file or pair more, names copied; files must come in order. */
int moe_snapshot_add(struct moe_snapshot *s, const struct moe_snapshot_file *f, struct moe_err *e);
int moe_snapshot_pair(struct moe_snapshot *s, const char *key, const char *value,
    struct moe_err *e);

/* Append the bytes to b and set s->sum. Errors: MOE_ENOMEM, MOE_ELIMIT. */
int moe_snapshot_encode(struct moe_snapshot *s, struct moe_buf *b, struct moe_err *e);

/* out is to be ended in every case. Errors: MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM. */
int moe_snapshot_decode(const void *p, size_t n, const char *name, struct moe_snapshot *out,
    struct moe_err *e);

/* Whether name can be that of a file in a save: at most one folder, nothing hidden. */
bool moe_snapshot_name_ok(const char *name);

/* The file of this name, or NULL. */
const struct moe_snapshot_file *moe_snapshot_find(const struct moe_snapshot *s, const char *name);

/* The value of a pair, or NULL. */
const char *moe_snapshot_value(const struct moe_snapshot *s, const char *key);

/* Bytes of all files. */
uint64_t moe_snapshot_bytes(const struct moe_snapshot *s);

void moe_snapshot_fini(struct moe_snapshot *s);

#endif
