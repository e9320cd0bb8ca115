/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of SHA-256 digests: those of sha256sum, read and written, and beside
 * its forms a line for one tensor of a file (moe-verify(1) describes them).
 *
 *     hex, two blanks or blank and *, name         sha256sum
 *     hex, blank, name                             one-blank form of the BSDs
 *     SHA256 (name) = hex                          BSD tag; also SHA2-256(name)= hex
 *     hex, TAB, name, TAB, tensor, TAB, type, TAB, shape
 *
 * A line that begins with a backslash has \\, \n, \r (and \t in a tensor's
 * line) in its names. Names are bytes, whatever they mean.
 */
#ifndef MOE_TRUST_SUMLIST_H
#define MOE_TRUST_SUMLIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/trust/digest.h"

#define MOE_SUMLIST_MAX ((size_t)1 << 30)   /* bytes of a list, for its readers */

struct moe_sumlist_line {
    size_t number;              /* of the line, from 1 */
    unsigned char sum[MOE_DIGEST_LEN];
    const char *name;           /* NUL-terminated, no NUL inside, not empty */
    const char *tensor;         /* NULL for a file's line, else not empty; type and shape too */
    const char *type;
    const char *shape;
};

struct moe_sumlist {
    const char *p, *end;        /* what is left */
    size_t number;
    bool zero;                  /* records end in NUL and are not escaped */
    enum { MOE_SUMLIST_NEW, MOE_SUMLIST_TWO, MOE_SUMLIST_ONE } form;
    struct moe_buf text;        /* the names of the last line */
};

/* Read the n bytes at p, which must stay. */
void moe_sumlist_open(struct moe_sumlist *s, const char *p, size_t n, bool zero);
void moe_sumlist_close(struct moe_sumlist *s);

/*
 * The next line that is no comment: 1, and *out is valid until the next call;
 * 0 at the end; MOE_EFORMAT for a line of no known form, with out->number set
 * and what is wrong in e (without the list's name), after which the next call
 * goes on; MOE_ENOMEM.
 *
 * As in coreutils the first line says whether names begin after one blank or
 * two; a line of the other kind is bad after that, not taken for a guess.
 */
int moe_sumlist_next(struct moe_sumlist *s, struct moe_sumlist_line *out, struct moe_err *e);

/* Append a file's line to b, ended by LF, or by NUL and not escaped. */
void moe_sumlist_put(struct moe_buf *b, const unsigned char sum[static MOE_DIGEST_LEN],
    const char *name, bool zero);

/* Append a tensor's line. */
void moe_sumlist_put_tensor(struct moe_buf *b, const unsigned char sum[static MOE_DIGEST_LEN],
    const char *name, const char *tensor, const char *type, const char *shape);

#endif
