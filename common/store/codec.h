/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the bytes of a chunk are kept: the encodings, and which of them is taken.
 * Every encoding gives back the same bytes, whatever they are.
 */
#ifndef MOE_STORE_CODEC_H
#define MOE_STORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/formats/dtype.h"

#define MOE_CODEC_MAX ((size_t)1 << 20)     /* plain bytes of a chunk */

/* On disk: numbers are never given another meaning. */
enum moe_codec_kind {
    MOE_CODEC_RAW = 1,      /* the bytes */
    MOE_CODEC_CONST = 2,    /* one element, which all of them are */
    MOE_CODEC_PLANE = 3,    /* one run of plane.h */
    MOE_CODEC_SPLIT = 4,    /* elements turned left by a bit, byte by byte: a run each */
    MOE_CODEC_SPARSE = 5,   /* gaps between elements that differ from the base, and steps */
    MOE_CODEC_DENSE = 6     /* the step of every element from the base */
};

struct moe_codec;           /* scratch memory and contexts of one thread */

int moe_codec_new(struct moe_codec **out, struct moe_err *e);
void moe_codec_free(struct moe_codec *c);

/* The most bytes that n plain bytes can be encoded to. */
size_t moe_codec_bound(size_t n);

/* Whether a kind is read with a base. */
bool moe_codec_is_delta(uint8_t kind);

/*
 * Encode the n bytes at p (0 < n <= MOE_CODEC_MAX), elements of type t, into out,
 * which has room for moe_codec_bound(n). base: n bytes of the same type that they
 * may be near to, or NULL. Cannot fail. The result is the same on every machine
 * with the same zstd.
 */
void moe_codec_encode(struct moe_codec *c, enum moe_dtype t, const void *p, size_t n,
    const void *base, void *out, size_t *len, uint8_t *kind);

/*
 * Decode len bytes at p to exactly n plain bytes at out (n <= MOE_CODEC_MAX); base:
 * n bytes for a kind that is a delta, else not looked at. Errors: MOE_EFORMAT, and
 * MOE_EUNSUP for a kind of a later version.
 */
int moe_codec_decode(struct moe_codec *c, uint8_t kind, enum moe_dtype t, const void *p,
    size_t len, const void *base, void *out, size_t n, struct moe_err *e);

#endif
