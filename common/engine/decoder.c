/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the steps from token texts to text. Each step takes a piece and hands
 * pieces to the next; `first` marks the first piece of a token, so that fusing
 * is not to mark any but one. The last step puts U+FFFD for what is no UTF-8.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/utf8.h"
#include "common/engine/bytelevel.h"
#include "common/engine/decoder.h"
#include "common/engine/regex.h"

static const char REPLACEMENT[] = "\xef\xbf\xbd";

enum kind { BYTE_LEVEL, REPLACE, BYTE_FALLBACK, FUSE, STRIP, METASPACE, SPACED };

struct step {
    enum kind kind;
    struct moe_buf text;        /* REPLACE: what is put; STRIP, METASPACE: the character */
    struct moe_regex *find;     /* REPLACE */
    size_t start, stop;         /* STRIP: characters at most; METASPACE: start > 0, not at first */
};

struct moe_decoder {
    struct step step[MOE_DECODER_MAX_STEPS];
    size_t n;
};

/* ---- Parsing ------------------------------------------------------------------ */

static int
set_text(struct step *s, const json_t *v, const char *name, struct moe_err *e)
{
    if (!json_is_string(v))
        return moe_err_set(e, MOE_EFORMAT, "%s: content: not a string", name);
    moe_buf_add(&s->text, json_string_value(v), json_string_length(v));
    return s->text.bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name) : 0;
}

static int
parse_replace(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    int rc = set_text(s, json_object_get(at.o, "content"), at.name, e);

    return rc != 0 ? rc
        : moe_regex_pattern(json_object_get(at.o, "pattern"), at.name, &s->find, e);
}

static int
parse_strip(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    int64_t start, stop;
    int rc;

    if ((rc = set_text(s, json_object_get(at.o, "content"), at.name, e)) != 0 ||
        (rc = moe_json_int(at, "start", false, 0, 0, 1 << 20, &start, e)) != 0 ||
        (rc = moe_json_int(at, "stop", false, 0, 0, 1 << 20, &stop, e)) != 0)
        return rc;
    s->start = (size_t)start;
    s->stop = (size_t)stop;
    if (s->text.len == 0 || moe_utf8_len(s->text.p, s->text.len) != s->text.len)
        return moe_err_set(e, MOE_EFORMAT, "%s: content: not one character", at.name);
    return 0;
}

static int
parse_metaspace(struct step *s, struct moe_json_at at, struct moe_err *e)
{
    const char *mark, *scheme;
    bool prefix;
    int rc;

    if ((rc = moe_json_str(at, "replacement", false, "\xe2\x96\x81", &mark, e)) != 0 ||
        (rc = moe_json_bool(at, "add_prefix_space", false, true, &prefix, e)) != 0 ||
        (rc = moe_json_str(at, "prepend_scheme", false, prefix ? "always" : "never", &scheme,
            e)) != 0)
        return rc;
    s->start = strcmp(scheme, "never") != 0;
    moe_buf_str(&s->text, mark);
    return s->text.bad ? moe_err_set(e, MOE_ENOMEM, "%s: out of memory", at.name) : 0;
}

static const struct {
    const char *type;
    enum kind kind;
    bool after_fuse;    /* may stand where tokens are no longer apart */
    int (*parse)(struct step *s, struct moe_json_at at, struct moe_err *e);
} KINDS[] = {
    { "ByteLevel", BYTE_LEVEL, false, NULL },
    { "Replace", REPLACE, false, parse_replace },
    { "ByteFallback", BYTE_FALLBACK, false, NULL },
    { "Fuse", FUSE, true, NULL },
    { "Strip", STRIP, true, parse_strip },
    { "Metaspace", METASPACE, false, parse_metaspace },
};

static bool
has(const struct moe_decoder *d, enum kind kind)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->step[i].kind == kind)
            return true;
    return false;
}

