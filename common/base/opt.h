/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options are a table: parsing (getopt_long), --help, --version, --completion
 * and the check of the manual pages all read the same rows. A program has one
 * table. Parsing uses getopt_long, so it is for main, before any thread.
 */
#ifndef MOE_BASE_OPT_H
#define MOE_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/err.h"

#define MOE_OPT_MAX 128  /* rows, the three common ones included; later rows do not exist */

/* What completion offers for an option's argument or an operand. */
enum moe_opt_arg {
    MOE_OPT_NONE,       /* no argument */
    MOE_OPT_WORD,       /* free text or a number */
    MOE_OPT_FILE,
    MOE_OPT_DIR,
    MOE_OPT_CHOICE      /* one of the words in `choices` */
};

struct moe_opt {
    int id;                 /* >= 1, unique; handed to the callback */
    char letter;            /* short form, or 0 */
    const char *name;       /* long form without dashes, never NULL */
    enum moe_opt_arg arg;
    const char *arg_name;   /* "N", "FILE"; NULL without an argument */
    const char *help;       /* one line, no full stop */
    const char *choices;    /* "int4|int8" for MOE_OPT_CHOICE, else NULL */
    bool verb;              /* selects a mode: at most one such option */
    bool many;              /* may be given more than once */
};

struct moe_opt_cmd {
    const char *program;            /* "moe-quant" */
    const char *const *usage;       /* one line a mode, without the program; NULL ends */
    const char *summary;            /* one sentence */
    const struct moe_opt *opts;     /* a row with name NULL ends */
    const char *const *verbs;       /* first-operand commands ("sum"), or NULL */
};

/* Called once an option, in order. Returns 0 or sets e (MOE_EUSAGE). */
typedef int moe_opt_fn(void *ctx, int id, const char *arg, struct moe_err *e);

/*
 * Parse argv. --help, --version and --completion are added to every table:
 * they print to stdout and *done becomes true. Repeated options (unless `many`), two
 * verbs, unknown options and words that are none of the choices are errors.
 * *first is the index of the first operand in argv, which may be permuted.
 * Errors: MOE_EUSAGE; moe_tool_end() adds "try --help".
 */
int moe_opt_parse(const struct moe_opt_cmd *cmd, int argc, char **argv,
    moe_opt_fn *fn, void *ctx, int *first, bool *done, struct moe_err *e);

/* The rows of the table and the three common ones; returns how many. */
size_t moe_opt_rows(const struct moe_opt_cmd *cmd, const struct moe_opt *rows[MOE_OPT_MAX]);

/* The text of --help: usage, one line an option. */
void moe_opt_help(const struct moe_opt_cmd *cmd, FILE *to);

#endif
