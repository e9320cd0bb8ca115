/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays files through a fuzz harness without a fuzzer: one TAP line a file.
 * Arguments are files, or directories whose files are taken in order of name.
 * Each file is handed over in a block of exactly its size, so that a sanitizer
 * sees the first byte read past the end. A harness fails by crashing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int n_run, n_bad;

/* The file's bytes in a block of exactly that size; NULL: it cannot be read. */
static uint8_t *
load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = NULL;
    long len;

    if (f == NULL)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (len = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
        (p = malloc(len > 0 ? (size_t)len : 1)) != NULL) {
        *n = (size_t)len;
        if (fread(p, 1, *n, f) != *n) {
            free(p);
            p = NULL;
        }
    }
    fclose(f);
    return p;
}

static void
replay(const char *path)
{
    size_t n = 0;
    uint8_t *p = load(path, &n);
    int rc = -1;

    if (p != NULL) {
        /* Tell a crash which file it was. */
        printf("# %s\n", path);
        fflush(stdout);
        rc = LLVMFuzzerTestOneInput(p, n);
    }
    free(p);
    n_run++;
    if (rc != 0)
        n_bad++;
    printf("%sok %d - %s%s\n", rc != 0 ? "not " : "", n_run, path,
        p == NULL ? ": cannot be read" : "");
}

static int
visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static void
replay_dir(const char *dir)
{
    struct dirent **names;
    int n = scandir(dir, &names, visible, alphasort);

    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;

        if (snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name) < (int)sizeof(path) &&
            stat(path, &st) == 0 && S_ISREG(st.st_mode))
            replay(path);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

int
main(int argc, char **argv)
{
    struct stat st;

    for (int i = 1; i < argc; i++) {
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
            replay_dir(argv[i]);
        else
            replay(argv[i]);
    }
    printf("1..%d\n", n_run);
    return n_run == 0 || n_bad > 0;
}
