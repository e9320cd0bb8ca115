/* SPDX-License-Identifier: Apache-2.0 */
/* The completion script, sourced by bash and asked as readline would ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/completion.h"
#include "tests/tap.h"

static const struct moe_opt rows[] = {
    { 1, 'o', "output", MOE_OPT_FILE, "FILE", "write", NULL, false, false },
    { 2, 'f', "format", MOE_OPT_CHOICE, "NAME", "format", "int4|int8|fp8", false, false },
    { 3, 'C', "directory", MOE_OPT_DIR, "DIR", "where", NULL, false, false },
    { 4, 'g', "group", MOE_OPT_WORD, "N", "group", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "sum PATH", NULL };
static const char *const verbs[] = { "sum", "check", NULL };
static const struct moe_opt_cmd cmd = { "moe-x", usage, "Do.", rows, verbs };

static const struct moe_opt into[] = {
    { 1, 0, "into", MOE_OPT_FILE, "FILE", "where", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};
static const struct moe_opt_cmd split = { "moe-x split", usage, "Cut.", rows, NULL };
static const struct moe_opt_cmd merge = { "moe-x merge", usage, "Join.", into, NULL };
static const struct moe_verb verb_rows[] = {
    { "split", &split, NULL },
    { "merge", &merge, NULL },
    { NULL, NULL, NULL },
};
static const struct moe_verb_set set = { "moe-x", "Do.", verb_rows };

/* What bash offers when the cursor is on the last of words, or NULL. */
static void
offers(const char *script, const char *words, const char *want)
{
    char line[1024], got[1024] = "";
    size_t n;
    FILE *p;

    (void)snprintf(line, sizeof(line),
        "bash -c 'compopt() { :; }; cd %s; . ./script; COMP_WORDS=(moe-x %s); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _moe_x; echo \"${COMPREPLY[*]}\"'",
        script, words);
    p = popen(line, "r");
    n = p == NULL ? 0 : fread(got, 1, sizeof(got) - 1, p);
    if (p != NULL)
        pclose(p);
    got[n > 0 ? n - 1 : 0] = '\0';
    tap_is_str(got, want, "after '%s'", words);
}

int
main(void)
{
    char dir[] = "completion.XXXXXX", path[64];
    FILE *f;

    if (mkdtemp(dir) == NULL)
        return 2;
    (void)snprintf(path, sizeof(path), "%s/script", dir);
    if ((f = fopen(path, "w")) == NULL)
        return 2;
    moe_completion_bash(&cmd, f);
    fclose(f);
    offers(dir, "--f", "--format");
    offers(dir, "--", "--output --format --directory --group --help --version --completion");
    offers(dir, "-f i", "int4 int8");
    offers(dir, "--format = fp", "fp8");
    offers(dir, "--format =", "int4 int8 fp8");
    offers(dir, "-g \"\"", "");
    offers(dir, "c", "check");
    offers(dir, "-o scr", "script");
    offers(dir, "-C scr", "");
    offers(dir, "check scr", "script");
    if ((f = fopen(path, "w")) == NULL)
        return 2;
    moe_completion_verbs(&set, f);
    fclose(f);
    offers(dir, "s", "split");
    offers(dir, "--h", "--help");
    offers(dir, "split --f", "--format");
    offers(dir, "merge --", "--into --help --version --completion");
    offers(dir, "split --format = fp", "fp8");
    offers(dir, "merge --format", "");
    offers(dir, "merge scr", "script");
    unlink(path);
    rmdir(dir);
    return tap_done();
}
