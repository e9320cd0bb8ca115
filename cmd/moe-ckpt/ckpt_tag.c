/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt tag`: names for saves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_spec.h"
#include "cmd/moe-ckpt/ckpt_tag.h"

enum { FORCE = 1, DELETE };

#define WAIT_MS 60000

static const struct moe_opt rows[] = {
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "move a tag that is there", NULL, false, false },
    { DELETE, 'd', "delete", MOE_OPT_NONE, NULL, "remove a tag", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[--force] STORE@ID NAME", "-d STORE NAME", "STORE", NULL };

const struct moe_opt_cmd ckpt_tag_cmd = { "moe-ckpt tag", usage,
    "Name a save, take a name away, or list the names.", rows, NULL };

struct args { bool force, remove; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    (void)arg;
    (void)e;
    if (id == FORCE)
        a->force = true;
    else
        a->remove = true;
    return 0;
}

static int
list(const char *path, struct moe_err *e)
{
    struct moe_ref_list refs = { NULL, 0 };
    struct moe_store *s;
    struct moe_ref ref;
    int rc;

    if ((rc = moe_store_open(path, false, 0, &s, e)) != 0)
        return rc;
    rc = moe_ref_list(s->dirfd, s->path, &refs, e);
    for (size_t i = 0; rc == 0 && i < refs.n; i++)
        if ((rc = moe_ref_read(s->dirfd, s->path, refs.name[i], &ref, e)) == 0)
            printf("%s %" PRIu64 "\n", refs.name[i], ref.id);
    moe_ref_list_fini(&refs);
    moe_store_close(s);
    return rc;
}

static int
remove_tag(const char *path, const char *name, struct moe_err *e)
{
    struct moe_store *s;
    int rc;

    if ((rc = moe_store_open(path, true, WAIT_MS, &s, e)) != 0)
        return rc;
    rc = moe_ref_drop(s->dirfd, s->path, name, e);
    moe_store_close(s);
    return rc;
}

static int
set_tag(const char *text, const char *name, bool force, struct moe_err *e)
{
    struct moe_snapshot snap = MOE_SNAPSHOT_INIT;
    struct ckpt_spec spec = CKPT_SPEC_INIT;
    struct moe_store *s = NULL;
    struct moe_ref ref;
    int rc;

    if ((rc = ckpt_spec_parse(text, &spec, e)) != 0 ||
        (rc = moe_store_open(spec.store, true, WAIT_MS, &s, e)) != 0)
        goto out;
    rc = moe_ref_read(s->dirfd, s->path, name, &ref, e);
    if (rc == 0 && !force)
        rc = moe_err_set(e, MOE_EEXIST, "%s: save %" PRIu64 " is called %s already (--force "
            "moves the name)", s->path, ref.id, name);
    else if (rc == MOE_ENOENT || force)
        rc = 0;
    if (rc == 0 && (rc = moe_store_find(s, spec.id, &snap, e)) == 0) {
        ref.id = snap.id;
        memcpy(ref.sum, snap.sum, MOE_DIGEST_LEN);
        rc = moe_ref_write(s->dirfd, s->path, name, &ref, e);
    }
out:
    moe_snapshot_fini(&snap);
    moe_store_close(s);
    ckpt_spec_fini(&spec);
    return rc;
}

int
ckpt_tag(int argc, char **argv, struct moe_err *e)
{
    struct args a = { false, false };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_tag_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    argc -= first;
    argv += first;
    if (argc == 1 && !a.remove && !a.force)
        return list(argv[0], e);
    if (argc != 2)
        return moe_err_set(e, MOE_EUSAGE, "tag wants STORE@ID and a name");
    if (!moe_ref_name_ok(argv[1]) || strcmp(argv[1], MOE_REF_LATEST) == 0)
        return moe_err_set(e, MOE_EUSAGE, "%s: cannot be a tag", argv[1]);
    return a.remove ? remove_tag(argv[0], argv[1], e) : set_tag(argv[0], argv[1], a.force, e);
}
