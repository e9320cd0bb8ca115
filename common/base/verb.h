/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose first operand is a command ("moe-shard split ..."): one row a
 * command, each with an option table of its own. `PROGRAM --help` lists the
 * commands, `PROGRAM COMMAND --help` tells one; completion knows both.
 */
#ifndef MOE_BASE_VERB_H
#define MOE_BASE_VERB_H

#include "common/base/err.h"
#include "common/base/opt.h"

struct moe_verb {
    const char *name;                   /* "split" */
    const struct moe_opt_cmd *cmd;      /* its program is "moe-shard split" */
    /* argv[0] is the command. Returns as main's work does: 0, 1 or an error's code. */
    int (*run)(int argc, char **argv, struct moe_err *e);
};

struct moe_verb_set {
    const char *program;                /* "moe-shard" */
    const char *summary;                /* one sentence */
    const struct moe_verb *verbs;       /* a row with name NULL ends */
};

/* Run what argv asks for. Errors: MOE_EUSAGE (no command, an unknown one) and the command's. */
int moe_verb_run(const struct moe_verb_set *set, int argc, char **argv, struct moe_err *e);

#endif
