/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt get`: one tensor of a save, read without the rest. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_get.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/num.h"
#include "common/base/out.h"

enum { OUTPUT = 1, FORCE, RAW, FILE_OF, THREADS };

static const struct moe_opt rows[] = {
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "FILE", "write to FILE; default: standard output", NULL,
        false, false },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace FILE if it is there", NULL, false, false },
    { RAW, 0, "raw", MOE_OPT_NONE, NULL, "the bytes alone, not as safetensors", NULL, false,
        false },
    { FILE_OF, 0, "file", MOE_OPT_WORD, "NAME", "the file of the save that holds the tensor",
        NULL, false, false },
    { THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", NULL,
        false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = {
    "[--raw] [--file NAME] [-o FILE] STORE@ID:TENSOR", NULL };

const struct moe_opt_cmd ckpt_get_cmd = { "moe-ckpt get", usage, "Print one tensor of a save.",
    rows, NULL };

struct args { const char *output, *file; bool force, raw; int threads; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;
    int64_t n;
    int rc;

    switch (id) {
    case OUTPUT: a->output = arg; break;
    case FORCE: a->force = true; break;
    case RAW: a->raw = true; break;
    case FILE_OF: a->file = arg; break;
    default:
        if ((rc = moe_num_int(arg, 1, MOE_POOL_MAX, "threads", &n, e)) != 0)
            return rc;
        a->threads = (int)n;
    }
    return 0;
}

static int
put(void *ctx, const void *p, size_t n, struct moe_err *e)
{
    return moe_out_write(ctx, p, n, e);
}

/* Find the file that holds the tensor; its header is then in box. */
static int
find(struct ckpt_spec_open *s, const struct args *a, struct moe_loader_box *box,
    const struct moe_snapshot_file **file, struct moe_err *e)
{
    int rc;

    for (size_t i = 0; i < s->snap.n; i++) {
        const struct moe_snapshot_file *f = &s->snap.files[i];

        if (f->form != MOE_SNAPSHOT_SAFET || (a->file != NULL && strcmp(a->file, f->name) != 0))
            continue;
        if ((rc = moe_loader_box(s->loader, f, box, e)) != 0)
            return rc;
        if (moe_safet_find(box->h, s->spec.name) != NULL) {
            *file = f;
            return 0;
        }
        moe_loader_box_fini(box);
    }
    return moe_err_set(e, MOE_ENOENT, "%s@%s: holds no tensor %s", s->spec.store, s->spec.id,
        s->spec.name);
}

static int
get(struct ckpt_spec_open *s, const struct args *a, struct moe_out *o, struct moe_err *e)
{
    struct moe_loader_box box = { 0 };
    const struct moe_snapshot_file *f = NULL;
    const struct moe_layout_part *p;
    struct moe_buf head = MOE_BUF_INIT;
    size_t k;
    int rc;

    if ((rc = find(s, a, &box, &f, e)) != 0)
        goto out;
    if (!a->raw) {
        if ((rc = moe_safet_write(&head, moe_safet_find(box.h, s->spec.name), 1, NULL, 8, e)) != 0)
            goto out;
        rc = moe_out_write(o, head.p, head.len, e);
    }
    p = moe_layout_find(&box.layout, box.h, s->spec.name);
    if (rc == 0 && p != NULL) {
        k = (size_t)(p - box.layout.v);
        rc = ckpt_spec_where(s, f, &box, k,
            moe_loader_run(s->loader, &box.parts.v[k], 1, put, o, e), e);
    }
out:
    moe_buf_fini(&head);
    moe_loader_box_fini(&box);
    return rc;
}

int
ckpt_get(int argc, char **argv, struct moe_err *e)
{
    struct ckpt_spec_open s = CKPT_SPEC_OPEN_INIT;
    struct args a = { "-", NULL, false, false, 0 };
    struct moe_out *o = NULL;
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_get_cmd, argc, argv, option, &a, &first, &done, e)) != 0 || done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "get wants one STORE@ID:TENSOR");
    rc = ckpt_spec_open(argv[first], a.threads, &s, e);
    if (rc == 0 && s.spec.name == NULL)
        rc = moe_err_set(e, MOE_EUSAGE, "%s: names no tensor", argv[first]);
    if (rc == 0 && (rc = moe_out_open(a.output, a.force, 0, &o, e)) == 0 &&
        (rc = get(&s, &a, o, e)) == 0) {
        rc = moe_out_commit(o, e);
        o = NULL;
    }
    moe_out_abort(o);
    ckpt_spec_close(&s);
    return rc;
}
