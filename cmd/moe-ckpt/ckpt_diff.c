/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-ckpt diff`: what two saves do not have in common, by the digests
 * that the store has; no tensor is read.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_diff.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/jsonw.h"
#include "common/base/tool.h"

enum { JSON = 1, QUIET };

static const struct moe_opt rows[] = {
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "print nothing", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [--json] STORE@ID STORE[@ID]", NULL };

const struct moe_opt_cmd ckpt_diff_cmd = { "moe-ckpt diff", usage,
    "Tell which tensors and files of two saves differ.", rows, NULL };

struct diff {
    bool json, quiet;
    struct ckpt_spec_open a, b;
    size_t differences;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct diff *d = ctx;

    (void)arg;
    (void)e;
    if (id == JSON)
        d->json = true;
    else
        d->quiet = true;
    return 0;
}

/* One difference: what is "differs", "missing" or "new"; tensor may be NULL. */
static int
tell(struct diff *d, const char *file, const char *tensor, const char *what, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_jsonw w = { &b, false };

    d->differences++;
    if (d->quiet)
        return 0;
    if (d->json) {
        moe_jsonw_open(&w, '{');
        moe_jsonw_key(&w, "file");
        moe_jsonw_str(&w, file, strlen(file));
        if (tensor != NULL) {
            moe_jsonw_key(&w, "tensor");
            moe_jsonw_str(&w, tensor, strlen(tensor));
        }
        moe_jsonw_key(&w, "is");
        moe_jsonw_str(&w, what, strlen(what));
        moe_jsonw_close(&w, '}');
    } else {
        moe_buf_show(&b, file, strlen(file));
        if (tensor != NULL) {
            moe_buf_str(&b, ": ");
            moe_buf_show(&b, tensor, strlen(tensor));
        }
        moe_buf_fmt(&b, ": %s", what);
    }
    if (b.bad) {
        moe_buf_fini(&b);
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    }
    printf("%s\n", b.p);
    moe_buf_fini(&b);
    return 0;
}

static bool
same_shape(const struct moe_tensor *t, const struct moe_tensor *u)
{
    if (t->dtype != u->dtype || t->rank != u->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] != u->shape[i])
            return false;
    return true;
}

/* The id of a tensor's bytes; NULL if it has none. */
static const unsigned char *
id_of(const struct moe_loader_box *x, const char *name)
{
    const struct moe_layout_part *p = moe_layout_find(&x->layout, x->h, name);

    return p != NULL ? x->parts.v[p - x->layout.v].ref.id : NULL;
}

static bool
same_tensor(const struct moe_loader_box *x, const struct moe_tensor *t,
    const struct moe_loader_box *y, const struct moe_tensor *u)
{
    const unsigned char *a = id_of(x, t->name), *b = id_of(y, u->name);

    return same_shape(t, u) &&
        (a == NULL ? b == NULL : b != NULL && memcmp(a, b, MOE_DIGEST_LEN) == 0);
}

static int
tensors(struct diff *d, const char *file, const struct moe_loader_box *x,
    const struct moe_loader_box *y, struct moe_err *e)
{
    size_t before = d->differences;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < moe_safet_n(x->h); i++) {
        const struct moe_tensor *t = moe_safet_by_name(x->h, i), *u = moe_safet_find(y->h, t->name);

        if (u == NULL)
            rc = tell(d, file, t->name, "missing", e);
        else if (!same_tensor(x, t, y, u))
            rc = tell(d, file, t->name, "differs", e);
    }
    for (size_t i = 0; rc == 0 && i < moe_safet_n(y->h); i++) {
        const struct moe_tensor *u = moe_safet_by_name(y->h, i);

        if (moe_safet_find(x->h, u->name) == NULL)
            rc = tell(d, file, u->name, "new", e);
    }
    /* Only what is written about the tensors is another: metadata, order, padding. */
    return rc == 0 && d->differences == before ? tell(d, file, NULL, "header differs", e) : rc;
}

/* Two files of one name that are not the same. */
static int
compare(struct diff *d, const struct moe_snapshot_file *f, const struct moe_snapshot_file *g,
    struct moe_err *e)
{
    struct moe_loader_box x = { 0 }, y = { 0 };
    int rc;

    if (f->size == g->size && memcmp(f->list.id, g->list.id, MOE_DIGEST_LEN) == 0)
        return 0;
    if (f->form != MOE_SNAPSHOT_SAFET || g->form != MOE_SNAPSHOT_SAFET)
        return tell(d, f->name, NULL, "differs", e);
    if ((rc = moe_loader_box(d->a.loader, f, &x, e)) == 0 &&
        (rc = moe_loader_box(d->b.loader, g, &y, e)) == 0)
        rc = tensors(d, f->name, &x, &y, e);
    moe_loader_box_fini(&x);
    moe_loader_box_fini(&y);
    return rc;
}

static int
run(struct diff *d, struct moe_err *e)
{
    const struct moe_snapshot *a = &d->a.snap, *b = &d->b.snap;
    int rc = 0;

    for (size_t i = 0, k = 0; rc == 0 && (i < a->n || k < b->n);) {
        int c = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->files[i].name, b->files[k].name);

        if (c < 0)
            rc = tell(d, a->files[i++].name, NULL, "missing", e);
        else if (c > 0)
            rc = tell(d, b->files[k++].name, NULL, "new", e);
        else
            rc = compare(d, &a->files[i++], &b->files[k++], e);
    }
    return rc != 0 ? rc : d->differences > 0 ? MOE_EXIT_NO : 0;
}

int
ckpt_diff(int argc, char **argv, struct moe_err *e)
{
    struct diff d = { .a = CKPT_SPEC_OPEN_INIT, .b = CKPT_SPEC_OPEN_INIT };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_diff_cmd, argc, argv, option, &d, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "diff wants two of STORE@ID");
    if ((rc = ckpt_spec_open(argv[first], 1, &d.a, e)) == 0 &&
        (rc = ckpt_spec_open(argv[first + 1], 1, &d.b, e)) == 0)
        rc = d.a.spec.name != NULL || d.b.spec.name != NULL
            ? moe_err_set(e, MOE_EUSAGE, "diff compares whole saves") : run(&d, e);
    ckpt_spec_close(&d.a);
    ckpt_spec_close(&d.b);
    return rc;
}
