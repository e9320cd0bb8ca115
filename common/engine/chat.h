/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat templates: the Jinja that models ship, rendered as transformers 4.57
 * renders it (trim_blocks, lstrip_blocks, loop controls, no autoescape, the
 * immutable sandbox). A compiled template is immutable and may be shared.
 */
#ifndef MOE_ENGINE_CHAT_H
#define MOE_ENGINE_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/span.h"

#define MOE_CHAT_MAX_SOURCE ((size_t)1 << 20)
#define MOE_CHAT_MAX_CONFIG ((size_t)64 << 20)
#define MOE_CHAT_MAX_STEPS 10000000     /* statements and operations of a rendering */
#define MOE_CHAT_MAX_OUTPUT ((size_t)64 << 20)
#define MOE_CHAT_MAX_DEPTH 64           /* macros inside of macros */

struct moe_chat;

/* A template alone. Errors: MOE_EFORMAT "name:line: what", MOE_EUNSUP, MOE_ELIMIT. */
int moe_chat_compile(const char *src, size_t n, const char *name, struct moe_chat **out,
    struct moe_err *e);

/*
 * A model's template with its tokens: config is the text of tokenizer_config.json,
 * src that of chat_template.jinja, which goes before config's chat_template. Either
 * may be NULL. Errors: also MOE_ENOENT (neither has a template).
 */
int moe_chat_open(const char *config, size_t n_config, const char *config_name, const char *src,
    size_t n, const char *name, struct moe_chat **out, struct moe_err *e);
void moe_chat_free(struct moe_chat *c);

/* Text of "bos_token", "eos_token" and so on; NULL when the model names none. */
const char *moe_chat_token(const struct moe_chat *c, const char *which);

/*
 * Render with the model's tokens and the members of object vars (messages, tools,
 * documents, add_generation_prompt ...; as in transformers, tools and documents
 * that are not given are none) as variables. now: seconds since 1970 for
 * strftime_now, UTC. outside may be NULL; else the parts of out that came from
 * vars are added to it, in which control tokens must not be recognised.
 * Errors: MOE_EFORMAT with the template's own words (raise_exception) or
 * "name:line: what"; MOE_ELIMIT.
 */
int moe_chat_render(const struct moe_chat *c, const json_t *vars, long long now,
    struct moe_buf *out, struct moe_spans *outside, struct moe_err *e);

/* The same for a plain conversation. */
int moe_chat_messages(const struct moe_chat *c, const json_t *messages,
    bool add_generation_prompt, long long now, struct moe_buf *out, struct moe_spans *outside,
    struct moe_err *e);

#endif
