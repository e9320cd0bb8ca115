/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list read whole: its good lines, and how many were bad.
 */
#ifndef MOE_VERIFY_LIST_H
#define MOE_VERIFY_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/trust/sumlist.h"

#define VERIFY_LIST_SHOWN 10    /* bad lines that get a line on stderr of their own */

struct verify_list {
    struct moe_sumlist_line *l;     /* [n], in order; texts belong to the list */
    size_t n, cap, bad;
    struct moe_arena text;
};

#define VERIFY_LIST_INIT { NULL, 0, 0, 0, MOE_ARENA_INIT }

/*
 * Read the list path ("-": standard input). Bad lines are told on stderr.
 * Errors: those of reading, MOE_EFORMAT (no line at all), MOE_ENOMEM.
 */
int verify_list_read(struct verify_list *v, const char *path, bool zero, struct moe_err *e);

void verify_list_fini(struct verify_list *v);

#endif
