/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pull scanner over JSON text in memory, for files too large for a tree:
 * safetensors headers and tokenizer.json. Strict as json.h (RFC 8259, UTF-8,
 * no byte order mark, depth limit), keys in order of the text; the caller
 * watches for duplicate keys. Allocates only the unescaped form of a string.
 */
#ifndef MOE_BASE_SCAN_H
#define MOE_BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum moe_scan_kind {
    MOE_SCAN_NULL, MOE_SCAN_FALSE, MOE_SCAN_TRUE, MOE_SCAN_NUMBER,
    MOE_SCAN_STRING, MOE_SCAN_ARRAY, MOE_SCAN_OBJECT
};

#define MOE_SCAN_MAX_DEPTH 128     /* deeper nesting is MOE_ELIMIT */

struct moe_scan {
    const char *p, *end, *start;
    const char *name;           /* borrowed, for messages */
    struct moe_buf text;        /* the last string, unescaped */
    int depth;
    bool first[MOE_SCAN_MAX_DEPTH], object[MOE_SCAN_MAX_DEPTH];
};

void moe_scan_init(struct moe_scan *s, const char *p, size_t n, const char *name);
void moe_scan_fini(struct moe_scan *s);

/* Kind of the value that comes next. Errors: MOE_EFORMAT. */
int moe_scan_kind(struct moe_scan *s, enum moe_scan_kind *kind, struct moe_err *e);

/*
 * Containers: enter, then moe_scan_next() before each element (false: it has
 * been left). In an object the key is then in s->text.
 */
int moe_scan_enter(struct moe_scan *s, enum moe_scan_kind want, struct moe_err *e);
int moe_scan_next(struct moe_scan *s, bool *more, struct moe_err *e);

/*
 * Values. A string is in s->text after; the others leave s->text alone, so that
 * a key can be read after its value. Numbers must be whole for _uint and _int
 * (1.0 and 1e0 are not; -0 is no _uint) and finite doubles for the others.
 */
int moe_scan_str(struct moe_scan *s, struct moe_err *e);
int moe_scan_uint(struct moe_scan *s, uint64_t *v, struct moe_err *e);
int moe_scan_int(struct moe_scan *s, int64_t *v, struct moe_err *e);
int moe_scan_real(struct moe_scan *s, double *v, struct moe_err *e);
int moe_scan_bool(struct moe_scan *s, bool *v, struct moe_err *e);
int moe_scan_null(struct moe_scan *s, struct moe_err *e);
int moe_scan_skip(struct moe_scan *s, struct moe_err *e);

/* Nothing but white space may be left. */
int moe_scan_end(struct moe_scan *s, struct moe_err *e);

/* "name:line:column: what", MOE_EFORMAT, at the current place; columns are characters. */
int moe_scan_fail(struct moe_scan *s, struct moe_err *e, const char *what);

#endif
