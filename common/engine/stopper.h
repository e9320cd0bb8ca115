/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that end an output. Nothing of such a text is ever let through: what
 * may be its beginning is held back until it is known not to be.
 */
#ifndef MOE_ENGINE_STOPPER_H
#define MOE_ENGINE_STOPPER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_STOPPER_MAX 64              /* texts */
#define MOE_STOPPER_MAX_BYTES 4096      /* of one */

struct moe_stopper;

int moe_stopper_new(struct moe_stopper **out, struct moe_err *e);
void moe_stopper_free(struct moe_stopper *s);

/* Before the first _put(). Errors: MOE_EUSAGE (an empty text), MOE_ELIMIT, MOE_ENOMEM. */
int moe_stopper_add(struct moe_stopper *s, const char *p, size_t n, struct moe_err *e);

/*
 * Append to out what of the text so far and these n bytes may go on. *ended: one
 * of the texts is complete (the first to be; of several, the longest), out has
 * all before it, and nothing follows. Errors: MOE_ENOMEM.
 */
int moe_stopper_put(struct moe_stopper *s, const char *p, size_t n, struct moe_buf *out,
    bool *ended, struct moe_err *e);

/* The output ended otherwise: append what was held back. Errors: MOE_ENOMEM. */
int moe_stopper_end(struct moe_stopper *s, struct moe_buf *out, struct moe_err *e);

#endif
