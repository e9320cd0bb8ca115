/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model to read, in any of the forms of REQUIREMENTS C1: a directory
 * (safetensors files, with or without an index, config.json and tokenizer
 * files beside them), one .safetensors file, a .gguf file, or "-" (a
 * safetensors stream on stdin). Everything is checked on opening: headers,
 * index against headers both ways, no tensor twice, no NUL in a name.
 *
 * The files of a directory are those of model.safetensors.index.json; without
 * one, model.safetensors alone; without that, every *.safetensors. Both an
 * index and a model.safetensors it does not list is refused: programs differ on
 * which counts. File names are opened beneath the directory only.
 *
 * A source belongs to one thread, except moe_source_read(), which threads may
 * call on files. At most MOE_SOURCE_OPEN files are held open; the rest are
 * opened for each read, and must still be the same file.
 */
#ifndef MOE_FORMATS_SOURCE_H
#define MOE_FORMATS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/formats/config.h"
#include "common/formats/gguf.h"
#include "common/formats/safet.h"

#define MOE_SOURCE_OPEN 128

struct moe_source;

int moe_source_open(const char *path, struct moe_source **out, struct moe_err *e);
void moe_source_close(struct moe_source *s);

const char *moe_source_path(const struct moe_source *s);
bool moe_source_is_stream(const struct moe_source *s);
bool moe_source_is_dir(const struct moe_source *s);
const struct moe_gguf *moe_source_gguf(const struct moe_source *s);   /* NULL unless a .gguf */

/* config.json, or moe.config of a stream's metadata; NULL if there is none. */
const struct moe_config *moe_source_config(const struct moe_source *s);

/*
 * Tensors: files in name order, within a file in order of data. Of a GGUF file:
 * shape with the row last; block types as U8 with a row's bytes last.
 */
size_t moe_source_n(const struct moe_source *s);
const struct moe_tensor *moe_source_at(const struct moe_source *s, size_t i);
/* Index of a name, or SIZE_MAX. */
size_t moe_source_find(const struct moe_source *s, const char *name);

/* The files: count, name relative to the directory, size in bytes, file of tensor i. */
size_t moe_source_files(const struct moe_source *s);
const char *moe_source_file(const struct moe_source *s, size_t f);
uint64_t moe_source_file_size(const struct moe_source *s, size_t f);
size_t moe_source_file_of(const struct moe_source *s, size_t i);
uint64_t moe_source_bytes(const struct moe_source *s);      /* of all tensors */

/* The header of file f, which lives as long as s; NULL: of a GGUF file. */
const struct moe_safet *moe_source_header(const struct moe_source *s, size_t f);

/*
 * n bytes of tensor i from offset at within it. On a stream, tensors must be
 * read in order and ascending; going back is MOE_EUNSUP. Reading the last byte
 * of a stream's data also checks that nothing follows.
 */
int moe_source_read(struct moe_source *s, size_t i, uint64_t at, void *p, size_t n,
    struct moe_err *e);

/*
 * Append what stands before the data of file f: its header, byte for byte. Of a
 * stream it is made again: the same tensors and metadata, data in the same order.
 */
int moe_source_head(const struct moe_source *s, size_t f, struct moe_buf *b, struct moe_err *e);

/* Map tensor i's bytes (files only, of those held open; the mapping lives as long as s). */
int moe_source_map(struct moe_source *s, size_t i, const void **p, struct moe_err *e);

/*
 * Other files of a directory model ("tokenizer.json"): whole, at most limit
 * bytes, opened beneath it. MOE_ENOENT when missing or not a directory.
 */
int moe_source_aux(const struct moe_source *s, const char *name, size_t limit,
    struct moe_buf *b, struct moe_err *e);

/* Size of one of them. */
int moe_source_aux_size(const struct moe_source *s, const char *name, uint64_t *bytes,
    struct moe_err *e);

/*
 * Names of the files of a directory that go with the weights: config.json and
 * *_config.json, tokenizers and their tables, chat templates, code, licence and
 * README; sorted; NULL past the last. The list of patterns is in source.c.
 */
const char *moe_source_aux_name(const struct moe_source *s, size_t i);

#endif
