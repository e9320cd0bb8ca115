/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates: the Jinja that models ship, rendered as transformers 4.57
 * renders it (trim_blocks, lstrip_blocks, loop controls, no autoescape, the
 * immutable sandbox). A compiled template is immutable and may be shared.
 */
#ifndef MOE_ENGINE_CHAT_H
#define MOE_ENGINE_CHAT_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_CHAT_MAX_SOURCE ((size_t)1 << 20)
#define MOE_CHAT_MAX_STEPS 10000000     /* statements and operations of a rendering */
#define MOE_CHAT_MAX_OUTPUT ((size_t)64 << 20)
#define MOE_CHAT_MAX_DEPTH 64

struct moe_chat;

/* Errors: MOE_EFORMAT "name:line: what". */
int moe_chat_compile(const char *src, size_t n, const char *name, struct moe_chat **out,
    struct moe_err *e);
void moe_chat_free(struct moe_chat *c);

/*
 * Render with the variables of object vars (messages, tools, bos_token,
 * add_generation_prompt ...). now: seconds since 1970 for strftime_now, UTC.
 * Errors: MOE_EFORMAT with the template's own words (raise_exception) or the
 * type error; MOE_ELIMIT.
 */
int moe_chat_render(const struct moe_chat *c, const json_t *vars, long long now,
    struct moe_buf *out, struct moe_err *e);

#endif
