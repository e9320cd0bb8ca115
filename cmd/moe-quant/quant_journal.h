/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run that may be resumed has done so far: DST.journal, a line of JSON
 * each. The first has the fingerprint of input and plan; then one a tensor that
 * was written, with the digest of its bytes, and one whenever all before it are
 * known to be on disk.
 */
#ifndef CMD_QUANT_JOURNAL_H
#define CMD_QUANT_JOURNAL_H

#include "cmd/moe-quant/quant_plan.h"

#define QUANT_JOURNAL_MAX ((size_t)256 << 20)   /* bytes of a journal that is read */
#define QUANT_JOURNAL_EVERY ((uint64_t)16 << 20)    /* bytes of output between two promises */

struct quant_journal;

/*
 * Open the journal of dst, or begin it; *items and *bytes: what is on disk.
 * Errors: MOE_EFORMAT (of another input, plan or version; not a journal),
 * MOE_EEXIST (DST.part without a journal), MOE_EIO.
 */
int quant_journal_open(const char *dst, struct moe_source *s, const struct quant_plan *p,
    struct quant_journal **out, size_t *items, uint64_t *bytes, struct moe_err *e);

/* Bytes of the item that is being written. */
void quant_journal_add(struct quant_journal *j, const void *p, size_t n);

/* The item is written; *due: it is time to sync the output and promise. */
int quant_journal_item(struct quant_journal *j, const char *name, bool *due, struct moe_err *e);

/* All items so far are on disk. */
int quant_journal_promise(struct quant_journal *j, struct moe_err *e);

/* The output has its name: the journal goes. */
void quant_journal_done(struct quant_journal *j);

/* Frees j; the journal stays. */
void quant_journal_close(struct quant_journal *j);

#endif
