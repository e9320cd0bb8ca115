/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns everything that follows from an option table: parsing and --help.
 * The completion script is in completion.c. Knows no option beside the three
 * that every program has.
 */
#include <getopt.h>
#include <string.h>

#include "common/base/completion.h"
#include "common/base/opt.h"

/* getopt_long's values: letters as they are, long names as LONG + row. */
enum { LONG = 256, HELP = -1, VERSION = -2, COMPLETION = -3 };

#define WIDTH 30    /* of the left column of --help, at most */

static const struct moe_opt common[] = {
    { HELP, 'h', "help", MOE_OPT_NONE, NULL, "show this text", NULL, false, true },
    { VERSION, 0, "version", MOE_OPT_NONE, NULL, "show the version", NULL, false, true },
    { COMPLETION, 0, "completion", MOE_OPT_NONE, NULL, "print a completion script for bash", NULL,
        false, true },
};

/* What parsing one command line needs. */
struct parser {
    const struct moe_opt *rows[MOE_OPT_MAX];
    size_t n;
    bool seen[MOE_OPT_MAX];
    const struct moe_opt *verb;
    char letters[2 * MOE_OPT_MAX + 2];
    struct option longs[MOE_OPT_MAX + 1];
};

size_t
moe_opt_rows(const struct moe_opt_cmd *cmd, const struct moe_opt *rows[MOE_OPT_MAX])
{
    size_t n = 0;

    for (const struct moe_opt *o = cmd->opts; o->name != NULL; o++)
        if (n < MOE_OPT_MAX - sizeof(common) / sizeof(common[0]))
            rows[n++] = o;
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
        rows[n++] = &common[i];
    return n;
}

/* Build getopt_long's two arrays. A leading ':' keeps getopt quiet. */
static void
prepare(struct parser *p, const struct moe_opt_cmd *cmd)
{
    char *at = p->letters;

    memset(p, 0, sizeof(*p));
    p->n = moe_opt_rows(cmd, p->rows);
    *at++ = ':';
    for (size_t i = 0; i < p->n; i++) {
        const struct moe_opt *o = p->rows[i];

        p->longs[i].name = o->name;
        p->longs[i].has_arg = o->arg == MOE_OPT_NONE ? no_argument : required_argument;
        p->longs[i].val = LONG + (int)i;
        if (o->letter != 0) {
            *at++ = o->letter;
            if (o->arg != MOE_OPT_NONE)
                *at++ = ':';
        }
    }
}

static size_t
row_of(const struct parser *p, int value)
{
    size_t i = 0;

    if (value >= LONG)
        return (size_t)(value - LONG);
    while (i < p->n && p->rows[i]->letter != value)
        i++;
    return i;
}

/* Why getopt_long refused; word is the word it stands on. */
static int
refuse(const struct parser *p, int got, const char *word, struct moe_err *e)
{
    if (got == ':')
        return moe_err_set(e, MOE_EUSAGE, "--%s needs an argument",
            p->rows[row_of(p, optopt)]->name);
    if (optopt >= LONG)
        return moe_err_set(e, MOE_EUSAGE, "--%s takes no argument",
            p->rows[row_of(p, optopt)]->name);
    if (optopt != 0)
        return moe_err_set(e, MOE_EUSAGE, "unknown option '-%c'", optopt);
    return moe_err_set(e, MOE_EUSAGE, "unknown or ambiguous option '%s'", word);
}

/* Whether word is one of "a|b|c". */
static bool
is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);

    for (const char *c = choices; n > 0; c++) {
        size_t k = strcspn(c, "|");

        if (k == n && memcmp(c, word, n) == 0)
            return true;
        if (*(c += k) == '\0')
            break;
    }
    return false;
}

/* The rules of the table for row i with argument arg. */
static int
check(struct parser *p, size_t i, const char *arg, struct moe_err *e)
{
    const struct moe_opt *o = p->rows[i];

    if (o->verb && p->verb != NULL && p->verb != o)
        return moe_err_set(e, MOE_EUSAGE, "--%s and --%s cannot be given together", p->verb->name,
            o->name);
    if (p->seen[i] && !o->many)
        return moe_err_set(e, MOE_EUSAGE, "--%s is given twice", o->name);
    if (o->arg == MOE_OPT_CHOICE && !is_choice(o->choices, arg))
        return moe_err_set(e, MOE_EUSAGE, "--%s: '%s' is none of %s", o->name, arg, o->choices);
    p->seen[i] = true;
    if (o->verb)
        p->verb = o;
    return 0;
}

static void
answer(const struct moe_opt_cmd *cmd, int id)
{
    if (id == HELP)
        moe_opt_help(cmd, stdout);
    else if (id == VERSION)
        fprintf(stdout, "%s %s\n", cmd->program, MOE_VERSION);
    else
        moe_completion_bash(cmd, stdout);
}

int
moe_opt_parse(const struct moe_opt_cmd *cmd, int argc, char **argv, moe_opt_fn *fn, void *ctx,
    int *first, bool *done, struct moe_err *e)
{
    struct parser p;
    int got, rc;

    *done = false;
    prepare(&p, cmd);
    optind = 0;
    opterr = 0;
    for (;;) {
        /* The word looked at, for messages; 0 means getopt starts anew, at word 1. */
        int at = optind == 0 ? 1 : optind;
        size_t i;

        if ((got = getopt_long(argc, argv, p.letters, p.longs, NULL)) == -1)
            break;
        if (got == '?' || got == ':')
            return refuse(&p, got, argv[optind > at ? optind - 1 : at], e);
        i = row_of(&p, got);
        if (p.rows[i]->id < 0) {
            answer(cmd, p.rows[i]->id);
            *done = true;
            break;
        }
        if ((rc = check(&p, i, optarg, e)) != 0 || (rc = fn(ctx, p.rows[i]->id, optarg, e)) != 0)
            return rc;
    }
    *first = optind;
    return 0;
}

/* "-f, --format NAME" into dst; returns its length. */
static size_t
left_column(char *dst, size_t n, const struct moe_opt *o)
{
    const char *arg = o->arg == MOE_OPT_NONE ? "" : o->arg_name;
    int k;

    if (o->letter != 0)
        k = snprintf(dst, n, "-%c, --%s%s%s", o->letter, o->name, *arg != '\0' ? " " : "", arg);
    else
        k = snprintf(dst, n, "    --%s%s%s", o->name, *arg != '\0' ? " " : "", arg);
    return k < 0 ? 0 : (size_t)k;
}

void
moe_opt_help(const struct moe_opt_cmd *cmd, FILE *to)
{
    const struct moe_opt *rows[MOE_OPT_MAX];
    size_t n = moe_opt_rows(cmd, rows), width = 0;
    char left[128];

    for (size_t i = 0; cmd->usage[i] != NULL; i++)
        fprintf(to, "%s %s %s\n", i == 0 ? "Usage:" : "      ", cmd->program, cmd->usage[i]);
    fprintf(to, "%s\n\n", cmd->summary);
    for (size_t i = 0; i < n; i++) {
        size_t k = left_column(left, sizeof(left), rows[i]);

        if (k > width && k <= WIDTH)
            width = k;
    }
    for (size_t i = 0; i < n; i++) {
        (void)left_column(left, sizeof(left), rows[i]);
        fprintf(to, "  %-*s  %s\n", (int)width, left, rows[i]->help);
    }
}
