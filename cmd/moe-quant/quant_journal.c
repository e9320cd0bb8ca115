/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the journal: fingerprint, lines, and the order of things on disk. What
 * is behind the last promise is done again.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/moe-quant/quant_journal.h"
#include "common/base/jsonw.h"
#include "common/base/read.h"
#include "common/trust/digest.h"

struct quant_journal {
    char *path;
    int fd;
    struct moe_digest item;
    uint64_t item_bytes, bytes, promised;
    size_t items;
    struct moe_buf lines;       /* since the last promise */
};

/* ---- Fingerprint -------------------------------------------------------------- */

static void
add_text(struct moe_digest *d, const char *s)
{
    moe_digest_add(d, s, strlen(s) + 1);
}

static void
add_number(struct moe_digest *d, uint64_t v)
{
    moe_digest_add(d, &v, sizeof(v));
}

/* Files by name, size and time; tensors by name and place; items by all that is done to them. */
static int
fingerprint(struct moe_source *s, const struct quant_plan *p, char hex[MOE_DIGEST_HEX],
    struct moe_err *e)
{
    struct moe_digest d = MOE_DIGEST_INIT;
    unsigned char sum[MOE_DIGEST_LEN];
    int rc = moe_digest_begin(&d, e);

    if (rc != 0)
        return rc;
    add_text(&d, MOE_VERSION);
    for (size_t f = 0; f < moe_source_files(s); f++) {
        struct moe_buf b = MOE_BUF_INIT;
        struct stat st;

        moe_buf_fmt(&b, moe_source_is_dir(s) ? "%s/%s" : "%s", moe_source_path(s),
            moe_source_file(s, f));
        add_text(&d, moe_source_file(s, f));
        add_number(&d, moe_source_file_size(s, f));
        if (!b.bad && stat(b.p, &st) == 0) {
            add_number(&d, (uint64_t)st.st_mtim.tv_sec);
            add_number(&d, (uint64_t)st.st_mtim.tv_nsec);
        }
        moe_buf_fini(&b);
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct quant_plan_item *x = &p->items[i];
        char name[QUANT_SCHEME_NAME];

        add_text(&d, x->name);
        add_text(&d, moe_source_at(s, x->src)->name);
        add_text(&d, quant_scheme_name(&x->scheme, name));
        add_number(&d, x->in.data.at);
        add_number(&d, x->len);
        add_number(&d, (uint64_t)x->scheme.search << 8 | (uint64_t)x->scheme.both << 1 |
            x->redeal);
        add_number(&d, x->found);
        add_number(&d, x->weights.at);
        moe_digest_add(&d, &x->weights.times, sizeof(x->weights.times));
    }
    add_number(&d, p->opt.nan_zero);
    add_text(&d, p->opt.lora_dir != NULL ? p->opt.lora_dir : "");
    moe_digest_add(&d, p->config.p != NULL ? p->config.p : "", p->config.len);
    rc = moe_digest_end(&d, sum, e);
    moe_digest_fini(&d);
    (void)moe_digest_hex(sum, hex);
    return rc;
}

/* ---- Reading ------------------------------------------------------------------ */

static int
bad(const struct quant_journal *j, const char *what, struct moe_err *e)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: %s", j->path, what);
}

/* The lines up to the last promise; *keep: their bytes. */
static int
read_lines(struct quant_journal *j, const char *text, size_t n, const char *hex, size_t *keep,
    struct moe_err *e)
{
    const char *end;

