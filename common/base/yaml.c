/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading strict YAML: libyaml finds the events, this file makes jansson's
 * tree of them and remembers where each value stood. Does not recurse and knows
 * nothing of what the values mean.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/base/buf.h"
#include "common/base/read.h"
#include "common/base/scan.h"
#include "common/base/utf8.h"
#include "common/base/yaml.h"

/* A place as people count, from 1. */
struct spot {
    unsigned line, column;
};

struct place {
    const json_t *node;
    struct spot at, key;    /* of the value, and of its key in a mapping */
    bool own;               /* node is ours to free, not jansson's */
};

struct moe_yaml {
    char *name;
    json_t *root;
    struct place *place;    /* by address of node */
    size_t n, cap;
};

/* An open sequence or mapping, and the key that waits for its value. */
struct level {
    json_t *node;
    char *key;
    struct spot at;
};

struct build {
    struct moe_yaml *y;
    struct moe_err *e;
    struct level level[MOE_YAML_MAX_DEPTH];
    int depth;
};

static struct spot
spot(yaml_mark_t m)
{
    return (struct spot){ (unsigned)m.line + 1, (unsigned)m.column + 1 };
}

static int
fail(struct build *b, struct spot at, const char *what)
{
    return moe_err_set(b->e, MOE_EFORMAT, "%s:%u:%u: %s", b->y->name, at.line, at.column, what);
}

static int
no_memory(struct build *b)
{
    return moe_err_set(b->e, MOE_ENOMEM, "%s: out of memory", b->y->name);
}

/* ---- Nodes --------------------------------------------------------------------------- */

static bool
remember(struct moe_yaml *y, struct place at)
{
    if (y->n == y->cap) {
        size_t cap = y->cap == 0 ? 64 : 2 * y->cap;
        struct place *p = realloc(y->place, cap * sizeof(*p));

        if (p == NULL)
            return false;
        y->place = p;
        y->cap = cap;
    }
    y->place[y->n++] = at;
    return true;
}

/*
 * jansson has one node for all nulls, and one for true and false each, which
 * stands nowhere. Ours is a node a value; jansson never frees it, because its
 * count of references is the same as that of jansson's own.
 */
static json_t *
literal(json_type type)
{
    json_t *v = malloc(sizeof(*v));

    if (v != NULL)
        *v = (json_t){ .type = type, .refcount = (size_t)-1 };
    return v;
}

/* The value of plain scalar text by the rules of JSON; NULL with b->e set. */
static json_t *
plain(struct build *b, const char *text, size_t n, struct spot at, bool *own)
{
    static const struct { const char *text; json_type type; } word[] = { { "", JSON_NULL },
        { "null", JSON_NULL }, { "true", JSON_TRUE }, { "false", JSON_FALSE } };
    struct moe_scan s;
    json_t *v;
    int64_t whole;
    double real;

    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
        if (strlen(word[i].text) == n && memcmp(word[i].text, text, n) == 0) {
            *own = true;
            if ((v = literal(word[i].type)) == NULL)
                (void)no_memory(b);
            return v;
        }
    moe_scan_init(&s, text, n, "");
    if (moe_scan_real(&s, &real, NULL) != 0 || s.p != s.end) {
        v = json_stringn(text, n);
    } else if (memchr(text, '.', n) != NULL || memchr(text, 'e', n) != NULL ||
        memchr(text, 'E', n) != NULL) {
        v = json_real(real);
    } else {
        moe_scan_init(&s, text, n, "");
        if (moe_scan_int(&s, &whole, NULL) != 0) {
            (void)fail(b, at, "number out of range");
            return NULL;
        }
        v = json_integer(whole);
    }
    if (v == NULL)
        (void)no_memory(b);
    return v;
}

/* Hang v where the tree is being built. v belongs to the tree then, or to nobody. */
static int
attach(struct build *b, json_t *v, struct spot at, bool own)
{
    struct level *up = b->depth > 0 ? &b->level[b->depth - 1] : NULL;
    struct place place = { v, at, up != NULL ? up->at : at, own };
    int rc;

    if (!remember(b->y, place)) {
        if (own)
            free(v);
        else
            json_decref(v);
        return no_memory(b);
    }
    if (up == NULL) {
        b->y->root = v;
        return 0;
    }
    if (json_is_array(up->node))
        return json_array_append_new(up->node, v) != 0 ? no_memory(b) : 0;
    rc = json_object_set_new(up->node, up->key, v);
    free(up->key);
    up->key = NULL;
    return rc != 0 ? no_memory(b) : 0;
}

/* ---- Events -------------------------------------------------------------------------- */

