/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the forms of a line in a list of digests, both ways. Opens nothing.
 */
#include <string.h>

#include "common/trust/sumlist.h"

#define HEX (2 * MOE_DIGEST_LEN)
#define COLUMNS 4       /* of a tensor's line, after the digest */

/* A piece of a line. */
struct piece {
    const char *p;
    size_t n;
};

void
moe_sumlist_open(struct moe_sumlist *s, const char *p, size_t n, bool zero)
{
    memset(s, 0, sizeof(*s));
    s->p = p;
    s->end = p + n;
    s->zero = zero;
    s->form = MOE_SUMLIST_NEW;
}

void
moe_sumlist_close(struct moe_sumlist *s)
{
    moe_buf_fini(&s->text);
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool
starts(const struct piece *l, const char *text)
{
    size_t n = strlen(text);

    return l->n >= n && memcmp(l->p, text, n) == 0;
}

static void
drop(struct piece *l, size_t n)
{
    l->p += n;
    l->n -= n;
}

static int
bad(struct moe_err *e, const char *what)
{
    return moe_err_set(e, MOE_EFORMAT, "%s", what);
}

/* Append a name to the text, unescaped when asked, and a NUL. */
static int
add_name(struct moe_buf *b, struct piece name, bool escaped, bool tabs, struct moe_err *e)
{
    if (name.n == 0)
        return bad(e, "the name is empty");
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '\0')
            return bad(e, "NUL in a name");
        if (escaped && c == '\\') {
            c = ++i < name.n ? name.p[i] : '\0';
            if (c != '\\' && c != 'n' && c != 'r' && !(tabs && c == 't'))
                return bad(e, "unknown escape in a name");
            c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
        }
        moe_buf_byte(b, c);
    }
    moe_buf_byte(b, '\0');
    return 0;
}

/* The rest of a tagged line: " (name) = hex", both blanks optional. */
static int
tagged(struct moe_sumlist *s, struct piece l, bool escaped, struct moe_sumlist_line *out,
    struct moe_err *e)
{
    struct piece name;
    const char *close;

    if (l.n > 0 && l.p[0] == ' ')
        drop(&l, 1);
    if (l.n == 0 || l.p[0] != '(')
        return bad(e, "no ( after the tag");
    drop(&l, 1);
    if ((close = memrchr(l.p, ')', l.n)) == NULL)
        return bad(e, "no ) after the name");
    name.p = l.p;
    name.n = (size_t)(close - l.p);
    drop(&l, name.n + 1);
    while (l.n > 0 && is_blank(l.p[0]))
        drop(&l, 1);
    if (l.n == 0 || l.p[0] != '=')
        return bad(e, "no = after the name");
    drop(&l, 1);
    while (l.n > 0 && is_blank(l.p[0]))
        drop(&l, 1);
    if (!moe_digest_unhex(l.p, l.n, out->sum))
        return bad(e, "no SHA-256 digest of 64 hexadecimal digits");
    return add_name(&s->text, name, escaped, false, e);
}

/* Columns of a tensor's line: name, tensor, type, shape. */
static int
columns(struct moe_sumlist *s, struct piece l, bool escaped, struct moe_err *e)
{
    for (int i = 0; i < COLUMNS; i++) {
        const char *tab = l.n > 0 ? memchr(l.p, '\t', l.n) : NULL;
        struct piece c = { l.p, tab != NULL ? (size_t)(tab - l.p) : l.n };
        int rc;
        if ((tab == NULL) != (i == COLUMNS - 1))
            return bad(e, "a tensor's line has five columns: digest, file, tensor, type, shape");
        if ((rc = add_name(&s->text, c, escaped, true, e)) != 0)
            return rc;
        drop(&l, c.n + (tab != NULL));
    }
    return 0;
}

/* A line that begins with the digest. */
static int
untagged(struct moe_sumlist *s, struct piece l, bool escaped, struct moe_sumlist_line *out,
    bool *tensor, struct moe_err *e)
{
    bool two;

    if (l.n < HEX || !moe_digest_unhex(l.p, HEX, out->sum) ||
        (l.n > HEX && !is_blank(l.p[HEX])))
        return bad(e, "no SHA-256 digest of 64 hexadecimal digits");
    drop(&l, HEX);
    if (l.n == 0)
        return bad(e, "no name after the digest");
    *tensor = l.p[0] == '\t';
    drop(&l, 1);
    if (*tensor)
        return columns(s, l, escaped, e);
    two = l.n > 0 && (l.p[0] == ' ' || l.p[0] == '*');
    if (s->form == MOE_SUMLIST_TWO && !two)
        return bad(e, "one blank before the name, where earlier lines have two");
    if (s->form == MOE_SUMLIST_NEW)
        s->form = two ? MOE_SUMLIST_TWO : MOE_SUMLIST_ONE;
    if (s->form == MOE_SUMLIST_TWO)
        drop(&l, 1);
    return add_name(&s->text, l, escaped, false, e);
}

