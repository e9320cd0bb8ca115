/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict YAML 1.1 through libyaml into a jansson tree: one document; no
 * anchors, aliases, tags or merge keys; duplicate keys, depth and size beyond
 * the limits refused; plain scalars become null, true/false, integers, reals
 * or strings by the JSON rules (so `no` and `on` stay strings). Each value
 * remembers where it stood, for messages "file:line:column: what".
 */
#ifndef MOE_BASE_YAML_H
#define MOE_BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"

#define MOE_YAML_MAX_DEPTH 64
#define MOE_YAML_MAX_BYTES ((size_t)16 << 20)

struct moe_yaml;

int moe_yaml_parse(const char *p, size_t n, const char *name, struct moe_yaml **out,
    struct moe_err *e);
int moe_yaml_file(const char *path, struct moe_yaml **out, struct moe_err *e);
void moe_yaml_free(struct moe_yaml *y);

/* The tree, owned by y. */
const json_t *moe_yaml_root(const struct moe_yaml *y);

/* MOE_EFORMAT with "file:line:column: " of node, which is in y's tree. */
int moe_yaml_fail(const struct moe_yaml *y, const json_t *node, struct moe_err *e,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Refuse keys of object node that are not in the NULL-terminated list. */
int moe_yaml_only(const struct moe_yaml *y, const json_t *node, const char *const *keys,
    struct moe_err *e);

#endif
