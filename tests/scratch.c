/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the scratch directory of a test.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/scratch.h"

static char top[] = P_tmpdir "/moe-test-XXXXXX";

void
scratch_enter(void)
{
    if (mkdtemp(top) == NULL || chdir(top) != 0) {
        perror(top);
        exit(2);
    }
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void
scratch_leave(void)
{
    if (chdir("/") != 0 || nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        perror(top);
}

void
scratch_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(path);
        exit(2);
    }
    close(fd);
}

bool
scratch_holds(const char *path, const char *text)
{
    int fd = open(path, O_RDONLY);
    size_t n = strlen(text);
    char got[1024];
    ssize_t k = fd < 0 ? -1 : read(fd, got, sizeof(got));

    if (fd >= 0)
        close(fd);
    return k >= 0 && (size_t)k == n && memcmp(got, text, n) == 0;
}

int
scratch_count(const char *dir)
{
    DIR *d = opendir(dir);
    int n = -2;     /* "." and ".." */

    if (d == NULL)
        return -1;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}
