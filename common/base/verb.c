/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the choice of a command and the help above all commands. The options of
 * one are opt.c's, the completion script is completion.c's.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/completion.h"
#include "common/base/verb.h"

/* Options before a command: those of every program. */
static const struct moe_opt none[] = {
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static void
help(const struct moe_verb_set *set)
{
    static const char *const usage[] = { "COMMAND [OPTION ...] [OPERAND ...]",
        "COMMAND --help", NULL };
    const struct moe_opt_cmd cmd = { set->program, usage, set->summary, none, NULL };

    moe_opt_help(&cmd, stdout);
    fputs("\nCommands:\n", stdout);
    for (const struct moe_verb *v = set->verbs; v->name != NULL; v++)
        fprintf(stdout, "  %-10s  %s\n", v->name, v->cmd->summary);
}

static const struct moe_verb *
find(const struct moe_verb_set *set, const char *name)
{
    for (const struct moe_verb *v = set->verbs; v->name != NULL; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

int
moe_verb_run(const struct moe_verb_set *set, int argc, char **argv, struct moe_err *e)
{
    const struct moe_verb *v;
    const char *word = argc > 1 ? argv[1] : NULL;

    if (word == NULL)
        return moe_err_set(e, MOE_EUSAGE, "a command is wanted");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        help(set);
    else if (strcmp(word, "--version") == 0)
        fprintf(stdout, "%s %s\n", set->program, MOE_VERSION);
    else if (strcmp(word, "--completion") == 0)
        moe_completion_verbs(set, stdout);
    else if (word[0] == '-')
        return moe_err_set(e, MOE_EUSAGE, "unknown option '%s' before a command", word);
    else if ((v = find(set, word)) != NULL)
        return v->run(argc - 1, argv + 1, e);
    else
        return moe_err_set(e, MOE_EUSAGE, "no such command: %s", word);
    return 0;
}
