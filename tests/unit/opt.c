/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: parsing, its refusals, the help text. */
#include <stdlib.h>
#include <string.h>

#include "common/base/opt.h"
#include "tests/tap.h"

enum { OUT = 1, FORM, LIST, SUM, CHECK };

static const struct moe_opt rows[] = {
    { OUT, 'o', "output", MOE_OPT_FILE, "FILE", "write to FILE", NULL, false, false },
    { FORM, 'f', "format", MOE_OPT_CHOICE, "NAME", "int4 or int8", "int4|int8", false, false },
    { LIST, 0, "skip", MOE_OPT_WORD, "GLOB", "skip names (may be repeated)", NULL, false, true },
    { SUM, 's', "sum", MOE_OPT_NONE, NULL, "make a list", NULL, true, false },
    { CHECK, 'c', "check", MOE_OPT_NONE, NULL, "check a list", NULL, true, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "-s [-o FILE] PATH...", "-c [LIST]", NULL };

static const struct moe_opt_cmd cmd = { "moe-x", usage, "Do a thing.", rows, NULL };

/* What the callback saw, as "id=arg " each. */
static char seen[256];

static int
note(void *ctx, int id, const char *arg, struct moe_err *e)
{
    size_t n = strlen(seen);

    (void)ctx;
    if (arg != NULL && strcmp(arg, "bad") == 0)
        return moe_err_set(e, MOE_EUSAGE, "--output: bad");
    (void)snprintf(seen + n, sizeof(seen) - n, "%d=%s ", id, arg == NULL ? "-" : arg);
    return 0;
}

/* Parse words separated by blanks; returns the code, first operand in *operand. */
static int
parse(const char *line, const char **operand, struct moe_err *e)
{
    static char copy[256];
    static char *argv[32];
    char *save = NULL;
    bool done;
    int argc = 0, first = 0, rc;

    (void)snprintf(copy, sizeof(copy), "moe-x %s", line);
    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    argv[argc] = NULL;
    seen[0] = '\0';
    rc = moe_opt_parse(&cmd, argc, argv, note, NULL, &first, &done, e);
    if (operand != NULL)
        *operand = rc == 0 ? argv[first] : NULL;
    return rc;
}

static void
accepted(void)
{
    static const struct {
        const char *line, *seen, *operand;
    } t[] = {
        { "", "", NULL },
        { "a b", "", "a" },
        { "-o x a", "1=x ", "a" },
        { "-ox a", "1=x ", "a" },
        { "--output x -s a", "1=x 4=- ", "a" },
        { "--output=x a", "1=x ", "a" },
        { "a -o x", "1=x ", "a" },
        { "-so x", "4=- 1=x ", NULL },
        { "-o - -", "1=- ", "-" },
        { "-s -- -o", "4=- ", "-o" },
        { "--skip=a --skip b --skip=", "3=a 3=b 3= ", NULL },
        { "-f int8", "2=int8 ", NULL },
    };
    const char *operand;
    struct moe_err e = { 0, "" };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        tap_is_int(parse(t[i].line, &operand, &e), 0, "'%s' is accepted", t[i].line);
        tap_is_str(seen, t[i].seen, "'%s': options", t[i].line);
        if (t[i].operand == NULL)
            tap_ok(operand == NULL, "'%s': no operand", t[i].line);
        else
            tap_is_str(operand, t[i].operand, "'%s': operand", t[i].line);
    }
}

static void
refused(void)
{
    static const struct {
        const char *line, *text;
    } t[] = {
        { "-z", "unknown option '-z'" },
        { "-sz", "unknown option '-z'" },
        { "--zed", "unknown or ambiguous option '--zed'" },
        { "a --zed=1 b", "unknown or ambiguous option '--zed=1'" },
        { "--s", "unknown or ambiguous option '--s'" },
        { "-o", "--output needs an argument" },
        { "--output", "--output needs an argument" },
        { "--sum=1", "--sum takes no argument" },
        { "-o a --output b", "--output is given twice" },
        { "-s -s", "--sum is given twice" },
        { "-s -c", "--sum and --check cannot be given together" },
        { "-f int", "--format: 'int' is none of int4|int8" },
        { "-f int4|int8", "--format: 'int4|int8' is none of int4|int8" },
        { "--format=", "--format: '' is none of int4|int8" },
        { "-o bad", "--output: bad" },
    };
    struct moe_err e = { 0, "" };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        tap_is_int(parse(t[i].line, NULL, &e), MOE_EUSAGE, "'%s' is refused", t[i].line);
        tap_is_str(e.text, t[i].text, "'%s': why", t[i].line);
    }
}

static void
help(void)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    moe_opt_help(&cmd, f);
    fclose(f);
    tap_is_str(text,
        "Usage: moe-x -s [-o FILE] PATH...\n"
        "       moe-x -c [LIST]\n"
        "Do a thing.\n"
        "\n"
        "  -o, --output FILE  write to FILE\n"
        "  -f, --format NAME  int4 or int8\n"
        "      --skip GLOB    skip names (may be repeated)\n"
        "  -s, --sum          make a list\n"
        "  -c, --check        check a list\n"
        "  -h, --help         show this text\n"
        "      --version      show the version\n"
        "      --completion   print a completion script for bash\n",
        "the help text");
    free(text);
}

int
main(void)
{
    accepted();
    refused();
    help();
    return tap_done();
}
