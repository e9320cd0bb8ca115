/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the bytes of a pack: head, records, index, foot, and how each is checked
 * when it is read. Opens no file.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/le.h"
#include "common/base/read.h"
#include "common/formats/dtype.h"
#include "common/store/codec.h"
#include "common/store/pack.h"
#include "kernels/kernels.h"

#define MAGIC 8                 /* bytes */
#define RECORD_MAGIC UINT32_C(0x31434552)   /* "REC1" */
#define PIECE ((size_t)4096)                /* rows read at a time */

static const unsigned char head_magic[MAGIC] = { 'm', 'o', 'e', 'p', 'a', 'c', 'k', '1' };
static const unsigned char foot_magic[MAGIC] = { 'm', 'o', 'e', 'p', 'e', 'n', 'd', '1' };

/* What is kept of a row: enough to find the record, whose head has the rest. */
struct moe_pack_row {
    uint64_t key;       /* first 8 bytes of the id, the first the highest */
    uint64_t at;
    uint32_t stored;
    uint8_t type;
};

static uint32_t
crc(const void *p, size_t n)
{
    return moe_kernels()->crc32c(0, p, n);
}

static uint64_t
key_of(const unsigned char id[MOE_DIGEST_LEN])
{
    uint64_t v = 0;

    for (int i = 0; i < 8; i++)
        v = v << 8 | id[i];
    return v;
}

size_t
moe_pack_limit(int type)
{
    return type == MOE_PACK_IS_CHUNK ? moe_codec_bound(MOE_PACK_CHUNK) : MOE_PACK_LIST;
}

/* ---- References and records ------------------------------------------------------------ */

void
moe_pack_put_ref(const struct moe_pack_ref *r, unsigned char p[static MOE_PACK_REF])
{
    memcpy(p, r->id, MOE_DIGEST_LEN);
    moe_le_put64(p + 32, r->pack);
    moe_le_put64(p + 40, r->at);
    moe_le_put32(p + 48, r->stored);
    moe_le_put32(p + 52, r->type);
}

bool
moe_pack_get_ref(const unsigned char p[static MOE_PACK_REF], struct moe_pack_ref *r)
{
    uint32_t type = moe_le_get32(p + 52);

    memset(r, 0, sizeof(*r));
    memcpy(r->id, p, MOE_DIGEST_LEN);
    r->pack = moe_le_get64(p + 32);
    r->at = moe_le_get64(p + 40);
    r->stored = moe_le_get32(p + 48);
    r->type = (uint8_t)type;
    return type >= MOE_PACK_IS_CHUNK && type <= MOE_PACK_IS_FILE &&
        r->stored <= moe_pack_limit((int)type);
}

/*
 * 0 magic, 4 type, 5 kind, 6 dtype, 7 depth, 8 stored, 12 plain, 16 id, 48 base (id, pack,
 * at, stored), 100 CRC of the body, 104 zero, 108 CRC of all before.
 */
void
moe_pack_put_record(const struct moe_pack_record *r, uint32_t body_crc,
    unsigned char p[static MOE_PACK_RECORD])
{
    unsigned char base[MOE_PACK_REF] = { 0 };

    if (r->base.type != 0)
        moe_pack_put_ref(&r->base, base);
    moe_le_put32(p, RECORD_MAGIC);
    p[4] = r->ref.type;
    p[5] = r->kind;
    p[6] = r->dtype;
    p[7] = r->depth;
    moe_le_put32(p + 8, r->ref.stored);
    moe_le_put32(p + 12, r->plain);
    memcpy(p + 16, r->ref.id, MOE_DIGEST_LEN);
    memcpy(p + 48, base, 52);
    moe_le_put32(p + 100, body_crc);
    moe_le_put32(p + 104, 0);
    moe_le_put32(p + 108, crc(p, 108));
}

static int
check_record(const struct moe_pack_record *r, struct moe_err *e)
{
    bool chunk = r->ref.type == MOE_PACK_IS_CHUNK;

    if (r->ref.type < MOE_PACK_IS_CHUNK || r->ref.type > MOE_PACK_IS_FILE ||
        r->dtype >= MOE_DTYPE_N || r->ref.stored > moe_pack_limit(r->ref.type) ||
        r->plain > (chunk ? MOE_PACK_CHUNK : MOE_PACK_LIST))
        return moe_err_set(e, MOE_EFORMAT, "a record with values out of their range");
    if (chunk ? r->depth > MOE_PACK_DEPTH || (r->depth > 0) != (r->base.type != 0)
              : r->depth != 0 || r->base.type != 0 || r->kind != 0 || r->plain != r->ref.stored)
        return moe_err_set(e, MOE_EFORMAT, "a record whose values contradict each other");
    return 0;
}

int
moe_pack_get_record(const unsigned char p[static MOE_PACK_RECORD],
    struct moe_pack_record *r, uint32_t *body_crc, struct moe_err *e)
{
    unsigned char base[MOE_PACK_REF] = { 0 };

