/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from files stay beneath their directory, through openat2 and through
 * the walk that stands in for it; the one link that is followed is the cache's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/beneath.h"
#include "common/base/beneath_walk.h"
#include "tests/tap.h"

#define HASH64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HASH40 "0123456789abcdef0123456789abcdef01234567"

typedef int open_fn(int dirfd, const char *dir, const char *name, struct moe_err *e);

static void
put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        perror(path);
        exit(2);
    }
    close(fd);
}

static void
link_to(const char *target, const char *path)
{
    if (symlink(target, path) != 0) {
        perror(path);
        exit(2);
    }
}

/* A repository as the hub's client lays it out, and a directory beside it, in the current one. */
static void
make_tree(void)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "repo/snapshots/rev/socket" };
    int s = socket(AF_UNIX, SOCK_STREAM, 0), bad = 0;

    bad |= mkdir("repo", 0755) | mkdir("repo/blobs", 0755) | mkdir("repo/snapshots", 0755);
    bad |= mkdir("repo/snapshots/rev", 0755) | mkdir("repo/snapshots/rev/sub", 0755);
    bad |= mkdir("repo/other", 0755) | mkdir("repo/other/rev", 0755);
    put("secret", "secret");
    put("repo/secret", "secret");
    put("repo/blobs/" HASH64, "large");
    put("repo/blobs/" HASH40, "small");
    put("repo/blobs/name", "named");
    if (chdir("repo/snapshots/rev") != 0)
        exit(2);
    put("plain", "plain");
    put("sub/plain", "in sub");
    link_to("../../blobs/" HASH64, "large");
    link_to("../../../blobs/" HASH40, "sub/small");
    link_to("../../blobs/" HASH40, "sub/wrong-depth");
    link_to("../../blobs/name", "named");
    link_to("../../blobs/../secret", "sly");
    link_to("../../secret", "out");
    link_to("/dev/null", "abs");
    link_to("plain", "inside");
    link_to("sub", "subway");
    link_to("../..", "up");
    link_to("loop", "loop");
    link_to("../../blobs/0123456789abcdef0123456789abcdef01234568", "dangling");
    link_to("../../blobs/" HASH64, "../../other/rev/large");
    link_to("/etc/passwd", "../../blobs/fedcba9876543210fedcba9876543210fedcba98");
    link_to("../../blobs/fedcba9876543210fedcba9876543210fedcba98", "two-links");
    bad |= mkfifo("fifo", 0644);
    if (bad != 0 || chdir("../../..") != 0 || s < 0 ||
        bind(s, (struct sockaddr *)&sun, sizeof(sun)) != 0) {
        perror("the tree");
        exit(2);
    }
    close(s);
}

static void
gives(open_fn *fn, int dir, const char *name, const char *want)
{
    struct moe_err e = { 0, "" };
    char got[32] = "";
    int fd = fn(dir, "d", name, &e);

    tap_ok(fd >= 0 && read(fd, got, sizeof(got) - 1) > 0 && strcmp(got, want) == 0, "%s opens: %s",
        name, fd < 0 ? e.text : got);
    tap_ok(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) && !(fcntl(fd, F_GETFL) & O_NONBLOCK),
        "close-on-exec and blocking");
    close(fd);
}

static void
refuses(open_fn *fn, int dir, const char *name, int code)
{
    struct moe_err e = { 0, "" };
    int fd = fn(dir, "d", name, &e);

    tap_is_int(fd, code, "'%.40s' is refused: %.60s", name, e.text);
    if (fd >= 0)
        close(fd);
}

static void
both_ways(open_fn *fn, int dir)
{
    char big[5000];

    gives(fn, dir, "plain", "plain");
    gives(fn, dir, "sub/plain", "in sub");
    gives(fn, dir, "./sub//./plain", "in sub");
    gives(fn, dir, "large", "large");
    gives(fn, dir, "sub/small", "small");
    refuses(fn, dir, "", MOE_EFORMAT);
    refuses(fn, dir, "/etc/passwd", MOE_EFORMAT);
    refuses(fn, dir, "..", MOE_EFORMAT);
    refuses(fn, dir, "../../secret", MOE_EFORMAT);
    refuses(fn, dir, "sub/../plain", MOE_EFORMAT);
    refuses(fn, dir, "sub/..", MOE_EFORMAT);
    refuses(fn, dir, "plain/", MOE_EFORMAT);
    refuses(fn, dir, "sub", MOE_EFORMAT);
    refuses(fn, dir, ".", MOE_EFORMAT);
    refuses(fn, dir, "fifo", MOE_EFORMAT);
    refuses(fn, dir, "socket", MOE_EFORMAT);
    refuses(fn, dir, "out", MOE_EFORMAT);
    refuses(fn, dir, "abs", MOE_EFORMAT);
    refuses(fn, dir, "named", MOE_EFORMAT);
    refuses(fn, dir, "sly", MOE_EFORMAT);
    refuses(fn, dir, "up/secret", MOE_EFORMAT);
    refuses(fn, dir, "sub/wrong-depth", MOE_EFORMAT);
    refuses(fn, dir, "loop", MOE_EFORMAT);
    refuses(fn, dir, "two-links", MOE_EFORMAT);
    refuses(fn, dir, "dangling", MOE_ENOENT);
    refuses(fn, dir, "missing", MOE_ENOENT);
    refuses(fn, dir, "missing/x", MOE_ENOENT);
    refuses(fn, dir, "plain/x", MOE_ENOENT);
    memset(big, 'a', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    refuses(fn, dir, big, MOE_EFORMAT);
    big[300] = '\0';
    refuses(fn, dir, big, MOE_EFORMAT);
    big[300] = '/';
    big[310] = '\0';
    refuses(fn, dir, big, MOE_EFORMAT);
    refuses(fn, -1, "x", MOE_EIO);
}

int
main(void)
{
    char top[] = P_tmpdir "/moe-beneath-XXXXXX", sweep[64];
    struct moe_err e = { 0, "" };
    int rev, other, fd;

    if (mkdtemp(top) == NULL || chdir(top) != 0)
        return 2;
    make_tree();
    rev = moe_beneath_dir("repo/snapshots/rev", &e);
    other = moe_beneath_dir("repo/other/rev", &e);
    tap_ok(rev >= 0 && other >= 0, "directories open");
    tap_is_int(moe_beneath_dir("none", &e), MOE_ENOENT, "a missing one does not");
    tap_is_int(moe_beneath_dir("secret", &e), MOE_EIO, "nor does a file");
    both_ways(moe_beneath_open, rev);
    both_ways(moe_beneath_walk, rev);
    refuses(moe_beneath_open, other, "large", MOE_EFORMAT);
    refuses(moe_beneath_walk, other, "large", MOE_EFORMAT);
    refuses(moe_beneath_walk, rev, "inside", MOE_EFORMAT);
    refuses(moe_beneath_walk, rev, "subway/plain", MOE_EFORMAT);
    /* Links that stay inside are the kernel's to follow, where it can. */
    if ((fd = moe_beneath_open(rev, "d", "inside", &e)) < 0)
        tap_skip("no openat2 here");
    else
        gives(moe_beneath_open, rev, "subway/plain", "in sub");
    if (snprintf(sweep, sizeof(sweep), "rm -rf '%s'", top) < (int)sizeof(sweep) &&
        chdir("/") == 0)
        return system(sweep) != 0 || tap_done();
    return 2;
}
