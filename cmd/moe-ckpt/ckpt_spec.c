/* SPDX-License-Identifier: Apache-2.0 */
/* Owns names of saves on the command line, and opening what they mean. */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-ckpt/ckpt_spec.h"

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* The '@' that ends the store's name: the first that does so, else the first; NULL without. */
static const char *
cut_of(const char *text)
{
    for (const char *at = strchr(text, '@'); at != NULL; at = strchr(at + 1, '@')) {
        char *store = strndup(text, (size_t)(at - text));
        bool yes = store != NULL && moe_store_is(store);

        free(store);
        if (yes)
            return at;
    }
    return moe_store_is(text) ? NULL : strchr(text, '@');
}

int
ckpt_spec_parse(const char *text, struct ckpt_spec *out, struct moe_err *e)
{
    const char *at = cut_of(text), *colon = at != NULL ? strchr(at, ':') : NULL;
    size_t n = at != NULL ? (size_t)(at - text) : strlen(text);

    *out = (struct ckpt_spec)CKPT_SPEC_INIT;
    if (n == 0 || (at != NULL && (at[1] == '\0' || at[1] == ':')) ||
        (colon != NULL && colon[1] == '\0'))
        return moe_err_set(e, MOE_EUSAGE, "%s: not of the form STORE@ID[:NAME]", text);
    out->store = strndup(text, n);
    out->id = at == NULL ? strdup(MOE_REF_LATEST)
        : colon != NULL  ? strndup(at + 1, (size_t)(colon - at - 1))
                         : strdup(at + 1);
    out->name = colon != NULL ? strdup(colon + 1) : NULL;
    if (out->store == NULL || out->id == NULL || (colon != NULL && out->name == NULL)) {
        ckpt_spec_fini(out);
        return no_memory(e);
    }
    return 0;
}

void
ckpt_spec_fini(struct ckpt_spec *s)
{
    free(s->store);
    free(s->id);
    free(s->name);
    *s = (struct ckpt_spec)CKPT_SPEC_INIT;
}

int
ckpt_spec_pool(int threads, struct moe_pool **out, struct moe_err *e)
{
    int rc = moe_pool_new(threads < MOE_LOADER_THREADS ? threads : MOE_LOADER_THREADS, out, e);

    if (rc == 0 && moe_pool_size(*out) > MOE_LOADER_THREADS) {
        moe_pool_free(*out);
        rc = moe_pool_new(MOE_LOADER_THREADS, out, e);
    }
    return rc;
}

int
ckpt_spec_open(const char *text, int threads, struct ckpt_spec_open *o, struct moe_err *e)
{
    int rc;

    *o = (struct ckpt_spec_open)CKPT_SPEC_OPEN_INIT;
    if ((rc = ckpt_spec_parse(text, &o->spec, e)) != 0 ||
        (rc = moe_store_open(o->spec.store, false, 0, &o->store, e)) != 0 ||
        (rc = moe_store_find(o->store, o->spec.id, &o->snap, e)) != 0 ||
        (rc = ckpt_spec_pool(threads, &o->pool, e)) != 0)
        return rc;
    return moe_loader_new(o->store->packs, o->pool, &o->loader, e);
}

void
ckpt_spec_close(struct ckpt_spec_open *o)
{
    moe_loader_free(o->loader);
    moe_pool_free(o->pool);
    moe_snapshot_fini(&o->snap);
    moe_store_close(o->store);
    ckpt_spec_fini(&o->spec);
}

int
ckpt_spec_where(const struct ckpt_spec_open *o, const struct moe_snapshot_file *f,
    const struct moe_loader_box *box, size_t first, int rc, struct moe_err *e)
{
    uint64_t offset;
    size_t part;

    if (rc >= 0 || rc == MOE_ESTOP)
        return rc;
    moe_loader_where(o->loader, &part, &offset);
    if (part == SIZE_MAX)
        return rc;      /* what was read could not be handed on */
    part += first;
    if (box != NULL && part < box->layout.n && box->layout.v[part].t != NULL)
        return moe_err_at(e, "%s: %s: byte %llu", f->name, box->layout.v[part].t->name,
            (unsigned long long)offset);
    return moe_err_at(e, "%s: byte %llu", f->name, (unsigned long long)offset);
}

int
ckpt_spec_file(struct ckpt_spec_open *o, const struct moe_snapshot_file *f,
    moe_loader_fn *fn, void *ctx, struct moe_err *e)
{
    struct moe_loader_box box = { 0 };
    struct moe_parts plain = { 0 };
    const struct moe_parts *p = &plain;
    int rc;

    if (f->form == MOE_SNAPSHOT_SAFET) {
        rc = moe_loader_box(o->loader, f, &box, e);
        p = &box.parts;
    } else {
        rc = moe_parts_read(o->store->packs, f, &plain, e);
    }
    if (rc == 0)
        rc = ckpt_spec_where(o, f, &box, 0, moe_loader_run(o->loader, p->v, p->n, fn, ctx, e), e);
    moe_loader_box_fini(&box);
    moe_parts_fini(&plain);
    return rc;
}
