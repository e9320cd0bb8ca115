/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a safetensors file of packed weights says of itself (moe-packed(5)): the
 * moe.packed keys of __metadata__, written and read, and which of its tensors
 * are records of what scheme. A moe_packedmeta owns its schemes, is immutable
 * and may be shared by threads.
 */
#ifndef MOE_FORMATS_PACKEDMETA_H
#define MOE_FORMATS_PACKEDMETA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/packed.h"
#include "common/formats/safet.h"

#define MOE_PACKEDMETA_LAYOUT "rows16"
#define MOE_PACKEDMETA_MAX_SCHEMES 4096
#define MOE_PACKEDMETA_MAX_BYTES ((size_t)4 << 20)  /* of the list of schemes */
#define MOE_PACKEDMETA_STRINGS 7                    /* three keys, their values, NULL */

struct moe_packedmeta_scheme {
    bool expert;                /* else the record of one matrix */
    struct moe_packed matrix;   /* of gate and of up alike, or the one matrix */
    struct moe_packed down;     /* expert only */
};

struct moe_packedmeta {
    size_t n;
    struct moe_packedmeta_scheme *schemes;  /* [n]; each has a size */
};

/* Bytes of a record; false: a shape of it is not allowed. */
bool moe_packedmeta_bytes(const struct moe_packedmeta_scheme *s, uint64_t *bytes);

/*
 * The keys and values for moe_safet_write(), NULL at the end. json must stay
 * as it is while meta is used; the caller frees it. Errors: MOE_EUNSUP (a shape
 * that is not allowed), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_packedmeta_write(const struct moe_packedmeta_scheme *s, size_t n, struct moe_buf *json,
    const char *meta[static MOE_PACKEDMETA_STRINGS], struct moe_err *e);

/* Append the name of the tensor of a module's record. */
void moe_packedmeta_name(struct moe_buf *b, const char *module, size_t scheme);

/*
 * Read the keys of a header; name is the file's, for messages. 0 with *out NULL:
 * the file has no packed weights. Errors: MOE_EFORMAT, MOE_EUNSUP (another
 * layout or version), MOE_ELIMIT, MOE_ENOMEM.
 */
int moe_packedmeta_read(const struct moe_safet *s, const char *name, struct moe_packedmeta **out,
    struct moe_err *e);
void moe_packedmeta_free(struct moe_packedmeta *p);

/*
 * Whether tensor t of s is a record: *scheme is then its scheme and *module
 * the length of the module's name at the start of t's; else *scheme is NULL.
 * A record has the type, size and place that it must have. Errors: MOE_EFORMAT.
 */
int moe_packedmeta_record(const struct moe_packedmeta *p, const struct moe_safet *s,
    const struct moe_tensor *t, const char *name, const struct moe_packedmeta_scheme **scheme,
    size_t *module, struct moe_err *e);

#endif