    *keep = 0;
    for (const char *p = text; (end = memchr(p, '\n', n - (size_t)(p - text))) != NULL;
         p = end + 1) {
        json_t *line = json_loadb(p, (size_t)(end - p), JSON_REJECT_DUPLICATES, NULL);
        const char *print = json_string_value(json_object_get(line, "fingerprint"));
        const json_t *items = json_object_get(line, "promised_items");
        const json_t *bytes = json_object_get(line, "promised_bytes");
        int rc = 0;

        if (line == NULL) {
            rc = bad(j, "not a journal", e);
        } else if (p == text) {
            if (print == NULL)
                rc = bad(j, "not a journal", e);
            else if (strcmp(print, hex) != 0)
                rc = bad(j, "of another input, policy or version: remove it and the .part beside"
                    " it, or run what began it", e);
            *keep = (size_t)(end + 1 - text);
        } else if (json_is_integer(items) && json_is_integer(bytes)) {
            j->items = (size_t)json_integer_value(items);
            j->promised = j->bytes = (uint64_t)json_integer_value(bytes);
            *keep = (size_t)(end + 1 - text);
        }
        json_decref(line);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int
write_all(struct quant_journal *j, const struct moe_buf *b, struct moe_err *e)
{
    if (b->bad)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", j->path);
    for (size_t at = 0; at < b->len;) {
        ssize_t n = write(j->fd, b->p + at, b->len - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return moe_err_sys(e, MOE_EIO, errno, "%s", j->path);
        at += (size_t)n;
    }
    return fsync(j->fd) == 0 ? 0 : moe_err_sys(e, MOE_EIO, errno, "%s", j->path);
}

/* The first line, before there is anything it could speak of. */
static int
start(struct quant_journal *j, const char *part, const char *hex, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    if (access(part, F_OK) == 0)
        return moe_err_set(e, MOE_EEXIST, "%s: is there, but its journal is not: remove it", part);
    moe_buf_fmt(&b, "{\"moe-quant\":\"%s\",\"fingerprint\":\"%s\"}\n", MOE_VERSION, hex);
    rc = write_all(j, &b, e);
    moe_buf_fini(&b);
    return rc;
}

static int
load(struct quant_journal *j, const char *part, const char *hex, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t keep = 0;
    int rc;

    j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (j->fd < 0)
        return moe_err_sys(e, MOE_EIO, errno, "%s", j->path);
    if ((rc = moe_read_fd(j->fd, j->path, QUANT_JOURNAL_MAX, &b, e)) == 0)
        rc = read_lines(j, b.p != NULL ? b.p : "", b.len, hex, &keep, e);
    if (rc == 0 && ftruncate(j->fd, (off_t)keep) != 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", j->path);
    if (rc == 0 && keep == 0)
        rc = start(j, part, hex, e);
    moe_buf_fini(&b);
    return rc;
}

int
quant_journal_open(const char *dst, struct moe_source *s, const struct quant_plan *p,
    struct quant_journal **out, size_t *items, uint64_t *bytes, struct moe_err *e)
{
    struct quant_journal *j = calloc(1, sizeof(*j));
    struct moe_buf path = MOE_BUF_INIT, part = MOE_BUF_INIT;
    size_t n = strlen(dst);
    char hex[MOE_DIGEST_HEX];
    int rc;

    *out = NULL;
    while (n > 1 && dst[n - 1] == '/')
        n--;
    moe_buf_fmt(&path, "%.*s.journal", (int)n, dst);
    moe_buf_fmt(&part, "%.*s.part", (int)n, dst);
    if (j != NULL)
        *j = (struct quant_journal){ .fd = -1, .item = MOE_DIGEST_INIT,
            .path = moe_buf_take(&path) };
    if (j == NULL || j->path == NULL || part.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if ((rc = fingerprint(s, p, hex, e)) == 0 && (rc = load(j, part.p, hex, e)) == 0)
        rc = moe_digest_begin(&j->item, e);
    if (rc == 0 && j->items > p->n)
        rc = bad(j, "more tensors than the plan has", e);
    moe_buf_fini(&path);
    moe_buf_fini(&part);
    if (rc != 0) {
        quant_journal_close(j);
        return rc;
    }
    *items = j->items;
    *bytes = j->bytes;
    *out = j;
    return 0;
}

/* ---- Writing ------------------------------------------------------------------ */

void
quant_journal_add(struct quant_journal *j, const void *p, size_t n)
{
    moe_digest_add(&j->item, p, n);
    j->item_bytes += n;
}

int
quant_journal_item(struct quant_journal *j, const char *name, bool *due, struct moe_err *e)
{
    struct moe_jsonw w = { &j->lines, false };
    unsigned char sum[MOE_DIGEST_LEN];
    char hex[MOE_DIGEST_HEX];
    int rc;

    if ((rc = moe_digest_end(&j->item, sum, e)) != 0 || (rc = moe_digest_begin(&j->item, e)) != 0)
        return rc;
    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "name");
    moe_jsonw_str(&w, name, strlen(name));
    moe_jsonw_key(&w, "bytes");
    moe_jsonw_uint(&w, j->item_bytes);
    moe_jsonw_key(&w, "sha256");
    (void)moe_digest_hex(sum, hex);
    moe_jsonw_str(&w, hex, MOE_DIGEST_HEX - 1);
    moe_jsonw_close(&w, '}');
    moe_buf_byte(&j->lines, '\n');
    j->items++;
    j->bytes += j->item_bytes;
    j->item_bytes = 0;
    *due = j->bytes - j->promised >= QUANT_JOURNAL_EVERY;
    return 0;
}

int
quant_journal_promise(struct quant_journal *j, struct moe_err *e)
{
    int rc;

    moe_buf_fmt(&j->lines, "{\"promised_items\":%zu,\"promised_bytes\":%llu}\n", j->items,
        (unsigned long long)j->bytes);
    rc = write_all(j, &j->lines, e);
    moe_buf_clear(&j->lines);
    j->promised = j->bytes;
    return rc;
}

void
quant_journal_done(struct quant_journal *j)
{
    if (j != NULL)
        (void)unlink(j->path);
}

void
quant_journal_close(struct quant_journal *j)
{
    if (j == NULL)
        return;
    if (j->fd >= 0)
        (void)close(j->fd);
    moe_digest_fini(&j->item);
    moe_buf_fini(&j->lines);
    free(j->path);
    free(j);
}
