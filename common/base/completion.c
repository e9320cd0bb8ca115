/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the text of completion scripts. Knows the table only.
 */
#include "common/base/completion.h"

/* The words "a|b|c" with blanks between. */
static void
words(const char *choices, FILE *to)
{
    for (; *choices != '\0'; choices++)
        fputc(*choices == '|' ? ' ' : *choices, to);
}

/* The function's name: the program's with '_' for '-'. */
static void
function_name(const char *program, FILE *to)
{
    fputc('_', to);
    for (; *program != '\0'; program++)
        fputc(*program == '-' ? '_' : *program, to);
}

/* One branch of the case over the word before: what its argument may be. */
static void
branch(const struct moe_opt *o, FILE *to)
{
    if (o->arg == MOE_OPT_NONE)
        return;
    fputs("    ", to);
    if (o->letter != 0)
        fprintf(to, "-%c | ", o->letter);
    fprintf(to, "--%s) ", o->name);
    switch (o->arg) {
    case MOE_OPT_FILE:
        fputs("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")", to);
        break;
    case MOE_OPT_DIR:
        fputs("compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")", to);
        break;
    case MOE_OPT_CHOICE:
        fputs("mapfile -t COMPREPLY < <(compgen -W '", to);
        words(o->choices, to);
        fputs("' -- \"$cur\")", to);
        break;
    default:
        fputs("COMPREPLY=()", to);
        break;
    }
    fputs("; return ;;\n", to);
}

/* Lines that set cur and prev, and open the function. */
static void
begin(const char *program, FILE *to)
{
    fprintf(to, "# bash completion for %s, made by %s --completion\n", program, program);
    function_name(program, to);
    fputs("()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "\n"
          "    # --name=value arrives as three words.\n"
          "    if [[ $cur == '=' ]]; then\n"
          "        cur=\n"
          "    elif [[ $prev == '=' ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n",
        to);
}

/* The argument of the option before, or the options when a word begins with '-'. */
static void
options(const struct moe_opt_cmd *cmd, FILE *to)
{
    const struct moe_opt *rows[MOE_OPT_MAX];
    size_t n = moe_opt_rows(cmd, rows);

    fputs("    case $prev in\n", to);
    for (size_t i = 0; i < n; i++)
        branch(rows[i], to);
    fputs("    esac\n"
          "    if [[ $cur == -* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '",
        to);
    for (size_t i = 0; i < n; i++) {
        if (rows[i]->letter != 0)
            fprintf(to, "-%c ", rows[i]->letter);
        fprintf(to, "--%s%s", rows[i]->name, i + 1 < n ? " " : "");
    }
    fputs("' -- \"$cur\")\n        return\n    fi\n", to);
}

/* Files, and the line that binds the function. */
static void
end(const char *program, FILE *to)
{
    fputs("    compopt -o filenames\n"
          "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
          "}\n"
          "complete -F ",
        to);
    function_name(program, to);
    fprintf(to, " %s\n", program);
}

void
moe_completion_bash(const struct moe_opt_cmd *cmd, FILE *to)
{
    begin(cmd->program, to);
    options(cmd, to);
    if (cmd->verbs != NULL) {
        fputs("    if ((COMP_CWORD == 1)); then\n"
              "        mapfile -t COMPREPLY < <(compgen -W '",
            to);
        for (size_t i = 0; cmd->verbs[i] != NULL; i++)
            fprintf(to, "%s%s", i > 0 ? " " : "", cmd->verbs[i]);
        fputs("' -- \"$cur\")\n        return\n    fi\n", to);
    }
    end(cmd->program, to);
}

void
moe_completion_verbs(const struct moe_verb_set *set, FILE *to)
{
    begin(set->program, to);
    fputs("    if ((COMP_CWORD == 1)); then\n"
          "        mapfile -t COMPREPLY < <(compgen -W '-h --help --version --completion",
        to);
    for (const struct moe_verb *v = set->verbs; v->name != NULL; v++)
        fprintf(to, " %s", v->name);
    fputs("' -- \"$cur\")\n        return\n    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
        to);
    for (const struct moe_verb *v = set->verbs; v->name != NULL; v++) {
        fprintf(to, "    %s)\n", v->name);
        options(v->cmd, to);
        fputs("    ;;\n", to);
    }
    fputs("    esac\n", to);
    end(set->program, to);
}
