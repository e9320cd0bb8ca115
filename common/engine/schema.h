/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema (Draft 2020-12) as a grammar. Every text that the grammar takes is
 * valid; of the valid ones it takes those
 * - whose known properties come in the order of the schema (others may stand
 *   anywhere between; a name that is not known may come twice),
 * - with no white space but one blank, or a newline and up to 20 blanks, after
 *   brackets, commas and colons and before closing brackets,
 * - whose numbers have exponents of -2 to 2 where a bound or a multiple matters,
 *   of two digits elsewhere.
 * Formats are not asserted. Refused by name: uniqueItems, maxContains,
 * unevaluatedItems, unevaluatedProperties, dependentSchemas, references out of
 * the document, patterns that look around or back, and "not" or "oneOf" where
 * they would need what cannot be turned into its opposite.
 */
#ifndef MOE_ENGINE_SCHEMA_H
#define MOE_ENGINE_SCHEMA_H

#include <jansson.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/engine/grammar.h"

#define MOE_SCHEMA_MAX_BYTES ((size_t)1 << 20)
#define MOE_SCHEMA_MAX_DEPTH 64         /* references and choices inside of each other */
#define MOE_SCHEMA_MAX_CHOICES 512      /* alternatives of one value */
#define MOE_SCHEMA_MAX_GRID 20000       /* places in an object or array that must be told apart */
#define MOE_SCHEMA_MAX_WORK 2000000

/*
 * Errors: MOE_EFORMAT (no schema, nothing meets it), MOE_EUNSUP (named), MOE_ELIMIT,
 * MOE_ENOMEM. The schema is borrowed for the call.
 */
int moe_schema_compile(const json_t *schema, const char *name, struct moe_grammar **out,
    struct moe_err *e);

/* From text. */
int moe_schema_parse(const char *p, size_t n, const char *name, struct moe_grammar **out,
    struct moe_err *e);

#endif
