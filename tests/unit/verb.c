/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of commands: which one is run, with what, and what is refused. */
#include <stdio.h>

#include "common/base/verb.h"
#include "tests/tap.h"

static const struct moe_opt none[] = {
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};
static const char *const usage[] = { "FILE", NULL };
static const struct moe_opt_cmd cut = { "moe-x cut", usage, "Cut.", none, NULL };
static const struct moe_opt_cmd join = { "moe-x join", usage, "Join.", none, NULL };

/* What the last run was given. */
static char seen[64];

static int
run_cut(int argc, char **argv, struct moe_err *e)
{
    (void)e;
    (void)snprintf(seen, sizeof(seen), "%s%s", argv[argc - 1], argv[0]);
    return 1;
}

static int
run_join(int argc, char **argv, struct moe_err *e)
{
    (void)argc;
    (void)argv;
    return moe_err_set(e, MOE_EIO, "cannot");
}

static const struct moe_verb verbs[] = {
    { "cut", &cut, run_cut },
    { "join", &join, run_join },
    { NULL, NULL, NULL },
};
static const struct moe_verb_set set = { "moe-x", "Do.", verbs };

static int
run(const char *a, const char *b, struct moe_err *e)
{
    char *argv[] = { (char *)"moe-x", (char *)a, (char *)b, NULL };

    return moe_verb_run(&set, a == NULL ? 1 : b == NULL ? 2 : 3, argv, e);
}

int
main(void)
{
    struct moe_err e = { 0 };

    tap_is_int(run("cut", "this", &e), 1, "the command's result");
    tap_is_str(seen, "thiscut", "the command's words");
    tap_is_int(run("join", NULL, &e), MOE_EIO, "the command's error");
    tap_is_int(run(NULL, NULL, &e), MOE_EUSAGE, "no command: %s", e.text);
    tap_is_int(run("cu", NULL, &e), MOE_EUSAGE, "a part of a name: %s", e.text);
    tap_is_int(run("--json", "cut", &e), MOE_EUSAGE, "an option before: %s", e.text);
    tap_is_int(run("", NULL, &e), MOE_EUSAGE, "an empty word: %s", e.text);
    return tap_done();
}
