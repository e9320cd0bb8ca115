/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scrub remembers from run to run, moe-scrub(5): when each listed part
 * was last well. Parts are known by a digest of what is listed, so that a new
 * list keeps what is the same.
 */
#ifndef MOE_VERIFY_SCRUBSTATE_H
#define MOE_VERIFY_SCRUBSTATE_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/trust/scrubplan.h"
#include "common/trust/sumlist.h"

#define VERIFY_SCRUBSTATE_ID 16     /* bytes of a digest that name a part */
#define VERIFY_SCRUBSTATE_MAX ((size_t)1 << 30)

struct verify_scrubstate {
    unsigned char (*id)[VERIFY_SCRUBSTATE_ID];      /* [n], as the lines are */
    size_t *by_id;                                  /* indices in order of id */
    size_t n;
    int lock;                                       /* descriptor of PATH.lock, or -1 */
    const char *path;                               /* NULL: nothing is remembered */
};

#define VERIFY_SCRUBSTATE_INIT { NULL, NULL, 0, -1, NULL }

/*
 * Take the lock of path and read what is remembered of the lines into u; a file
 * that is not there is nothing remembered. Errors: MOE_EEXIST (another run holds
 * the lock), MOE_EFORMAT, MOE_EIO, MOE_ENOMEM.
 */
int verify_scrubstate_open(struct verify_scrubstate *s, const char *path,
    const struct moe_sumlist_line *l, struct moe_scrubplan_unit *u, size_t n, struct moe_err *e);

/* Write it anew, atomically. */
int verify_scrubstate_save(const struct verify_scrubstate *s, const struct moe_scrubplan_unit *u,
    struct moe_err *e);

void verify_scrubstate_close(struct verify_scrubstate *s);

#endif
