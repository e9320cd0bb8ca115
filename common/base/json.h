/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON through jansson: UTF-8 only, duplicate keys refused, depth and
 * size limited, errors as "name:line:column: what". Typed getters name the key
 * and the type they wanted. Trees are jansson's and freed with json_decref().
 */
#ifndef MOE_BASE_JSON_H
#define MOE_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

#define MOE_JSON_MAX_DEPTH 128
#define MOE_JSON_MAX_BYTES ((size_t)256 << 20)

/* Parse n bytes; name is for messages. Errors: MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM. */
int moe_json_parse(const char *p, size_t n, const char *name, json_t **out, struct moe_err *e);

/* Read and parse a file ("-": stdin). */
int moe_json_file(const char *path, json_t **out, struct moe_err *e);

/*
 * Members of object o. A missing key (or null) gives the fallback unless
 * `must`; a wrong type or range is MOE_EFORMAT "name: key: what". name is the
 * file's name for messages. Integers given as 1.0 are refused.
 */
struct moe_json_at { const json_t *o; const char *name; };

int moe_json_int(struct moe_json_at at, const char *key, bool must, int64_t fallback,
    int64_t lo, int64_t hi, int64_t *out, struct moe_err *e);
/* Integers are accepted as reals. */
int moe_json_real(struct moe_json_at at, const char *key, bool must, double fallback,
    double *out, struct moe_err *e);
int moe_json_bool(struct moe_json_at at, const char *key, bool must, bool fallback,
    bool *out, struct moe_err *e);
/* *out is borrowed from the tree; NUL inside a string is refused. */
int moe_json_str(struct moe_json_at at, const char *key, bool must, const char *fallback,
    const char **out, struct moe_err *e);
/* *out is borrowed; NULL when missing and not `must`. */
int moe_json_obj(struct moe_json_at at, const char *key, bool must, const json_t **out,
    struct moe_err *e);
int moe_json_arr(struct moe_json_at at, const char *key, bool must, const json_t **out,
    struct moe_err *e);

/* Refuse keys of o that are not in the NULL-terminated list. */
int moe_json_only(struct moe_json_at at, const char *const *keys, struct moe_err *e);

#endif
