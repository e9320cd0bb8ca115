/* SPDX-License-Identifier: Apache-2.0 */
/* STORE@ID[:NAME]: a save, or a tensor or a file of it. */
#ifndef CKPT_SPEC_H
#define CKPT_SPEC_H

#include "common/base/err.h"
#include "common/base/pool.h"
#include "common/store/loader.h"
#include "common/store/store.h"

struct ckpt_spec {
    char *store;
    char *id;           /* a number, a tag, "latest" */
    char *name;         /* NULL without */
};

#define CKPT_SPEC_INIT { NULL, NULL, NULL }

/*
 * Cut text; without '@' the id is "latest". A store's own name may hold a '@':
 * the first cut that leaves a store counts. Errors: MOE_EUSAGE, MOE_ENOMEM.
 */
int ckpt_spec_parse(const char *text, struct ckpt_spec *out, struct moe_err *e);
void ckpt_spec_fini(struct ckpt_spec *s);

/* A save that is open for reading. */
struct ckpt_spec_open {
    struct ckpt_spec spec;
    struct moe_store *store;
    struct moe_snapshot snap;
    struct moe_pool *pool;
    struct moe_loader *loader;
};

#define CKPT_SPEC_OPEN_INIT { CKPT_SPEC_INIT, NULL, MOE_SNAPSHOT_INIT, NULL, NULL }

/* Open what text names, to be read by so many threads (0: the processors). */
int ckpt_spec_open(const char *text, int threads, struct ckpt_spec_open *out, struct moe_err *e);
void ckpt_spec_close(struct ckpt_spec_open *o);

/* Threads for a store: those asked for, or the processors, up to what finds work. */
int ckpt_spec_pool(int threads, struct moe_pool **out, struct moe_err *e);

/*
 * Say where a failed run of the loader stopped: "FILE: TENSOR: byte N" before
 * e's text. box may be NULL, first is the part the run began with.
 */
int ckpt_spec_where(const struct ckpt_spec_open *o, const struct moe_snapshot_file *f,
    const struct moe_loader_box *box, size_t first, int rc, struct moe_err *e);

/* All bytes of a file, in order. */
int ckpt_spec_file(struct ckpt_spec_open *o, const struct moe_snapshot_file *f,
    moe_loader_fn *fn, void *ctx, struct moe_err *e);

#endif
