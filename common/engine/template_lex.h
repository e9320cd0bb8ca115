/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of a chat template: Jinja's, with trim_blocks and lstrip_blocks on and
 * a single final newline dropped.
 */
#ifndef MOE_ENGINE_TEMPLATE_LEX_H
#define MOE_ENGINE_TEMPLATE_LEX_H

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/err.h"

enum moe_ttype {
    MOE_TT_END,
    MOE_TT_DATA,            /* text outside of tags; perhaps empty */
    MOE_TT_BLOCK_BEGIN, MOE_TT_BLOCK_END, MOE_TT_PRINT_BEGIN, MOE_TT_PRINT_END,
    MOE_TT_NAME, MOE_TT_INT, MOE_TT_FLOAT,
    MOE_TT_STRING,          /* its value, escapes undone */
    MOE_TT_OP               /* one of Jinja's operators and brackets */
};

struct moe_ttoken {
    enum moe_ttype type;
    int line;
    const char *p;          /* ends with a NUL that n does not count */
    size_t n;
};

/*
 * Cut n bytes of UTF-8 into tokens in the arena's memory; the last is
 * MOE_TT_END. Errors: MOE_EFORMAT "name:line: what", MOE_ENOMEM.
 */
int moe_template_lex(const char *src, size_t n, const char *name, struct moe_arena *mem,
    struct moe_ttoken **out, struct moe_err *e);

#endif
