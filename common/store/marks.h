/* SPDX-License-Identifier: Apache-2.0 */
/* A set of records, by the pack and the offset at which they lie. */
#ifndef MOE_STORE_MARKS_H
#define MOE_STORE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct moe_mark { uint64_t pack, at; };     /* pack 0: a free place */

struct moe_marks { struct moe_mark *v; size_t n, cap; };

#define MOE_MARKS_INIT { NULL, 0, 0 }

/* Put one in; *fresh tells whether it was not there. Errors: MOE_ENOMEM. */
int moe_marks_add(struct moe_marks *m, uint64_t pack, uint64_t at, bool *fresh, struct moe_err *e);

bool moe_marks_has(const struct moe_marks *m, uint64_t pack, uint64_t at);
void moe_marks_fini(struct moe_marks *m);

#endif