    memset(r, 0, sizeof(*r));
    if (moe_le_get32(p) != RECORD_MAGIC || moe_le_get32(p + 104) != 0 ||
        moe_le_get32(p + 108) != crc(p, 108))
        return moe_err_set(e, MOE_EFORMAT, "the head of a record is damaged");
    r->ref.type = p[4];
    r->kind = p[5];
    r->dtype = p[6];
    r->depth = p[7];
    r->ref.stored = moe_le_get32(p + 8);
    r->plain = moe_le_get32(p + 12);
    memcpy(r->ref.id, p + 16, MOE_DIGEST_LEN);
    *body_crc = moe_le_get32(p + 100);
    if (r->depth > 0) {
        memcpy(base, p + 48, 52);
        moe_le_put32(base + 52, MOE_PACK_IS_CHUNK);
        if (!moe_pack_get_ref(base, &r->base))
            return moe_err_set(e, MOE_EFORMAT, "a record with a base out of its range");
    }
    return check_record(r, e);
}

/* ---- Head, index, foot ------------------------------------------------------------------ */

void
moe_pack_put_head(uint64_t number, unsigned char p[static MOE_PACK_HEAD])
{
    memset(p, 0, MOE_PACK_HEAD);
    memcpy(p, head_magic, MAGIC);
    moe_le_put64(p + 8, number);
    moe_le_put32(p + 28, crc(p, 28));
}

void
moe_pack_put_foot(uint64_t index_at, uint64_t n, const unsigned char sum[MOE_DIGEST_LEN],
    unsigned char p[static MOE_PACK_FOOT])
{
    moe_le_put64(p, index_at);
    moe_le_put64(p + 8, n);
    memcpy(p + 16, sum, MOE_DIGEST_LEN);
    moe_le_put32(p + 48, 0);
    moe_le_put32(p + 52, crc(p, 52));
    memcpy(p + 56, foot_magic, MAGIC);
}

void
moe_pack_put_entry(const struct moe_pack_ref *r, unsigned char p[static MOE_PACK_ENTRY])
{
    memcpy(p, r->id, MOE_DIGEST_LEN);
    moe_le_put64(p + 32, r->at);
    moe_le_put32(p + 40, r->stored);
    moe_le_put32(p + 44, r->type);
}

int
moe_pack_compare(const struct moe_pack_ref *a, const struct moe_pack_ref *b)
{
    int c = memcmp(a->id, b->id, MOE_DIGEST_LEN);

    return c != 0 ? c : (a->type > b->type) - (a->type < b->type);
}

static int
bad(const char *name, struct moe_err *e, const char *what)
{
    return moe_err_set(e, MOE_EFORMAT, "%s: %s", name, what);
}

int
moe_pack_open(struct moe_pack *p, int fd, const char *name, uint64_t number, struct moe_err *e)
{
    unsigned char head[MOE_PACK_HEAD], foot[MOE_PACK_FOOT], want[MOE_PACK_HEAD];
    struct stat st;
    uint64_t size;
    int rc;

    memset(p, 0, sizeof(*p));
    if (fstat(fd, &st) != 0 || st.st_size < MOE_PACK_HEAD + MOE_PACK_FOOT)
        return bad(name, e, "too short for a pack");
    size = (uint64_t)st.st_size;
    if ((rc = moe_read_at(fd, name, head, sizeof(head), 0, e)) != 0 ||
        (rc = moe_read_at(fd, name, foot, sizeof(foot), size - sizeof(foot), e)) != 0)
        return rc;
    moe_pack_put_head(number, want);
    if (memcmp(head, want, sizeof(head)) != 0)
        return bad(name, e, "the head is not that of this pack");
    p->number = number;
    p->index_at = moe_le_get64(foot);
    p->n = moe_le_get64(foot + 8);
    memcpy(p->sum, foot + 16, MOE_DIGEST_LEN);
    if (memcmp(foot + 56, foot_magic, MAGIC) != 0 || moe_le_get32(foot + 48) != 0 ||
        moe_le_get32(foot + 52) != crc(foot, 52))
        return bad(name, e, "the foot is damaged or cut off");
    if (p->n > MOE_PACK_MAX_RECORDS || p->index_at < MOE_PACK_HEAD ||
        p->index_at > size - MOE_PACK_FOOT ||
        size - MOE_PACK_FOOT - p->index_at != p->n * MOE_PACK_ENTRY)
        return bad(name, e, "the foot does not fit the size of the file");
    return 0;
}

