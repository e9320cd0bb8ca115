/* SPDX-License-Identifier: Apache-2.0 */
/* Temporaries: where they lie, whose they are, how they get the name. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/part.h"
#include "tests/scratch.h"
#include "tests/tap.h"

static void
finds(const char *path, const char *name, bool exists)
{
    struct moe_part p;
    struct moe_err e = { 0, "" };

    tap_is_int(moe_part_find(&p, path, &e), 0, "find %s: %s", path, e.text);
    tap_is_str(p.name, name, "its name");
    tap_ok(p.exists == exists && p.dirfd >= 0, "whether it is there");
    moe_part_fini(&p);
}

static void
refuses(const char *path, const char *want)
{
    struct moe_part p;
    struct moe_err e = { 0, "" };

    tap_is_int(moe_part_find(&p, path, &e), MOE_EIO, "refuse '%s'", path);
    tap_is_str(e.text, want, "and say why");
    moe_part_fini(&p);
}

static void
places(void)
{
    bool linked = mkdir("far", 0755) == 0 && symlink("far/file", "link") == 0 &&
        symlink("nothing", "dangling") == 0 && symlink("far", "way") == 0;

    scratch_put("far/file", "x");
    tap_ok(linked, "the links");
    finds("file", "file", false);
    finds("./far/file", "file", true);
    finds("far//", "far", true);
    finds("link", "file", true);
    finds("way/other", "other", false);
    finds("way", "far", true);
    refuses("dangling", "dangling: a link to nothing");
    refuses("", ": not a name for an output");
    refuses("/", "/: not a name for an output");
    refuses("far/..", "far/..: not a name for an output");
    refuses("none/file", "none/file: No such file or directory");
    refuses("far/file/x", "far/file/x: Not a directory");
}

/* Those of the dead go, those of the living and of other outputs stay. */
static void
stale(void)
{
    struct moe_part mine, other;
    struct stat st;
    bool made = mkdir("out", 0755) == 0 && chdir("out") == 0 &&
        mkdir(".f.aaaaab.part", 0755) == 0 && mkdir(".f.aaaaab.part/sub", 0755) == 0 &&
        mkfifo(".f.aaaaaf.part", 0644) == 0;

    scratch_put(".f.aaaaaa.part", "left");
    scratch_put(".f.aaaaab.part/sub/x", "left");
    scratch_put(".f.aaaaa.part", "short");
    scratch_put(".g.aaaaaa.part", "of another");
    scratch_put("f.aaaaaa.part", "visible");
    tap_ok(made, "what is left over");
    tap_ok(moe_part_find(&mine, "f", NULL) == 0 && moe_part_begin(&mine, false, NULL) == 0,
        "one begins");
    tap_ok(access(".f.aaaaaa.part", F_OK) != 0, "a left file goes");
    tap_ok(access(".f.aaaaab.part", F_OK) != 0, "a left directory goes");
    tap_ok(access(".f.aaaaa.part", F_OK) == 0 && access(".g.aaaaaa.part", F_OK) == 0 &&
        access("f.aaaaaa.part", F_OK) == 0 && access(".f.aaaaaf.part", F_OK) == 0,
        "other things stay");
    tap_ok(moe_part_find(&other, "f", NULL) == 0 && moe_part_begin(&other, false, NULL) == 0,
        "another begins");
    tap_ok(stat(mine.tmp, &st) == 0, "the temporary of the living stays");
    tap_ok(strcmp(mine.tmp, other.tmp) != 0, "they do not share");
    moe_part_drop(&mine);
    moe_part_drop(&mine);
    tap_ok(stat(mine.tmp, &st) != 0 || mine.tmp[0] == '\0', "dropped");
    moe_part_fini(&mine);
    moe_part_drop(&other);
    moe_part_fini(&other);
    tap_is_int(scratch_count("."), 4, "nothing but the others is left");
    tap_ok(chdir("..") == 0, "back");
}

static void
long_names(void)
{
    char name[NAME_MAX + 1];
    struct moe_part p;
    struct moe_err e = { 0, "" };
    bool named = false;

    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    tap_ok(moe_part_find(&p, name, &e) == 0 && moe_part_begin(&p, false, &e) == 0,
        "the longest name: %s", e.text);
    tap_is_int((long long)strlen(p.tmp), NAME_MAX, "its temporary is as long");
    tap_ok(moe_part_publish(&p, MOE_PART_NEW, &named, &e) == 0 && named, "and gets it");
    moe_part_fini(&p);
    tap_ok(unlink(name) == 0, "it is there");
}

static void
begin(struct moe_part *p, const char *path, bool directory)
{
    struct moe_err e = { 0, "" };

    tap_ok(moe_part_find(p, path, &e) == 0 && moe_part_begin(p, directory, &e) == 0,
        "begin %s: %s", path, e.text);
}

static void
publishing(void)
{
    struct moe_part p;
    struct moe_err e = { 0, "" };
    struct stat st;
    bool named;

    begin(&p, "new", false);
    scratch_put("new", "came between");
    tap_is_int(moe_part_publish(&p, MOE_PART_NEW, &named, &e), MOE_EEXIST, "a name that was taken");
    tap_is_str(e.text, "new: appeared while it was being written", "said so");
    tap_ok(!named && scratch_holds("new", "came between"), "what is there is untouched");
    tap_is_int(moe_part_publish(&p, MOE_PART_REPLACE, &named, &e), 0, "replaced");
    tap_ok(named && scratch_holds("new", ""), "by ours");
    moe_part_fini(&p);

    tap_ok(chmod("new", 0600) == 0, "a private file");
    begin(&p, "new", false);
    tap_ok(fstat(p.fd, &st) == 0 && (st.st_mode & 0777) == 0600, "has a private temporary");
    moe_part_drop(&p);
    moe_part_fini(&p);

    tap_ok(mkdir("dir", 0755) == 0 && mkdir("dir/sub", 0755) == 0, "a directory");
    scratch_put("dir/sub/old", "old");
    begin(&p, "dir", true);
    tap_is_int(moe_part_publish(&p, MOE_PART_REPLACE, &named, &e), MOE_EEXIST,
        "that is not empty is not replaced");
    tap_ok(!named, "nor named");
    tap_is_int(moe_part_publish(&p, MOE_PART_EXCHANGE, &named, &e), 0, "but exchanged");
    tap_ok(named && scratch_count("dir") == 0, "the new one is there");
    moe_part_fini(&p);
    begin(&p, "dir", true);
    tap_is_int(moe_part_publish(&p, MOE_PART_REPLACE, &named, &e), 0, "an empty one is replaced");
    moe_part_fini(&p);
    begin(&p, "dir2", true);
    tap_is_int(moe_part_publish(&p, MOE_PART_NEW, &named, &e), 0, "a new one");
    moe_part_fini(&p);
}

int
main(void)
{
    struct moe_part p = MOE_PART_INIT;

    moe_part_fini(&p);
    scratch_enter();
    places();
    stale();
    long_names();
    publishing();
    /* far, way, link, dangling, out, new, dir, dir2 and no temporary */
    tap_is_int(scratch_count("."), 8, "no temporary is left");
    scratch_leave();
    return tap_done();
}
