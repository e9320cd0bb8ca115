/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of a text in ascending order that neither touch nor overlap, owned
 * by the caller. Used for the parts of a prompt that came from a client.
 */
#ifndef MOE_ENGINE_SPAN_H
#define MOE_ENGINE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct moe_span { size_t from, to; };       /* [from, to) in bytes */

struct moe_spans {
    struct moe_span *p;
    size_t n, cap;
};

#define MOE_SPANS_INIT { NULL, 0, 0 }

/* Add the last stretch; one that touches the last before it is joined with it. */
int moe_span_add(struct moe_spans *s, size_t from, size_t to, struct moe_err *e);
void moe_span_fini(struct moe_spans *s);

/* Whether any byte of [from, to) is in a stretch. */
bool moe_span_overlaps(const struct moe_spans *s, size_t from, size_t to);

#endif
