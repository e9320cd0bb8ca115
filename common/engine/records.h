/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a packed model (moe-packed(5)), by the module they are the
 * weights of: an expert or a single matrix. Immutable, and borrows the source.
 */
#ifndef MOE_ENGINE_RECORDS_H
#define MOE_ENGINE_RECORDS_H

#include <stddef.h>

#include "common/base/err.h"
#include "common/formats/packedmeta.h"
#include "common/formats/source.h"

struct moe_record {
    const char *module;         /* "model.layers.0.mlp.experts.3", n bytes */
    size_t n;
    size_t tensor;              /* of the source */
    const struct moe_packedmeta_scheme *scheme;
};

struct moe_records;

/*
 * Find the records of a source; none in a model that is not packed. Errors:
 * MOE_EFORMAT (a module twice, a record that is not what its scheme says),
 * MOE_EUNSUP (another layout or version), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_records_open(const struct moe_source *s, struct moe_records **out, struct moe_err *e);
void moe_records_close(struct moe_records *r);

/* That of a module, or NULL. */
const struct moe_record *moe_records_find(const struct moe_records *r, const char *module);

/*
 * Its bytes, mapped; they live as long as the source. Whether its checksum holds
 * is another matter, which threads may look into: MOE_EFORMAT names the tensor.
 */
int moe_records_map(struct moe_source *s, const struct moe_record *r, const void **p,
    struct moe_err *e);
int moe_records_check(const struct moe_source *s, const struct moe_record *r, const void *p,
    struct moe_err *e);

#endif