/* Parse n rows; they must ascend and lie within the pack. */
static int
add_rows(struct moe_pack *p, const unsigned char *from, size_t first, size_t n,
    const char *name, struct moe_err *e)
{
    for (size_t i = 0; i < n; i++, from += MOE_PACK_ENTRY) {
        struct moe_pack_row *r = &p->rows[first + i];
        uint32_t type = moe_le_get32(from + 44);

        r->key = key_of(from);
        r->at = moe_le_get64(from + 32);
        r->stored = moe_le_get32(from + 40);
        r->type = (uint8_t)type;
        if (type < MOE_PACK_IS_CHUNK || type > MOE_PACK_IS_FILE || r->at < MOE_PACK_HEAD ||
            r->at > p->index_at || p->index_at - r->at < MOE_PACK_RECORD + (uint64_t)r->stored ||
            (first + i > 0 && r[-1].key > r->key))
            return bad(name, e, "the index is damaged");
    }
    return 0;
}

int
moe_pack_load(struct moe_pack *p, int fd, const char *name, struct moe_err *e)
{
    unsigned char *piece, sum[MOE_DIGEST_LEN];
    struct moe_digest d = MOE_DIGEST_INIT;
    int rc;

    if (p->rows != NULL)
        return 0;
    piece = malloc(PIECE * MOE_PACK_ENTRY);
    p->rows = calloc(p->n + 1, sizeof(*p->rows));
    rc = piece == NULL || p->rows == NULL ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name)
                                          : moe_digest_begin(&d, e);
    for (uint64_t i = 0; rc == 0 && i < p->n; i += PIECE) {
        size_t n = p->n - i < PIECE ? (size_t)(p->n - i) : PIECE;

        if ((rc = moe_read_at(fd, name, piece, n * MOE_PACK_ENTRY,
                 p->index_at + i * MOE_PACK_ENTRY, e)) == 0) {
            moe_digest_add(&d, piece, n * MOE_PACK_ENTRY);
            rc = add_rows(p, piece, (size_t)i, n, name, e);
        }
    }
    if (rc == 0 && (rc = moe_digest_end(&d, sum, e)) == 0 &&
        memcmp(sum, p->sum, MOE_DIGEST_LEN) != 0)
        rc = bad(name, e, "the index is damaged");
    moe_digest_fini(&d);
    free(piece);
    if (rc != 0) {
        free(p->rows);
        p->rows = NULL;
    }
    return rc;
}

bool
moe_pack_find(const struct moe_pack *p, const unsigned char id[MOE_DIGEST_LEN], int type,
    size_t k, struct moe_pack_ref *out)
{
    uint64_t key = key_of(id);
    size_t lo = 0, hi = (size_t)p->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (p->rows[mid].key < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < p->n && p->rows[lo].key == key; lo++) {
        if (p->rows[lo].type != type || k-- > 0)
            continue;
        memset(out, 0, sizeof(*out));
        memcpy(out->id, id, MOE_DIGEST_LEN);
        out->pack = p->number;
        out->at = p->rows[lo].at;
        out->stored = p->rows[lo].stored;
        out->type = (uint8_t)type;
        return true;
    }
    return false;
}

int
moe_pack_read(const struct moe_pack *p, int fd, const char *name, const struct moe_pack_ref *ref,
    struct moe_pack_record *r, struct moe_buf *b, struct moe_err *e)
{
    unsigned char head[MOE_PACK_RECORD];
    size_t n = b == NULL ? 0 : ref->stored;
    uint32_t sum;
    char *at;
    int rc;

    if (ref->at < MOE_PACK_HEAD || ref->at > p->index_at ||
        p->index_at - ref->at < MOE_PACK_RECORD + (uint64_t)ref->stored ||
        ref->stored > moe_pack_limit(ref->type))
        return bad(name, e, "a reference leads out of the pack");
    if ((rc = moe_read_at(fd, name, head, sizeof(head), ref->at, e)) != 0)
        return rc;
    if (moe_pack_get_record(head, r, &sum, e) != 0)
        return moe_err_at(e, "%s: %llu", name, (unsigned long long)ref->at);
    if (r->ref.stored != ref->stored || moe_pack_compare(&r->ref, ref) != 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: %llu: another record is there", name,
            (unsigned long long)ref->at);
    r->ref = *ref;
    r->ref.pack = p->number;
    if (n == 0)
        return b != NULL && sum != 0 ? bad(name, e, "a record is damaged") : 0;
    if ((at = moe_buf_room(b, n)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if ((rc = moe_read_at(fd, name, at, n, ref->at + MOE_PACK_RECORD, e)) != 0)
        return rc;
    if (crc(at, n) != sum)
        return moe_err_set(e, MOE_EFORMAT, "%s: %llu: the bytes of a record are damaged", name,
            (unsigned long long)ref->at);
    b->len += n;
    b->p[b->len] = '\0';
    return 0;
}

uint64_t
moe_pack_next(const struct moe_pack *p, uint64_t at)
{
    uint64_t next = p->index_at;

    for (uint64_t i = 0; p->rows != NULL && i < p->n; i++)
        if (p->rows[i].at > at && p->rows[i].at < next)
            next = p->rows[i].at;
    return next;
}

void
moe_pack_fini(struct moe_pack *p)
{
    free(p->rows);
    p->rows = NULL;
}