/* Whether the mapping that is open waits for a key. */
static bool
wants_key(const struct build *b)
{
    const struct level *up = b->depth > 0 ? &b->level[b->depth - 1] : NULL;

    return up != NULL && json_is_object(up->node) && up->key == NULL;
}

static int
take_key(struct build *b, const yaml_event_t *ev, struct spot at)
{
    struct level *up = &b->level[b->depth - 1];
    const char *text = (const char *)ev->data.scalar.value;
    bool is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (is_plain && *text == '\0')
        return fail(b, at, "a key is missing");
    if (is_plain && strcmp(text, "<<") == 0)
        return fail(b, at, "merge keys are not read");
    if (strlen(text) != ev->data.scalar.length)
        return fail(b, at, "NUL in a key");
    if (json_object_get(up->node, text) != NULL)
        return fail(b, at, "duplicate key");
    up->at = at;
    return (up->key = strdup(text)) == NULL ? no_memory(b) : 0;
}

static int
take_scalar(struct build *b, const yaml_event_t *ev)
{
    const char *text = (const char *)ev->data.scalar.value;
    size_t n = ev->data.scalar.length;
    struct spot at = spot(ev->start_mark);
    bool own = false;
    json_t *v;

    if (ev->data.scalar.anchor != NULL)
        return fail(b, at, "anchors are not read");
    if (ev->data.scalar.tag != NULL)
        return fail(b, at, "tags are not read");
    if (wants_key(b))
        return take_key(b, ev, at);
    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if ((v = plain(b, text, n, at, &own)) == NULL)
            return b->e->code;
    } else if ((v = json_stringn(text, n)) == NULL) {
        return no_memory(b);
    }
    return attach(b, v, at, own);
}

/* Open a sequence or mapping. */
static int
take_start(struct build *b, json_t *v, const yaml_char_t *anchor, const yaml_char_t *tag,
    struct spot at)
{
    int rc;

    if (v == NULL)
        return no_memory(b);
    if (anchor != NULL)
        rc = fail(b, at, "anchors are not read");
    else if (tag != NULL)
        rc = fail(b, at, "tags are not read");
    else if (wants_key(b))
        rc = fail(b, at, "a key is one word");
    else if (b->depth == MOE_YAML_MAX_DEPTH)
        rc = moe_err_set(b->e, MOE_ELIMIT, "%s:%u:%u: nested too deep", b->y->name, at.line,
            at.column);
    else
        rc = 0;
    if (rc != 0) {
        json_decref(v);
        return rc;
    }
    if ((rc = attach(b, v, at, false)) == 0)
        b->level[b->depth++] = (struct level){ .node = v };
    return rc;
}

/* Take one event into the tree. */
static int
take(struct build *b, const yaml_event_t *ev)
{
    struct spot at = spot(ev->start_mark);

    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->y->root != NULL)
            return fail(b, at, "a second document");
        if (ev->data.document_start.tag_directives.start !=
            ev->data.document_start.tag_directives.end)
            return fail(b, at, "tags are not read");
        return 0;
    case YAML_ALIAS_EVENT: return fail(b, at, "aliases are not read");
    case YAML_SCALAR_EVENT: return take_scalar(b, ev);
    case YAML_SEQUENCE_START_EVENT:
        return take_start(b, json_array(), ev->data.sequence_start.anchor,
            ev->data.sequence_start.tag, at);
    case YAML_MAPPING_START_EVENT:
        return take_start(b, json_object(), ev->data.mapping_start.anchor,
            ev->data.mapping_start.tag, at);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: b->depth--; return 0;
    default: return 0;
    }
}

/* The place of the character at `offset` bytes of text. */
static struct spot
spot_of(const char *text, size_t offset)
{
    struct spot at = { 1, 1 };

    for (size_t i = 0; i < offset; i++)
        if (text[i] == '\n')
            at = (struct spot){ at.line + 1, 1 };
        else if (((unsigned char)text[i] & 0xc0) != 0x80)
            at.column++;
    return at;
}

/* What libyaml itself refuses. */
static int
refused(struct build *b, const yaml_parser_t *p, const char *text, size_t n)
{
    size_t at = p->problem_offset < n ? p->problem_offset : n;

    if (p->error == YAML_MEMORY_ERROR)
        return no_memory(b);
    return fail(b, p->error == YAML_READER_ERROR ? spot_of(text, at) : spot(p->problem_mark),
        p->problem != NULL ? p->problem : "not YAML");
}

