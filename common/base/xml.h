/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XML through expat, as a tree. No entities are declared or opened, depth and
 * the number of elements are limited, errors are "name:line: what".
 */
#ifndef MOE_BASE_XML_H
#define MOE_BASE_XML_H

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/err.h"

#define MOE_XML_MAX_DEPTH 64
#define MOE_XML_MAX_ELEMENTS 1000000

struct moe_xml {
    const char *name;
    const char *const *attrs;   /* name, value, ..., NULL */
    const char *text;           /* of an element without children; never NULL */
    struct moe_xml *parent, *child, *next;
    size_t line;
};

struct moe_xml_doc {
    struct moe_arena arena;
    struct moe_xml *root;
};

/* Parse n bytes; name is for messages. Errors: MOE_EFORMAT, MOE_ELIMIT, MOE_ENOMEM. */
int moe_xml_parse(const char *p, size_t n, const char *name, struct moe_xml_doc *out,
    struct moe_err *e);
void moe_xml_fini(struct moe_xml_doc *d);

/* The value of an attribute, or NULL. */
const char *moe_xml_attr(const struct moe_xml *x, const char *key);

#endif