static int
parse(struct moe_decoder *d, const json_t *o, const char *name, int depth, struct moe_err *e)
{
    struct moe_json_at at = { o, name };
    const json_t *list;
    const char *type;
    int rc = moe_json_str(at, "type", true, NULL, &type, e);

    if (rc != 0)
        return rc;
    if (d->n == MOE_DECODER_MAX_STEPS || depth > MOE_DECODER_MAX_STEPS)
        return moe_err_set(e, MOE_ELIMIT, "%s: more than %d steps", name, MOE_DECODER_MAX_STEPS);
    if (strcmp(type, "Sequence") == 0) {
        rc = moe_json_arr(at, "decoders", true, &list, e);
        for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
            rc = parse(d, json_array_get(list, i), name, depth + 1, e);
        return rc;
    }
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++) {
        struct step *s = &d->step[d->n];

        if (strcmp(type, KINDS[i].type) != 0)
            continue;
        if (has(d, BYTE_LEVEL) || (has(d, FUSE) && !KINDS[i].after_fuse))
            return moe_err_set(e, MOE_EUNSUP, "%s: %s at this place is not supported", name, type);
        d->n++;
        s->kind = KINDS[i].kind;
        return KINDS[i].parse == NULL ? 0 : KINDS[i].parse(s, at, e);
    }
    return moe_err_set(e, MOE_EUNSUP, "%s: type %s is not supported", name, type);
}

int
moe_decoder_parse(const json_t *o, const char *name, struct moe_decoder **out, struct moe_err *e)
{
    struct moe_decoder *d = calloc(1, sizeof(*d));
    int rc = 0;

    *out = NULL;
    if (d == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    if (o == NULL || json_is_null(o))
        d->step[d->n++].kind = SPACED;
    else
        rc = parse(d, o, name, 0, e);
    if (rc == 0)
        *out = d;
    else
        moe_decoder_free(d);
    return rc;
}

void
moe_decoder_free(struct moe_decoder *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < MOE_DECODER_MAX_STEPS; i++) {
        moe_buf_fini(&d->step[i].text);
        moe_regex_free(d->step[i].find);
    }
    free(d);
}

/* ---- Pieces --------------------------------------------------------------------- */

