/* SPDX-License-Identifier: Apache-2.0 */
/* Directories as one output: they appear whole, or not at all. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/out.h"
#include "tests/scratch.h"
#include "tests/tap.h"

/* Make a directory of two files; commit it or throw it away. */
static int
make(const char *path, bool force, bool commit, struct moe_err *e)
{
    struct moe_outdir *d;
    struct moe_out *o = NULL;
    int rc;

    if ((rc = moe_outdir_open(path, force, &d, e)) != 0)
        return rc;
    if ((rc = moe_outdir_file(d, "weights", 100, &o, e)) != 0 ||
        (rc = moe_outdir_put(d, "config", "{}", 2, e)) != 0 ||
        (rc = moe_out_write(o, "bytes", 5, e)) != 0) {
        moe_out_abort(o);
        moe_outdir_abort(d);
        return rc;
    }
    if ((rc = moe_out_commit(o, e)) != 0 || !commit) {
        moe_outdir_abort(d);
        return rc;
    }
    return moe_outdir_commit(d, e);
}

static bool
is_ours(const char *path)
{
    char config[64], weights[64];

    (void)snprintf(config, sizeof(config), "%s/config", path);
    (void)snprintf(weights, sizeof(weights), "%s/weights", path);
    return scratch_count(path) == 2 && scratch_holds(config, "{}") &&
        scratch_holds(weights, "bytes");
}

static void
fresh(void)
{
    struct moe_err e = { 0, "" };
    struct stat st;

    tap_is_int(make("a", false, false, &e), 0, "thrown away: %s", e.text);
    tap_is_int(scratch_count("."), 0, "nothing is left");
    tap_is_int(make("a", false, true, &e), 0, "committed: %s", e.text);
    tap_ok(is_ours("a") && scratch_count(".") == 1, "is there, and no temporary");
    tap_is_int(make("a", false, true, &e), MOE_EEXIST, "again");
    tap_is_str(e.text, "a: exists already and is not empty", "said so");
    tap_ok(mkdir("b", 0750) == 0 && chmod("b", 0750) == 0, "an empty directory");
    tap_is_int(make("b///", false, true, &e), 0, "is used without force");
    tap_ok(is_ours("b") && stat("b", &st) == 0 && (st.st_mode & 0777) == 0750,
        "and keeps its permissions");
    scratch_put("f", "file");
    tap_is_int(make("f", true, true, &e), MOE_EEXIST, "a file is not replaced");
    tap_is_str(e.text, "f: exists and is not a directory", "said so");
    tap_is_int(make("none/a", false, true, &e), MOE_EIO, "no directory to be in");
    tap_ok(symlink("b", "l") == 0, "a link to a directory");
    tap_is_int(make("l", true, true, &e), 0, "leads to it");
    tap_ok(is_ours("b") && lstat("l", &st) == 0 && S_ISLNK(st.st_mode), "and stays a link");
    tap_is_int(scratch_count("."), 4, "no temporary");
}

/* The old directory, with what no output of ours holds, goes with an exchange. */
static void
by_force(void)
{
    struct moe_err e = { 0, "" };
    bool made = mkdir("old", 0755) == 0 && mkdir("old/sub", 0755) == 0 &&
        mkdir("old/sub/sub", 0755) == 0 && symlink("/", "old/root") == 0 &&
        mkfifo("old/fifo", 0600) == 0;
    int here = open(".", O_RDONLY | O_DIRECTORY);

    scratch_put("old/sub/sub/x", "x");
    scratch_put("kept", "kept");
    made = made && symlink("../kept", "old/kept") == 0;
    tap_ok(made, "a directory with many things");
    tap_is_int(make("old", false, true, &e), MOE_EEXIST, "not without force");
    tap_is_int(make("old", true, false, &e), 0, "begun and thrown away");
    tap_ok(access("old/sub/sub/x", F_OK) == 0, "leaves it alone");
    tap_ok(chdir("old/sub") == 0, "standing in it");
    tap_is_int(make("../../old", true, true, &e), MOE_EEXIST, "it is not taken away");
    tap_is_str(e.text, "../../old: is in use as the current directory", "said so");
    tap_ok(fchdir(here) == 0 && close(here) == 0, "back");
    tap_is_int(make("old", true, true, &e), 0, "exchanged: %s", e.text);
    tap_ok(is_ours("old"), "ours is there");
    tap_ok(scratch_holds("kept", "kept") && access("/", F_OK) == 0, "no link was followed");
    tap_is_int(scratch_count("."), 6, "no temporary");
}

static void
files(void)
{
    struct moe_err e = { 0, "" };
    struct moe_outdir *d;
    struct moe_out *o, *again;

    moe_outdir_open("d", false, &d, &e);
    tap_is_int(moe_outdir_file(d, "x", 0, &o, &e), 0, "a file");
    tap_is_int(moe_outdir_file(d, "x", 0, &again, &e), MOE_EEXIST, "not twice");
    tap_is_str(e.text, "d/x: File exists", "said so");
    tap_is_int(moe_outdir_put(d, "y", "y", 1, &e), 0, "another beside it");
    tap_is_int(moe_outdir_put(d, "../y", "y", 1, &e), MOE_EIO, "none outside");
    tap_is_int(moe_outdir_put(d, "..", "y", 1, &e), MOE_EIO, "nor above");
    tap_is_int(moe_outdir_put(d, "", "y", 1, &e), MOE_EIO, "nor without a name");
    moe_out_abort(o);
    tap_is_int(moe_outdir_file(d, "x", 1 << 20, &o, &e), 0, "thrown away and begun again");
    moe_out_write(o, "x", 1, &e);
    tap_is_int(moe_out_commit(o, &e), 0, "finished");
    tap_is_int(moe_outdir_file(d, "huge", (uint64_t)1 << 62, &o, &e), MOE_EIO, "no room");
    tap_ok(access("d", F_OK) != 0, "nothing shows before the commit");
    tap_is_int(moe_outdir_commit(d, &e), 0, "all at once");
    tap_ok(scratch_count("d") == 2 && scratch_holds("d/x", "x") && scratch_holds("d/y", "y"),
        "the two are there");
    moe_outdir_abort(NULL);
}

/* Killed in the middle: nothing shows, and the next run clears up. */
static void
killed(void)
{
    struct moe_err e = { 0, "" };
    struct moe_outdir *d;
    int ready[2], status, before = scratch_count(".");
    pid_t child;
    char c;

    if (pipe(ready) != 0 || (child = fork()) < 0)
        exit(2);
    if (child == 0) {
        moe_outdir_open("k", false, &d, NULL);
        moe_outdir_put(d, "config", "{}", 2, NULL);
        if (write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(2);
    }
    tap_ok(read(ready[0], &c, 1) == 1, "a child is at work");
    tap_is_int(make("k", false, false, &e), 0, "another run beside it");
    tap_is_int(scratch_count("."), before + 1, "leaves the child's temporary alone");
    tap_ok(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "the child is killed");
    tap_ok(access("k", F_OK) != 0, "nothing shows");
    tap_is_int(make("k", false, true, &e), 0, "the next run");
    tap_ok(is_ours("k"), "succeeds");
    tap_is_int(scratch_count("."), before + 1, "and clears up");
    close(ready[0]);
    close(ready[1]);
}

int
main(void)
{
    scratch_enter();
    fresh();
    by_force();
    files();
    killed();
    scratch_leave();
    return tap_done();
}
