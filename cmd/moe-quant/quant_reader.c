/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of a model that reads, and of what it reads. */
#include "cmd/moe-quant/quant_reader.h"
#include "common/base/read.h"
#include "common/engine/tokenizer.h"

#define MAX_TEXT ((size_t)256 << 20)

int
quant_reader_open(struct quant_reader *r, const char *path, size_t rows, struct moe_pool *pool,
    struct moe_err *e)
{
    int rc;

    *r = (struct quant_reader){ NULL, NULL, NULL, NULL };
    if ((rc = moe_backend_cpu_new(pool, &r->backend, e)) != 0 ||
        (rc = moe_model_open(path, r->backend, pool, &r->model, e)) != 0 ||
        (rc = moe_kv_new(r->backend, &r->model->kv, 0, &r->kv, e)) != 0)
        return rc;
    return moe_forward_new(r->model, rows, MOE_ARITH_F32, &r->forward, e);
}

void
quant_reader_close(struct quant_reader *r)
{
    moe_forward_free(r->forward);
    moe_kv_free(r->kv);
    moe_model_close(r->model);
    if (r->backend != NULL)
        r->backend->ops->free(r->backend);
    *r = (struct quant_reader){ NULL, NULL, NULL, NULL };
}

int
quant_reader_tokens(const struct quant_reader *r, const char *text, size_t least, uint64_t most,
    struct moe_tokens *out, struct moe_err *e)
{
    const struct moe_source *s = r->model->source;
    struct moe_buf json = MOE_BUF_INIT, b = MOE_BUF_INIT;
    struct moe_tokenizer *t = NULL;
    int rc = moe_source_aux(s, "tokenizer.json", MOE_TOKENIZER_MAX_BYTES, &json, e);

    if (rc == MOE_ENOENT)
        rc = moe_err_set(e, MOE_ENOENT, "%s: no tokenizer.json", moe_source_path(s));
    if (rc == 0 && (rc = moe_tokenizer_parse(json.p, json.len, "tokenizer.json", &t, e)) == 0 &&
        (rc = moe_read_file(text, MAX_TEXT, &b, e)) == 0)
        rc = moe_tokenizer_encode(t, b.p, b.len, MOE_ADDED_ALL, false, out, e);
    if (rc == 0 && out->n < least)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: only %zu tokens, %zu are wanted", text, out->n,
            least);
    if (most > 0 && out->n > most)
        out->n = (size_t)most;
    moe_tokenizer_free(t);
    moe_buf_fini(&json);
    moe_buf_fini(&b);
    return rc;
}

int
quant_reader_begin(const struct quant_reader *r, const uint32_t *id, size_t n,
    struct moe_session **out, struct moe_err *e)
{
    struct moe_sampler_options greedy = MOE_SAMPLER_GREEDY;
    int rc = moe_session_new(r->model, r->kv, n, 0, &greedy, out, e);

    if (rc == 0 && (rc = moe_session_add(*out, id, n, e)) != 0) {
        moe_session_free(*out);
        *out = NULL;
    }
    return rc;
}
