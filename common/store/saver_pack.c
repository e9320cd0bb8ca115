/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the packs that a save makes. Does not know what their records mean.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/store/saver_pack.h"

int
moe_saver_pack_begin(struct moe_saver_packs *p, struct moe_store *store, struct moe_err *e)
{
    int rc;

    memset(p, 0, sizeof(*p));
    p->store = store;
    rc = moe_store_next_pack(store, &p->first, e);
    p->next = p->first;
    return rc;
}

bool
moe_saver_pack_find(struct moe_saver_packs *p, struct moe_pack_record *r)
{
    struct moe_pack_record there;

    if (p->w != NULL && moe_packw_find(p->w, r->ref.id, r->ref.type, &there)) {
        r->ref = there.ref;
        return true;
    }
    /* What a damaged pack hides is written once more. */
    if (moe_packs_find(p->store->packs, r->ref.id, r->ref.type, &there, NULL) <= 0 ||
        there.plain != r->plain)
        return false;
    r->ref = there.ref;
    return true;
}

int
moe_saver_pack_add(struct moe_saver_packs *p, struct moe_pack_record *r, const void *body,
    struct moe_err *e)
{
    struct moe_buf path = MOE_BUF_INIT;
    int rc = 0;

    if (p->w != NULL && moe_packw_full(p->w) && (rc = moe_saver_pack_end(p, e)) != 0)
        return rc;
    if (p->w == NULL) {
        moe_buf_fmt(&path, "%s/packs/%" PRIu64 ".pack", p->store->path, p->next);
        rc = path.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory")
                      : moe_packw_open(path.p, p->next, &p->w, e);
        moe_buf_fini(&path);
        if (rc != 0)
            return rc;
    }
    return moe_packw_add(p->w, r, body, e);
}

int
moe_saver_pack_end(struct moe_saver_packs *p, struct moe_err *e)
{
    uint64_t bytes;
    int rc;

    if (p->w == NULL)
        return 0;
    bytes = moe_packw_bytes(p->w) + moe_packw_n(p->w) * MOE_PACK_ENTRY + MOE_PACK_FOOT;
    rc = moe_packw_commit(p->w, e);
    p->w = NULL;
    /* Even when it failed the name may have been given. */
    p->next++;
    p->bytes += bytes;
    return rc != 0 ? rc : moe_packs_again(p->store->packs, e);
}

void
moe_saver_pack_keep(struct moe_saver_packs *p)
{
    p->first = p->next;
}

void
moe_saver_pack_abort(struct moe_saver_packs *p)
{
    char name[64];

    moe_packw_abort(p->w);
    p->w = NULL;
    if (p->store == NULL)
        return;
    for (; p->first < p->next; p->first++) {
        (void)snprintf(name, sizeof(name), "packs/%" PRIu64 ".pack", p->first);
        (void)unlinkat(p->store->dirfd, name, 0);
    }
}