/* The byte of token <0xNN>, or -1. */
static int
byte_token(const char *p, size_t n)
{
    int v = 0;

    if (n != 6 || memcmp(p, "<0x", 3) != 0 || p[5] != '>')
        return -1;
    for (int i = 3; i < 5; i++) {
        char c = p[i];

        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            v = v << 4 | ((c | 0x20) - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* p with every match of a REPLACE step replaced, appended to out. */
static int
replace(const struct step *s, struct moe_regex_run *search, const char *p, size_t n,
    struct moe_buf *out, struct moe_err *e)
{
    size_t from, to, at = 0;
    int rc;

    moe_regex_start(search, p, n);
    while ((rc = moe_regex_next(search, &from, &to, e)) == 1) {
        moe_buf_add(out, p + at, from - at);
        moe_buf_add(out, s->text.p, s->text.len);
        at = to;
    }
    moe_buf_add(out, p + at, n - at);
    return rc;
}

/* A Metaspace token: marks become spaces, or vanish from the very first. */
static void
unmark(const struct step *s, bool vanish, const char *p, size_t n, struct moe_buf *out)
{
    const char *end = p + n, *m;

    while (s->text.len > 0 &&
        (m = memmem(p, (size_t)(end - p), s->text.p, s->text.len)) != NULL) {
        moe_buf_add(out, p, (size_t)(m - p));
        if (!vanish)
            moe_buf_byte(out, ' ');
        p = m + s->text.len;
    }
    moe_buf_add(out, p, (size_t)(end - p));
}

int
moe_decoder_bytes(const struct moe_decoder *d, const char *p, size_t n, struct moe_buf *out,
    struct moe_err *e)
{
    int byte = has(d, BYTE_FALLBACK) ? byte_token(p, n) : -1, rc = 0;
    struct moe_buf a = MOE_BUF_INIT, b = MOE_BUF_INIT;
    struct moe_regex_run *search = NULL;

    if (byte >= 0) {
        moe_buf_byte(out, (char)byte);
        goto out;
    }
    moe_buf_add(&a, p, n);
    for (size_t i = 0; rc == 0 && i < d->n; i++) {
        const struct step *s = &d->step[i];
        struct moe_buf swap = a;

        moe_buf_clear(&b);
        if (s->kind == BYTE_LEVEL) {
            moe_bytelevel_unmap(a.p, a.len, &b);
        } else if (s->kind == METASPACE) {
            unmark(s, false, a.p, a.len, &b);
        } else if (s->kind == REPLACE) {
            if ((rc = moe_regex_run_new(s->find, &search, e)) == 0)
                rc = replace(s, search, a.p, a.len, &b, e);
            moe_regex_run_free(search);
        } else {
            continue;
        }
        a = b;
        b = swap;
    }
    if (rc == 0)
        moe_buf_add(out, a.p, a.len);
out:
    if (rc == 0 && (out->bad || a.bad || b.bad))
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    moe_buf_fini(&a);
    moe_buf_fini(&b);
    return rc;
}

/* ---- Running ------------------------------------------------------------------ */

struct work {                   /* of one step */
    struct moe_regex_run *search;
    struct moe_buf buf;         /* REPLACE: room; BYTE_FALLBACK: bytes that wait */
    size_t left, held;          /* STRIP: still to be cut at the start; held back for the end */
    bool begun;                 /* some token has come */
    bool spoilt;                /* BYTE_FALLBACK: the run of bytes has a bad one */
};

struct moe_decoder_run {
    const struct moe_decoder *d;
    struct work work[MOE_DECODER_MAX_STEPS];
    bool stream;
    char tail[4];               /* bytes of a character that is not whole */
    size_t n_tail;
    struct moe_buf *out;
    struct moe_err *e;
};

int
moe_decoder_run_new(const struct moe_decoder *d, bool stream, struct moe_decoder_run **out,
    struct moe_err *e)
{
    struct moe_decoder_run *run = calloc(1, sizeof(*run));
    int rc = 0;

    *out = NULL;
    if (run == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    run->d = d;
    run->stream = stream;
    for (size_t i = 0; rc == 0 && i < d->n; i++)
        if (d->step[i].find != NULL)
            rc = moe_regex_run_new(d->step[i].find, &run->work[i].search, e);
    if (rc == 0)
        *out = run;
    else
        moe_decoder_run_free(run);
    return rc;
}

void
moe_decoder_run_free(struct moe_decoder_run *run)
{
    if (run == NULL)
        return;
    for (size_t i = 0; i < MOE_DECODER_MAX_STEPS; i++) {
        moe_regex_run_free(run->work[i].search);
        moe_buf_fini(&run->work[i].buf);
    }
    free(run);
}

/* Release whole characters and what can become none; keep a character cut short. */
static void
release(struct moe_decoder_run *run, const char *p, size_t n)
{
    bool cut = false;

    for (; run->n_tail > 0 && n > 0; p++, n--) {
        run->tail[run->n_tail++] = *p;
        if (moe_utf8_len(run->tail, run->n_tail) > 0) {
            moe_buf_add(run->out, run->tail, run->n_tail);
            run->n_tail = 0;
            continue;
        }
        (void)moe_utf8_bad(run->tail, run->n_tail, &cut);
        if (!cut) {
            /* This byte broke it: that one is looked at again. */
            moe_buf_str(run->out, REPLACEMENT);
            run->n_tail = 0;
            break;
        }
    }
    while (n > 0) {
        size_t good = 0, k;

        while ((k = moe_utf8_len(p + good, n - good)) > 0)
            good += k;
        moe_buf_add(run->out, p, good);
        p += good;
        n -= good;
        if (n == 0)
            break;
        k = moe_utf8_bad(p, n, &cut);
        if (cut) {
            memcpy(run->tail, p, n);
            run->n_tail = n;
            break;
        }
        moe_buf_str(run->out, REPLACEMENT);
        p += k;
        n -= k;
    }
}

static int push(struct moe_decoder_run *run, size_t i, const char *p, size_t n, bool first);

/* One U+FFFD for each of n bytes. */
static int
spoil(struct moe_decoder_run *run, size_t i, size_t n)
{
    int rc = 0;

    for (; rc == 0 && n > 0; n--)
        rc = push(run, i + 1, REPLACEMENT, sizeof(REPLACEMENT) - 1, true);
    return rc;
}

/*
 * What may be released of the byte tokens that wait. A whole run with a bad byte
 * is U+FFFD a byte; in a stream that holds only for what was not yet released.
 */
static int
send_bytes(struct moe_decoder_run *run, size_t i, bool end)
{
    struct work *w = &run->work[i];
    size_t n = w->buf.len, good = 0, k;
    bool cut = false;
    int rc = 0;

    if (n == 0 || (!end && !run->stream))
        return 0;
    while (!w->spoilt && good < n && (k = moe_utf8_len(w->buf.p + good, n - good)) > 0)
        good += k;
    if (good < n && !w->spoilt) {
        (void)moe_utf8_bad(w->buf.p + good, n - good, &cut);
        w->spoilt = end || !cut;
    }
    if (w->spoilt && !run->stream)
        good = 0;
    if (good > 0)
        rc = push(run, i + 1, w->buf.p, good, true);
    if (rc == 0 && w->spoilt) {
        rc = spoil(run, i, n - good);
        good = n;
    }
    memmove(w->buf.p, w->buf.p + good, n - good);
    w->buf.len = n - good;
    return rc;
}

static int
byte_fallback(struct moe_decoder_run *run, size_t i, const char *p, size_t n)
{
    struct work *w = &run->work[i];
    int byte = byte_token(p, n), rc;

    if (byte >= 0) {
        moe_buf_byte(&w->buf, (char)byte);
        return w->buf.bad ? moe_err_set(run->e, MOE_ENOMEM, "out of memory")
            : send_bytes(run, i, false);
    }
    rc = send_bytes(run, i, true);
    w->spoilt = false;
    return rc != 0 ? rc : push(run, i + 1, p, n, true);
}

/* Cut `start` characters off a token's start; hold `stop` back, which its end drops. */
static int
strip(struct moe_decoder_run *run, size_t i, const char *p, size_t n, bool first)
{
    const struct moe_buf *c = &run->d->step[i].text;
    struct work *w = &run->work[i];
    size_t end = n, held = 0;
    int rc = 0;

    if (first) {
        w->left = run->d->step[i].start;
        w->held = 0;
    }
    while (w->left > 0 && n >= c->len && memcmp(p, c->p, c->len) == 0) {
        p += c->len;
        n -= c->len;
        w->left--;
    }
    if (n > 0)
        w->left = 0;
    for (end = n; end >= c->len && held < run->d->step[i].stop &&
         memcmp(p + end - c->len, c->p, c->len) == 0; held++)
        end -= c->len;
    if (end > 0) {
        for (; rc == 0 && w->held > 0; w->held--, first = false)
            rc = push(run, i + 1, c->p, c->len, first);
    } else {
        /* Nothing but the character: what was held before and is too much now goes out. */
        for (; rc == 0 && w->held + held > run->d->step[i].stop && w->held > 0; w->held--) {
            rc = push(run, i + 1, c->p, c->len, first);
            first = false;
        }
    }
    w->held += held;
    return rc != 0 ? rc : push(run, i + 1, p, end, first);
}

static int
push(struct moe_decoder_run *run, size_t i, const char *p, size_t n, bool first)
{
    const struct step *s = &run->d->step[i];
    struct work *w = &run->work[i];
    bool begun = w->begun;
    int rc;

    if (i == run->d->n) {
        release(run, p, n);
        return run->out->bad ? moe_err_set(run->e, MOE_ENOMEM, "out of memory") : 0;
    }
    w->begun = true;
    switch (s->kind) {
    case BYTE_FALLBACK:
        return byte_fallback(run, i, p, n);
    case FUSE:
        return push(run, i + 1, p, n, !begun);
    case STRIP:
        return strip(run, i, p, n, first);
    case SPACED:
        if (begun && (rc = push(run, i + 1, " ", 1, false)) != 0)
            return rc;
        return push(run, i + 1, p, n, first);
    default:
        break;
    }
    moe_buf_clear(&w->buf);
    if (s->kind == BYTE_LEVEL) {
        moe_bytelevel_unmap(p, n, &w->buf);
        first = !begun;
    } else if (s->kind == METASPACE) {
        unmark(s, !begun && s->start > 0, p, n, &w->buf);
    } else if ((rc = replace(s, w->search, p, n, &w->buf, run->e)) != 0) {
        return rc;
    }
    if (w->buf.bad)
        return moe_err_set(run->e, MOE_ENOMEM, "out of memory");
    return push(run, i + 1, w->buf.p, w->buf.len, first);
}

int
moe_decoder_put(struct moe_decoder_run *run, const char *p, size_t n, struct moe_buf *out,
    struct moe_err *e)
{
    run->out = out;
    run->e = e;
    return push(run, 0, p, n, true);
}

int
moe_decoder_end(struct moe_decoder_run *run, struct moe_buf *out, struct moe_err *e)
{
    int rc = 0;

    run->out = out;
    run->e = e;
    for (size_t i = 0; rc == 0 && i < run->d->n; i++)
        if (run->d->step[i].kind == BYTE_FALLBACK) {
            rc = send_bytes(run, i, true);
            run->work[i].spoilt = false;
        }
    if (run->n_tail > 0)
        moe_buf_str(out, REPLACEMENT);
    run->n_tail = 0;
    if (rc == 0 && out->bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    return rc;
}
