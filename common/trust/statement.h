/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-toto statements about a model, as OpenSSF Model Signing has them: the
 * files of a directory, or shards of them, and their digests.
 *
 * A struct moe_statement owns its texts.
 */
#ifndef MOE_TRUST_STATEMENT_H
#define MOE_TRUST_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_STATEMENT_DIGEST 64     /* bytes of the longest digest */

struct moe_statement {
    struct moe_statement_file {
        const char *name;           /* canonical, relative; "." if the model is one file */
        unsigned char sum[MOE_STATEMENT_DIGEST];
        uint64_t from, to;          /* of a shard */
    } *f;
    size_t n;                       /* sorted by name, then by from; none twice */
    size_t sum_n;                   /* 32: SHA-256, 64: BLAKE2b-512 */
    uint64_t shard;                 /* bytes of a shard; 0: whole files */
    bool links;                     /* symbolic links are followed */
    const char **ignored;           /* [n_ignored] relative paths that are not signed */
    size_t n_ignored;
    struct moe_arena text;
};

#define MOE_STATEMENT_INIT { .text = MOE_ARENA_INIT }

/*
 * Read a payload whose signature is good; the root digest is computed again.
 * Errors: MOE_EFORMAT, MOE_EUNSUP (digests that nothing here computes),
 * MOE_ENOMEM.
 */
int moe_statement_read(struct moe_statement *s, const char *p, size_t n, const char *name,
    struct moe_err *e);

/* Add the text of a statement over whole files with SHA-256 about `model` to out. */
int moe_statement_write(const struct moe_statement *s, const char *model, struct moe_buf *out,
    struct moe_err *e);

/* Whether a relative path is canonical: no empty part, no "." or "..", no slash at an end. */
bool moe_statement_canonical(const char *path);

/* Whether a path is ignored, or within a directory that is. */
bool moe_statement_ignores(const struct moe_statement *s, const char *path);

void moe_statement_fini(struct moe_statement *s);

#endif
