/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt show`: the files of a save, or their tensors with digests. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_show.h"
#include "cmd/moe-ckpt/ckpt_spec.h"
#include "common/base/jsonw.h"
#include "common/trust/sumlist.h"

enum { TENSORS = 1, JSON };

static const struct moe_opt rows[] = {
    { TENSORS, 't', "tensors", MOE_OPT_NONE, NULL, "the tensors, with digests and types", NULL,
        false, false },
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-t] [--json] STORE[@ID]", NULL };

const struct moe_opt_cmd ckpt_show_cmd = { "moe-ckpt show", usage,
    "List the files of a save, or their tensors.", rows, NULL };

struct args { bool tensors, json; };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    (void)arg;
    (void)e;
    if (id == TENSORS)
        a->tensors = true;
    else
        a->json = true;
    return 0;
}

static void
key_text(struct moe_jsonw *w, const char *key, const char *value, size_t n)
{
    moe_jsonw_key(w, key);
    moe_jsonw_str(w, value, n);
}

static void
file_line(const struct moe_snapshot_file *f, bool json, struct moe_buf *b)
{
    struct moe_jsonw w = { b, false };
    const char *form = f->form == MOE_SNAPSHOT_SAFET ? "safetensors" : "opaque";

    if (!json) {
        moe_buf_fmt(b, "%" PRIu64 "\t%s\t", f->size, form);
        moe_buf_show(b, f->name, strlen(f->name));
        return;
    }
    moe_jsonw_open(&w, '{');
    key_text(&w, "file", f->name, strlen(f->name));
    key_text(&w, "form", form, strlen(form));
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, f->size);
    moe_jsonw_key(&w, "parts");
    moe_jsonw_uint(&w, f->parts);
    moe_jsonw_close(&w, '}');
}

/* The shape as in moe-verify's lists: [2,3]. */
static void
put_shape(const struct moe_tensor *t, struct moe_buf *b)
{
    moe_buf_byte(b, '[');
    for (int i = 0; i < t->rank; i++)
        moe_buf_fmt(b, "%s%" PRIu64, i > 0 ? "," : "", t->shape[i]);
    moe_buf_byte(b, ']');
}

static void
tensor_line(const struct moe_snapshot_file *f, const struct moe_tensor *t,
    const unsigned char sum[MOE_DIGEST_LEN], bool json, struct moe_buf *b)
{
    struct moe_buf shape = MOE_BUF_INIT;
    struct moe_jsonw w = { b, false };
    char hex[MOE_DIGEST_HEX];
    const char *type = moe_dtype_name(t->dtype);

    put_shape(t, &shape);
    if (shape.bad) {
        b->bad = true;
    } else if (!json) {
        moe_sumlist_put_tensor(b, sum, f->name, t->name, type, shape.p);
    } else {
        moe_jsonw_open(&w, '{');
        key_text(&w, "file", f->name, strlen(f->name));
        key_text(&w, "tensor", t->name, t->name_len);
        key_text(&w, "type", type, strlen(type));
        moe_jsonw_key(&w, "shape");
        moe_jsonw_open(&w, '[');
        for (int i = 0; i < t->rank; i++)
            moe_jsonw_uint(&w, t->shape[i]);
        moe_jsonw_close(&w, ']');
        key_text(&w, "sha256", moe_digest_hex(sum, hex), 64);
        moe_jsonw_close(&w, '}');
        moe_buf_byte(b, '\n');
    }
    moe_buf_fini(&shape);
}

/* The tensors of one file, in order of the data; a part's id is the digest of its bytes. */
static int
show_tensors(struct ckpt_spec_open *s, const struct moe_snapshot_file *f, bool json,
    struct moe_err *e)
{
    unsigned char none[MOE_DIGEST_LEN];
    struct moe_loader_box box = { 0 };
    struct moe_buf b = MOE_BUF_INIT;
    int rc = moe_loader_box(s->loader, f, &box, e);

    if (rc == 0)
        rc = moe_digest_of("", 0, none, e);
    for (size_t i = 0; rc == 0 && i < moe_safet_n(box.h); i++) {
        const struct moe_tensor *t = moe_safet_at(box.h, moe_safet_by_offset(box.h, i));
        const struct moe_layout_part *p = moe_layout_find(&box.layout, box.h, t->name);

        if (!json && (t->name_len == 0 || t->name_len != strlen(t->name))) {
            rc = moe_err_set(e, MOE_EUNSUP, "%s: a list cannot hold the name of a tensor (--json "
                "can)", f->name);
            break;
        }
        moe_buf_clear(&b);
        tensor_line(f, t, p != NULL ? box.parts.v[p - box.layout.v].ref.id : none, json, &b);
        if (b.bad)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        else
            fwrite(b.p, 1, b.len, stdout);
    }
    moe_buf_fini(&b);
    moe_loader_box_fini(&box);
    return rc;
}

static int
show(struct ckpt_spec_open *s, const struct args *a, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc = 0;

    if (s->spec.name != NULL)
        return moe_err_set(e, MOE_EUSAGE, "show lists a whole save");
    for (size_t i = 0; rc == 0 && i < s->snap.n; i++) {
        const struct moe_snapshot_file *f = &s->snap.files[i];

        if (a->tensors) {
            rc = f->form == MOE_SNAPSHOT_SAFET ? show_tensors(s, f, a->json, e) : 0;
            continue;
        }
        moe_buf_clear(&b);
        file_line(f, a->json, &b);
        if (b.bad)
            rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
        else
            printf("%s\n", b.p);
    }
    moe_buf_fini(&b);
    return rc;
}

int
ckpt_show(int argc, char **argv, struct moe_err *e)
{
    struct ckpt_spec_open s = CKPT_SPEC_OPEN_INIT;
    struct args a = { false, false };
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_show_cmd, argc, argv, option, &a, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "show wants one STORE@ID");
    if ((rc = ckpt_spec_open(argv[first], 1, &s, e)) == 0)
        rc = show(&s, &a, e);
    ckpt_spec_close(&s);
    return rc;
}
