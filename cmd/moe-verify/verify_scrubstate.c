/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the file of a scrub's memory and its lock. The order is scrubplan's.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cmd/moe-verify/verify_scrubstate.h"
#include "common/base/num.h"
#include "common/base/out.h"
#include "common/base/read.h"

#define FIRST "moe-scrub 1\n"
#define HEX (2 * VERIFY_SCRUBSTATE_ID)

static int
no_memory(struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "out of memory");
}

/* Digest of file, tensor and listed digest, each with its NUL, cut. */
static int
identify(unsigned char *id, const struct moe_sumlist_line *l, struct moe_err *e)
{
    unsigned char sum[MOE_DIGEST_LEN];
    struct moe_digest d = MOE_DIGEST_INIT;
    int rc = moe_digest_begin(&d, e);

    if (rc == 0) {
        moe_digest_add(&d, l->name, strlen(l->name) + 1);
        if (l->tensor != NULL)
            moe_digest_add(&d, l->tensor, strlen(l->tensor) + 1);
        moe_digest_add(&d, l->sum, sizeof(l->sum));
        rc = moe_digest_end(&d, sum, e);
        memcpy(id, sum, VERIFY_SCRUBSTATE_ID);
    }
    moe_digest_fini(&d);
    return rc;
}

static int
compare(const void *x, const void *y, void *ctx)
{
    const struct verify_scrubstate *s = ctx;

    return memcmp(s->id[*(const size_t *)x], s->id[*(const size_t *)y], VERIFY_SCRUBSTATE_ID);
}

/* First place in by_id whose id is not below the one given. */
static size_t
find(const struct verify_scrubstate *s, const unsigned char *id)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (memcmp(s->id[s->by_id[mid]], id, VERIFY_SCRUBSTATE_ID) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* One line: seconds, blank, 0 or 1, blank, id. */
static bool
take_line(const struct verify_scrubstate *s, struct moe_scrubplan_unit *u, char *line, size_t n)
{
    unsigned char id[MOE_DIGEST_LEN];
    char wide[2 * MOE_DIGEST_LEN], *blank = memchr(line, ' ', n);
    int64_t last;

    if (blank == NULL || n - (size_t)(blank - line) != HEX + 3 || blank[2] != ' ' ||
        (blank[1] != '0' && blank[1] != '1'))
        return false;
    *blank = '\0';
    memset(wide, '0', sizeof(wide));
    memcpy(wide, blank + 3, HEX);
    if (moe_num_int(line, 0, INT64_MAX, "", &last, NULL) != 0 ||
        !moe_digest_unhex(wide, sizeof(wide), id))
        return false;
    for (size_t k = find(s, id); k < s->n && memcmp(s->id[s->by_id[k]], id,
        VERIFY_SCRUBSTATE_ID) == 0; k++) {
        u[s->by_id[k]].last = last;
        u[s->by_id[k]].suspect = blank[1] == '1';
    }
    return true;
}

static int
load(struct verify_scrubstate *s, struct moe_scrubplan_unit *u, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    size_t at = strlen(FIRST), number = 2;
    int rc = moe_read_file(s->path, VERIFY_SCRUBSTATE_MAX, &b, e);

    if (rc == MOE_ENOENT) {
        moe_buf_fini(&b);
        return 0;
    }
    if (rc == 0 && (b.len < at || memcmp(b.p, FIRST, at) != 0))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: is not a moe-scrub state, version 1", s->path);
    for (; rc == 0 && at < b.len; number++) {
        char *line = b.p + at, *stop = memchr(line, '\n', b.len - at);
        if (stop == NULL || !take_line(s, u, line, (size_t)(stop - line)))
            rc = moe_err_set(e, MOE_EFORMAT, "%s: line %zu: is none of a state", s->path, number);
        else
            at += (size_t)(stop - line) + 1;
    }
    moe_buf_fini(&b);
    return rc;
}

static int
take_lock(struct verify_scrubstate *s, struct moe_err *e)
{
    struct moe_buf name = MOE_BUF_INIT;
    int rc = 0;

    moe_buf_fmt(&name, "%s.lock", s->path);
    if (name.bad)
        rc = no_memory(e);
    else if ((s->lock = open(name.p, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) < 0)
        rc = moe_err_sys(e, MOE_EIO, errno, "%s", name.p);
    else if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        rc = errno == EWOULDBLOCK ?
            moe_err_set(e, MOE_EEXIST, "%s: another scrub is at work", name.p) :
            moe_err_sys(e, MOE_EIO, errno, "%s", name.p);
    moe_buf_fini(&name);
    return rc;
}

int
verify_scrubstate_open(struct verify_scrubstate *s, const char *path,
    const struct moe_sumlist_line *l, struct moe_scrubplan_unit *u, size_t n, struct moe_err *e)
{
    int rc;

    s->path = path;
    s->n = n;
    if (path == NULL)
        return 0;
    if ((rc = take_lock(s, e)) != 0)
        return rc;
    s->id = calloc(n + 1, sizeof(*s->id));
    s->by_id = calloc(n + 1, sizeof(*s->by_id));
    if (s->id == NULL || s->by_id == NULL)
        return no_memory(e);
    for (size_t i = 0; i < n && rc == 0; i++) {
        s->by_id[i] = i;
        rc = identify(s->id[i], &l[i], e);
    }
    if (rc != 0)
        return rc;
    qsort_r(s->by_id, n, sizeof(*s->by_id), compare, s);
    return load(s, u, e);
}

int
verify_scrubstate_save(const struct verify_scrubstate *s, const struct moe_scrubplan_unit *u,
    struct moe_err *e)
{
    static const char digits[] = "0123456789abcdef";
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_out *out = NULL;
    int rc;

    if (s->path == NULL)
        return 0;
    moe_buf_str(&b, FIRST);
    for (size_t i = 0; i < s->n; i++) {
        if (u[i].last == 0 && !u[i].suspect)
            continue;
        moe_buf_fmt(&b, "%" PRId64 " %d ", u[i].last, u[i].suspect);
        for (size_t k = 0; k < VERIFY_SCRUBSTATE_ID; k++) {
            moe_buf_byte(&b, digits[s->id[i][k] >> 4]);
            moe_buf_byte(&b, digits[s->id[i][k] & 15]);
        }
        moe_buf_byte(&b, '\n');
    }
    if (b.bad)
        rc = no_memory(e);
    else if ((rc = moe_out_open(s->path, true, 0, &out, e)) == 0) {
        if ((rc = moe_out_write(out, b.p, b.len, e)) == 0)
            rc = moe_out_commit(out, e);
        else
            moe_out_abort(out);
    }
    moe_buf_fini(&b);
    return rc;
}

void
verify_scrubstate_close(struct verify_scrubstate *s)
{
    if (s->lock >= 0)
        (void)close(s->lock);
    free(s->id);
    free(s->by_id);
    *s = (struct verify_scrubstate)VERIFY_SCRUBSTATE_INIT;
}
