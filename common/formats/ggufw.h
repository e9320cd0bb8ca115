/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the header of a GGUF file: collect keys and tensors, then emit it
 * padded to the data. Everything given is copied. The first mistake is
 * remembered and told by moe_ggufw_emit(), so that a chain of calls needs one
 * check.
 */
#ifndef MOE_FORMATS_GGUFW_H
#define MOE_FORMATS_GGUFW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/gguf.h"

struct moe_ggufw;

struct moe_ggufw *moe_ggufw_new(void);      /* NULL: out of memory */
void moe_ggufw_free(struct moe_ggufw *w);

/* A value that kind cannot hold is a mistake. general.alignment is obeyed. */
void moe_ggufw_int(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind, int64_t v);
void moe_ggufw_real(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind, double v);
void moe_ggufw_bool(struct moe_ggufw *w, const char *key, bool v);
void moe_ggufw_str(struct moe_ggufw *w, const char *key, const char *p, size_t n);

/* n elements of kind; raw: their bytes as in the file (strings: u64 length, bytes). */
void moe_ggufw_array(struct moe_ggufw *w, const char *key, enum moe_gguf_kind kind,
    uint64_t n, const void *raw, size_t raw_len);

/* A key and value as read from a file. */
void moe_ggufw_copy(struct moe_ggufw *w, const struct moe_gguf_kv *kv);

/* Append a string to the raw bytes of an array of strings. */
void moe_ggufw_raw_str(struct moe_buf *raw, const char *p, size_t n);

/* The next tensor; its data follows that of the one before, padded. */
void moe_ggufw_tensor(struct moe_ggufw *w, const char *name, uint32_t type,
    int n_dims, const uint64_t *ne);

/*
 * Append the header and its padding to b. Errors: MOE_ENOMEM, MOE_ELIMIT,
 * MOE_EFORMAT (a duplicate, a name too long or with a NUL, a row of part blocks).
 */
int moe_ggufw_emit(struct moe_ggufw *w, struct moe_buf *b, struct moe_err *e);

/* After emit: offset of tensor i from the start of the data; all data with padding. */
uint64_t moe_ggufw_offset(const struct moe_ggufw *w, size_t i);
uint64_t moe_ggufw_data(const struct moe_ggufw *w);
uint64_t moe_ggufw_alignment(const struct moe_ggufw *w);

#endif
