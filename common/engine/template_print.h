/* SPDX-License-Identifier: Apache-2.0 */
/* How template values print: as Python's str(), repr() and json.dumps(). */
#ifndef MOE_ENGINE_TEMPLATE_PRINT_H
#define MOE_ENGINE_TEMPLATE_PRINT_H

#include "common/engine/template_value.h"

int moe_template_print_str(struct moe_tbuf *b, struct moe_tval v);
int moe_template_print_repr(struct moe_tbuf *b, struct moe_tval v);

/* str(v) as a value; a string is itself. */
int moe_template_print_text(struct moe_trun *r, struct moe_tval v, struct moe_tval *out);

struct moe_template_json {
    bool ascii, sort;
    bool lines;                 /* with an indent */
    const struct moe_tstr *indent;
    const struct moe_tstr *comma, *colon;
};

int moe_template_print_json(struct moe_tbuf *b, struct moe_tval v,
    const struct moe_template_json *how);

/* Python's repr of a float: the fewest digits that read back the same. text has 32 bytes. */
void moe_template_print_float(char *text, double f);

#endif
