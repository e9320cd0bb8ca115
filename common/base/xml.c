/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tree that expat's events make. */
#include <expat.h>
#include <limits.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/xml.h"

struct build {
    XML_Parser parser;
    struct moe_xml_doc *doc;
    struct moe_xml *at, *last[MOE_XML_MAX_DEPTH + 1];   /* last: latest child a depth */
    struct moe_buf text;
    const char *name;
    size_t depth, n;
    int rc;
    struct moe_err *e;
};

static void
stop(struct build *b, int rc, const char *what)
{
    if (b->rc == 0)
        b->rc = moe_err_set(b->e, rc, "%s:%lu: %s", b->name,
            (unsigned long)XML_GetCurrentLineNumber(b->parser), what);
    (void)XML_StopParser(b->parser, XML_FALSE);
}

static const char *const *
copy_attrs(struct moe_arena *a, const XML_Char **attrs)
{
    const char **copy;
    size_t n = 0;

    while (attrs[n] != NULL)
        n++;
    if ((copy = moe_arena_get(a, (n + 1) * sizeof(*copy))) == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if ((copy[i] = moe_arena_text(a, attrs[i], strlen(attrs[i]))) == NULL)
            return NULL;
    }
    copy[n] = NULL;
    return copy;
}

static void XMLCALL
on_start(void *ctx, const XML_Char *name, const XML_Char **attrs)
{
    struct build *b = ctx;
    struct moe_arena *a = &b->doc->arena;
    struct moe_xml *x;

    if (b->depth == MOE_XML_MAX_DEPTH || b->n == MOE_XML_MAX_ELEMENTS) {
        stop(b, MOE_ELIMIT, b->depth == MOE_XML_MAX_DEPTH ? "nested too deeply" :
            "too many elements");
        return;
    }
    if ((x = moe_arena_get(a, sizeof(*x))) == NULL) {
        stop(b, MOE_ENOMEM, "out of memory");
        return;
    }
    *x = (struct moe_xml){ moe_arena_text(a, name, strlen(name)), copy_attrs(a, attrs), "", b->at,
        NULL, NULL, (size_t)XML_GetCurrentLineNumber(b->parser) };
    if (x->name == NULL || x->attrs == NULL) {
        stop(b, MOE_ENOMEM, "out of memory");
        return;
    }
    if (b->at == NULL)
        b->doc->root = x;
    else if (b->at->child == NULL)
        b->at->child = x;
    else
        b->last[b->depth]->next = x;
    b->last[b->depth++] = x;
    b->n++;
    b->at = x;
    moe_buf_clear(&b->text);
}

static void XMLCALL
on_text(void *ctx, const XML_Char *p, int n)
{
    struct build *b = ctx;

    moe_buf_add(&b->text, p, (size_t)n);
}

static void XMLCALL
on_end(void *ctx, const XML_Char *name)
{
    struct build *b = ctx;

    (void)name;
    if (b->at->child == NULL && b->text.len > 0 &&
        (b->text.bad ||
        (b->at->text = moe_arena_text(&b->doc->arena, b->text.p, b->text.len)) == NULL)) {
        stop(b, MOE_ENOMEM, "out of memory");
        return;
    }
    moe_buf_clear(&b->text);
    b->at = b->at->parent;
    b->depth--;
}

static void XMLCALL
on_entity(void *ctx, const XML_Char *name, int parameter, const XML_Char *value, int n,
    const XML_Char *base, const XML_Char *system, const XML_Char *public,
    const XML_Char *notation)
{
    (void)name, (void)parameter, (void)value, (void)n, (void)base, (void)system, (void)public;
    (void)notation;
    stop(ctx, MOE_EFORMAT, "declares an entity");
}

int
moe_xml_parse(const char *p, size_t n, const char *name, struct moe_xml_doc *out,
    struct moe_err *e)
{
    struct build b = { .doc = out, .name = name, .e = e };

    *out = (struct moe_xml_doc){ MOE_ARENA_INIT, NULL };
    if (n > INT_MAX)
        return moe_err_set(e, MOE_ELIMIT, "%s: over 2 GB of XML", name);
    if ((b.parser = XML_ParserCreate(NULL)) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
    XML_SetUserData(b.parser, &b);
    XML_SetElementHandler(b.parser, on_start, on_end);
    XML_SetCharacterDataHandler(b.parser, on_text);
    XML_SetEntityDeclHandler(b.parser, on_entity);
    if (XML_Parse(b.parser, p, (int)n, XML_TRUE) != XML_STATUS_OK && b.rc == 0)
        b.rc = moe_err_set(e, MOE_EFORMAT, "%s:%lu: %s", name,
            (unsigned long)XML_GetCurrentLineNumber(b.parser),
            XML_ErrorString(XML_GetErrorCode(b.parser)));
    XML_ParserFree(b.parser);
    moe_buf_fini(&b.text);
    if (b.rc != 0)
        moe_xml_fini(out);
    return b.rc;
}

void
moe_xml_fini(struct moe_xml_doc *d)
{
    moe_arena_fini(&d->arena);
    d->root = NULL;
}

const char *
moe_xml_attr(const struct moe_xml *x, const char *key)
{
    for (const char *const *a = x->attrs; *a != NULL; a += 2) {
        if (strcmp(*a, key) == 0)
            return a[1];
    }
    return NULL;
}