/* Tags of other digests, to say what is missing. */
static bool
is_other_tag(const struct piece *l)
{
    static const char *const tags[] = { "MD5", "SHA1", "SHA2-", "SHA224", "SHA384", "SHA512",
        "SHA3-", "SM3", "BLAKE2b", "BLAKE3", "RMD160", "CRC32" };

    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
        if (starts(l, tags[i]))
            return memchr(l->p, '(', l->n) != NULL;
    return false;
}

static int
parse(struct moe_sumlist *s, struct piece l, struct moe_sumlist_line *out, struct moe_err *e)
{
    bool escaped = false, tensor = false;
    int rc;

    while (l.n > 0 && is_blank(l.p[0]))
        drop(&l, 1);
    if (!s->zero && l.n > 0 && l.p[0] == '\\') {
        escaped = true;
        drop(&l, 1);
    }
    if (starts(&l, "SHA256 (") || starts(&l, "SHA256(")) {
        drop(&l, 6);
        rc = tagged(s, l, escaped, out, e);
    } else if (starts(&l, "SHA2-256 (") || starts(&l, "SHA2-256(")) {
        drop(&l, 8);
        rc = tagged(s, l, escaped, out, e);
    } else if (is_other_tag(&l)) {
        rc = bad(e, "only SHA-256 is checked");
    } else {
        rc = untagged(s, l, escaped, out, &tensor, e);
    }
    if (rc != 0)
        return rc;
    if (s->text.bad)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    out->name = s->text.p;
    if (tensor) {
        out->tensor = out->name + strlen(out->name) + 1;
        out->type = out->tensor + strlen(out->tensor) + 1;
        out->shape = out->type + strlen(out->type) + 1;
    }
    return 1;
}

/* Cut the next record off; one CR at the end of a line belongs to the line's end. */
static struct piece
cut(struct moe_sumlist *s)
{
    size_t left = (size_t)(s->end - s->p);
    const char *stop = memchr(s->p, s->zero ? '\0' : '\n', left);
    struct piece l = { s->p, stop != NULL ? (size_t)(stop - s->p) : left };

    s->p += l.n + (stop != NULL);
    s->number++;
    if (!s->zero && l.n > 0 && l.p[l.n - 1] == '\r')
        l.n--;
    return l;
}

int
moe_sumlist_next(struct moe_sumlist *s, struct moe_sumlist_line *out, struct moe_err *e)
{
    while (s->p < s->end) {
        struct piece l = cut(s);

        if (l.n == 0 || l.p[0] == '#')
            continue;
        memset(out, 0, sizeof(*out));
        out->number = s->number;
        s->text.bad = false;
        moe_buf_clear(&s->text);
        return parse(s, l, out, e);
    }
    return 0;
}

/* Whether a name needs the escape mark. */
static bool
needs_escape(const char *name, bool tabs)
{
    return strpbrk(name, tabs ? "\\\n\r\t" : "\\\n\r") != NULL;
}

static void
put_name(struct moe_buf *b, const char *name, bool escape, bool tabs)
{
    static const char from[] = "\\\n\r\t", to[] = "\\nrt";

    for (; *name != '\0'; name++) {
        const char *at = escape && (tabs || *name != '\t') ? strchr(from, *name) : NULL;
        if (at == NULL) {
            moe_buf_byte(b, *name);
        } else {
            moe_buf_byte(b, '\\');
            moe_buf_byte(b, to[at - from]);
        }
    }
}

void
moe_sumlist_put(struct moe_buf *b, const unsigned char sum[static MOE_DIGEST_LEN],
    const char *name, bool zero)
{
    bool escape = !zero && needs_escape(name, false);
    char hex[MOE_DIGEST_HEX];

    if (escape)
        moe_buf_byte(b, '\\');
    moe_buf_str(b, moe_digest_hex(sum, hex));
    moe_buf_str(b, "  ");
    put_name(b, name, escape, false);
    moe_buf_byte(b, zero ? '\0' : '\n');
}

void
moe_sumlist_put_tensor(struct moe_buf *b, const unsigned char sum[static MOE_DIGEST_LEN],
    const char *name, const char *tensor, const char *type, const char *shape)
{
    bool escape = needs_escape(name, true) || needs_escape(tensor, true);
    char hex[MOE_DIGEST_HEX];

    if (escape)
        moe_buf_byte(b, '\\');
    moe_buf_str(b, moe_digest_hex(sum, hex));
    moe_buf_byte(b, '\t');
    put_name(b, name, escape, true);
    moe_buf_byte(b, '\t');
    put_name(b, tensor, escape, true);
    moe_buf_fmt(b, "\t%s\t%s\n", type, shape);
}
