/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From tensors of a source to handles on a device, each checked against the
 * shape that the configuration asks for. What is put on the device belongs to
 * the model and goes with it.
 */
#ifndef MOE_ENGINE_WEIGHTS_H
#define MOE_ENGINE_WEIGHTS_H

#include "common/engine/model.h"
#include "common/engine/records.h"
#include "common/formats/packed.h"
#include "common/formats/repack.h"

/* Where a weight belongs: its layer and expert, 0 when it has none. */
struct moe_weights_at {
    struct moe_model *m;
    enum moe_weight w;
    size_t layer, expert;
};

/* n numbers as F32. */
int moe_weights_vector(struct moe_weights_at at, const char *suffix, size_t n,
    struct moe_view *out, struct moe_err *e);

/* A matrix in whatever encoding it has; bias: it must have one. */
int moe_weights_matrix(struct moe_weights_at at, size_t rows, size_t cols, bool bias,
    struct moe_matrix *out, struct moe_err *e);

/* n numbers on the host; freed by the caller. A leading dimension of 1 is passed over. */
int moe_weights_numbers(struct moe_weights_at at, const char *suffix, size_t n, float **out,
    struct moe_err *e);

/* A matrix [2 * rows][cols] as its two halves; packed ones apart. */
int moe_weights_halves(struct moe_weights_at at, size_t rows, size_t cols,
    struct moe_matrix *first, struct moe_matrix *second, struct moe_err *e);

/*
 * The matrix from the latent to each head's [nope] keys and [v_dim] values, taken
 * apart: key [heads * kv_lora][nope] transposed, value [heads * v_dim][kv_lora].
 * BF16 when it is stored so, else F32.
 */
int moe_weights_latent(struct moe_weights_at at, struct moe_matrix *key,
    struct moe_matrix *value, struct moe_err *e);

/* Whether the tensor is there. */
bool moe_weights_present(const struct moe_weights_at *at, const char *suffix);

/* ---- What bank.c builds experts with ---- */

/* The weight as stored, checked against a shape; expert >= 0: of a stack. */
int moe_weights_qmat(struct moe_weights_at at, int64_t expert, size_t rows, size_t cols,
    struct moe_qmat *q, struct moe_err *e);

/* Device memory, host memory and numbers on the device that go with the model. */
int moe_weights_alloc(struct moe_model *m, size_t bytes, struct moe_mem **out,
    struct moe_err *e);
int moe_weights_hold(struct moe_model *m, size_t bytes, void **out, struct moe_err *e);
int moe_weights_upload(struct moe_model *m, const float *v, size_t n, struct moe_view *out,
    struct moe_err *e);

/* q as it is stored: plain rows, or any encoding that is decoded when used. */
int moe_weights_stored(struct moe_model *m, const struct moe_qmat *q, struct moe_matrix *out,
    struct moe_err *e);

/* Whether kernels multiply a matrix of that form. */
bool moe_weights_runs(const struct moe_packed *p);

/* Whether kernels multiply `rows` rows in the packed layout; *p is then their form there. */
bool moe_weights_packable(const struct moe_repack *from, size_t rows, struct moe_packed *p);

/* The matrix of such a form, at a place. */
struct moe_matrix moe_weights_packed(const struct moe_packed *p, bool paired,
    struct moe_mem *mem, size_t at);

/*
 * The bytes of a record, as a device's memory; *host is where they are mapped. Its
 * checksum is the caller's to look into.
 */
int moe_weights_record(struct moe_model *m, const struct moe_record *r, struct moe_mem **mem,
    const void **host, struct moe_err *e);

/* Lay out one matrix, or two whose blocks alternate, and put it on the device at w. */
int moe_weights_pack(struct moe_model *m, const struct moe_matrix *w, const struct moe_packed *p,
    const struct moe_repack *from, const struct moe_repack *beside, struct moe_err *e);

/* Give back everything. */
void moe_weights_fini(struct moe_model *m);

#endif
