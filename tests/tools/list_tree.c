/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_tree DIR: make the files that the lists of tests/data/lists name. File i
 * holds "shared i NAME", but "empty" nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = {
    "plain.bin", "sub/dir/deep.bin", "two  blanks", " leading blank", "trailing blank ",
    "*star", "#hash", "new\nline", "\nfirst", "back\\slash", "\\lead", "back\\nslash-n",
    "cr\rmiddle", "cr at end\r", "tab\tin", "paren)", "paren) = 0", "SHA256 (x) = y", "-dash",
    "--tag", "q'uote\"s", "esc\033[31m", "bel\007", "latin-\351.bin", "cut-\360\237\230",
    "nul-ish\377\376", "utf8-\303\251\346\235\203\360\237\230\200", "nfd-e\314\201",
    "repl-\357\277\275", "rtl-\342\200\256gpj", "$(id)", "`id`", "~", "a:1:2", "empty",
    "long-"
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "deadbeef  name",
};

static int
make(size_t i)
{
    char dir[256];
    const char *slash = names[i];
    FILE *f;

    for (; (slash = strchr(slash, '/')) != NULL; slash++) {
        snprintf(dir, sizeof(dir), "%.*s", (int)(slash - names[i]), names[i]);
        (void)mkdir(dir, 0777);
    }
    if ((f = fopen(names[i], "wb")) == NULL)
        return -1;
    if (strncmp(names[i], "empty", 5) != 0)
        fprintf(f, "shared %zu %s", i, names[i]);
    return fclose(f);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: list_tree DIR\n");
        return 2;
    }
    (void)mkdir(argv[1], 0777);
    if (chdir(argv[1]) != 0) {
        perror(argv[1]);
        return 2;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (make(i) != 0) {
            perror(names[i]);
            return 2;
        }
    return 0;
}
