/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the header of the stream that several files become. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_merge.h"

#define CONFIG "config.json"
#define CONFIG_KEY "moe.config"
#define CONFIG_MAX ((size_t)16 << 20)

struct merge {
    struct moe_loader_box *box;                 /* [n] */
    const struct moe_snapshot_file **file;      /* [n] */
    size_t n;
    struct moe_tensor *t;
    size_t tensors;
    const char **meta;                          /* key, value ... NULL */
    struct moe_buf config;
};

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

static int
read_boxes(struct ckpt_spec_open *s, struct merge *m, struct moe_err *e)
{
    int rc;

    m->box = calloc(s->snap.n + 1, sizeof(*m->box));
    m->file = calloc(s->snap.n + 1, sizeof(*m->file));
    if (m->box == NULL || m->file == NULL)
        return no_memory(e);
    for (size_t i = 0; i < s->snap.n; i++) {
        if (s->snap.files[i].form != MOE_SNAPSHOT_SAFET)
            continue;
        m->file[m->n] = &s->snap.files[i];
        if ((rc = moe_loader_box(s->loader, &s->snap.files[i], &m->box[m->n++], e)) != 0)
            return rc;
        m->tensors += moe_safet_n(m->box[m->n - 1].h);
    }
    return m->n > 0 ? 0 : moe_err_set(e, MOE_EUNSUP,
        "%s@%s: holds no safetensors file (cat STORE@ID:FILE prints any)", s->spec.store,
        s->spec.id);
}

static int
read_config(struct ckpt_spec_open *s, struct merge *m, struct moe_err *e)
{
    const struct moe_snapshot_file *f = moe_snapshot_find(&s->snap, CONFIG);
    struct moe_parts parts = { 0 };
    int rc;

    if (f == NULL || f->form != MOE_SNAPSHOT_OPAQUE || f->size == 0)
        return 0;
    if ((rc = moe_parts_read(s->store->packs, f, &parts, e)) == 0 && parts.n > 0)
        rc = ckpt_spec_where(s, f, NULL, 0,
            moe_loader_part(s->loader, &parts.v[0], CONFIG_MAX, &m->config, e), e);
    moe_parts_fini(&parts);
    if (rc == 0 && m->config.len > 0 && memchr(m->config.p, '\0', m->config.len) != NULL)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is no text", CONFIG);
    return rc;
}

/* The first file's pairs, with the configuration of the directory. */
static int
collect_meta(struct merge *m, struct moe_err *e)
{
    const struct moe_safet *h = m->box[0].h;
    const struct moe_safet_pair *p;
    size_t n = 0, at = 0;

    while (moe_safet_meta_at(h, n) != NULL)
        n++;
    if ((m->meta = calloc(2 * n + 3, sizeof(*m->meta))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < n; i++) {
        p = moe_safet_meta_at(h, i);
        if (m->config.len > 0 && strcmp(p->key, CONFIG_KEY) == 0)
            continue;
        if (p->key_len != strlen(p->key) || p->value_len != strlen(p->value))
            return moe_err_set(e, MOE_EUNSUP, "%s: a NUL in __metadata__", m->file[0]->name);
        m->meta[at++] = p->key;
        m->meta[at++] = p->value;
    }
    if (m->config.len > 0) {
        m->meta[at++] = CONFIG_KEY;
        m->meta[at++] = m->config.p;
    }
    return 0;
}

static int
put(void *ctx, const void *p, size_t n, struct moe_err *e)
{
    return moe_out_write(ctx, p, n, e);
}

static int
write_all(struct ckpt_spec_open *s, struct merge *m, struct moe_out *o, struct moe_err *e)
{
    struct moe_buf head = MOE_BUF_INIT;
    size_t at = 0;
    int rc;

    if ((m->t = calloc(m->tensors + 1, sizeof(*m->t))) == NULL)
        return no_memory(e);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < moe_safet_n(m->box[i].h); k++)
            m->t[at++] = *moe_safet_at(m->box[i].h, moe_safet_by_offset(m->box[i].h, k));
    if ((rc = moe_safet_write(&head, m->t, m->tensors, m->meta, 8, e)) == 0)
        rc = moe_out_write(o, head.p, head.len, e);
    moe_buf_fini(&head);
    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        const struct moe_parts *p = &m->box[i].parts;

        rc = ckpt_spec_where(s, m->file[i], &m->box[i], 1,
            moe_loader_run(s->loader, p->v + 1, p->n - 1, put, o, e), e);
    }
    return rc;
}

int
ckpt_merge(struct ckpt_spec_open *s, struct moe_out *o, struct moe_err *e)
{
    struct merge m = { 0 };
    int rc;

    if ((rc = read_boxes(s, &m, e)) == 0 && (rc = read_config(s, &m, e)) == 0 &&
        (rc = collect_meta(&m, e)) == 0)
        rc = write_all(s, &m, o, e);
    for (size_t i = 0; i < m.n; i++)
        moe_loader_box_fini(&m.box[i]);
    free(m.box);
    free(m.file);
    free(m.t);
    free(m.meta);
    moe_buf_fini(&m.config);
    return rc;
}
