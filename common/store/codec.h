/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the bytes of a chunk are kept: the encodings, and which of them is taken.
 * Every encoding gives back the same bytes. Nothing is allocated; threads may.
 */
#ifndef MOE_STORE_CODEC_H
#define MOE_STORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/dtype.h"

/* On disk: numbers are never given another meaning. */
enum moe_codec_kind {
    MOE_CODEC_RAW = 1,      /* the bytes */
    MOE_CODEC_CONST = 2     /* one element, which all of them are */
};

/* The most bytes that n plain bytes can be encoded to. */
size_t moe_codec_bound(size_t n);

/* Whether a kind is read with a base. */
bool moe_codec_is_delta(uint8_t kind);

/*
 * Encode the n > 0 bytes at p, elements of type t, into out, which has room for
 * moe_codec_bound(n). base: n bytes of the same type that they may be near to, or NULL.
 */
int moe_codec_encode(enum moe_dtype t, const void *p, size_t n, const void *base, void *out,
    size_t *len, uint8_t *kind, struct moe_err *e);

/*
 * Decode len bytes at p to exactly n plain bytes at out; base: n bytes for a
 * kind that is a delta, else not looked at. Errors: MOE_EFORMAT.
 */
int moe_codec_decode(uint8_t kind, enum moe_dtype t, const void *p, size_t len, const void *base,
    void *out, size_t n, struct moe_err *e);

#endif