static int
run(struct build *b, const char *p, size_t n)
{
    yaml_parser_t parser;
    yaml_event_t ev;
    bool end = false;
    int rc = 0;

    if (!yaml_parser_initialize(&parser))
        return no_memory(b);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)p, n);
    while (rc == 0 && !end) {
        if (!yaml_parser_parse(&parser, &ev)) {
            rc = refused(b, &parser, p, n);
            break;
        }
        end = ev.type == YAML_STREAM_END_EVENT;
        rc = take(b, &ev);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    for (int i = 0; i < b->depth; i++)
        free(b->level[i].key);
    if (rc == 0 && b->y->root == NULL)
        rc = fail(b, (struct spot){ 1, 1 }, "no document");
    return rc;
}

/* ---- Public -------------------------------------------------------------------------- */

static int
by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return (x->node > y->node) - (x->node < y->node);
}

static const struct place *
find(const struct moe_yaml *y, const json_t *node)
{
    struct place want = { .node = node };

    if (node == NULL || y->n == 0)
        return NULL;
    return bsearch(&want, y->place, y->n, sizeof(want), by_address);
}

/* libyaml would skip a byte order mark, and tells no place of what is not UTF-8. */
static int
check_text(const char *p, size_t n, const char *name, struct moe_err *e)
{
    struct spot spot;
    size_t at = 0, k;

    if (n > MOE_YAML_MAX_BYTES)
        return moe_err_set(e, MOE_ELIMIT, "%s: larger than %zu bytes", name, MOE_YAML_MAX_BYTES);
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s:1:1: byte order mark", name);
    while (at < n && (k = moe_utf8_len(p + at, n - at)) > 0)
        at += k;
    if (at == n)
        return 0;
    spot = spot_of(p, at);
    return moe_err_set(e, MOE_EFORMAT, "%s:%u:%u: not UTF-8", name, spot.line, spot.column);
}

int
moe_yaml_parse(const char *p, size_t n, const char *name, struct moe_yaml **out,
    struct moe_err *e)
{
    struct moe_err own;
    struct build b = { .e = e != NULL ? e : &own };
    int rc;

    *out = NULL;
    if ((rc = check_text(p, n, name, e)) != 0)
        return rc;
    if ((b.y = calloc(1, sizeof(*b.y))) == NULL || (b.y->name = strdup(name)) == NULL) {
        moe_yaml_free(b.y);
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    }
    if ((rc = run(&b, p, n)) != 0) {
        moe_yaml_free(b.y);
        return rc;
    }
    if (b.y->n > 1)
        qsort(b.y->place, b.y->n, sizeof(*b.y->place), by_address);
    *out = b.y;
    return 0;
}

int
moe_yaml_file(const char *path, struct moe_yaml **out, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    int rc;

    *out = NULL;
    if ((rc = moe_read_file(path, MOE_YAML_MAX_BYTES, &b, e)) == 0)
        rc = moe_yaml_parse(b.p, b.len, strcmp(path, "-") == 0 ? "stdin" : path, out, e);
    moe_buf_fini(&b);
    return rc;
}

void
moe_yaml_free(struct moe_yaml *y)
{
    if (y == NULL)
        return;
    json_decref(y->root);
    for (size_t i = 0; i < y->n; i++)
        if (y->place[i].own)
            free((json_t *)y->place[i].node);
    free(y->place);
    free(y->name);
    free(y);
}

const json_t *
moe_yaml_root(const struct moe_yaml *y)
{
    return y->root;
}

int
moe_yaml_fail(const struct moe_yaml *y, const json_t *node, struct moe_err *e, const char *fmt,
    ...)
{
    const struct place *at = find(y, node);
    char what[MOE_ERR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    if (at == NULL)
        return moe_err_set(e, MOE_EFORMAT, "%s: %s", y->name, what);
    return moe_err_set(e, MOE_EFORMAT, "%s:%u:%u: %s", y->name, at->at.line, at->at.column, what);
}

int
moe_yaml_only(const struct moe_yaml *y, const json_t *node, const char *const *keys,
    struct moe_err *e)
{
    const char *key;
    json_t *v;

    if (!json_is_object(node))
        return moe_yaml_fail(y, node, e, "a mapping is expected");
    /* jansson iterates over objects that are not const; nothing is changed. */
    json_object_foreach((json_t *)node, key, v) {
        const struct place *at = find(y, v);
        size_t i = 0;

        while (keys[i] != NULL && strcmp(keys[i], key) != 0)
            i++;
        if (keys[i] == NULL && at != NULL)
            return moe_err_set(e, MOE_EFORMAT, "%s:%u:%u: %s: unknown key", y->name,
                at->key.line, at->key.column, key);
    }
    return 0;
}
