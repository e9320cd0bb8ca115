/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns making values and text in the memory of one rendering, and its limits.
 * What values do is in the other template files.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/engine/chat.h"
#include "common/engine/template_dict.h"
#include "common/engine/template_value.h"

/* ---- The run ------------------------------------------------------------------ */

static int
failed(struct moe_trun *r, int rc)
{
    if (r->rc == 0)
        r->rc = rc;
    return rc;
}

int
moe_template_value_fail(struct moe_trun *r, const char *fmt, ...)
{
    char text[MOE_ERR_TEXT];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return failed(r, moe_err_set(r->e, MOE_EFORMAT, "%s:%d: %s", r->name, r->line, text));
}

int
moe_template_value_limit(struct moe_trun *r, const char *what)
{
    return failed(r, moe_err_set(r->e, MOE_ELIMIT, "%s:%d: %s", r->name, r->line, what));
}

int
moe_template_value_step(struct moe_trun *r, size_t n)
{
    if (n > MOE_CHAT_MAX_STEPS - r->steps)
        return moe_template_value_limit(r, "the template takes too many steps");
    r->steps += n;
    return 0;
}

int
moe_template_value_deeper(struct moe_trun *r)
{
    if (r->depth == MOE_TEMPLATE_MAX_NESTING)
        return moe_template_value_limit(r, "nested too deep");
    r->depth++;
    return 0;
}

void *
moe_template_value_alloc(struct moe_trun *r, size_t n, size_t size)
{
    void *p = NULL;

    if (n > MOE_TEMPLATE_MAX_MEMORY / size || n * size > MOE_TEMPLATE_MAX_MEMORY - r->memory) {
        moe_template_value_limit(r, "the template takes too much memory");
        return NULL;
    }
    if ((p = moe_arena_get(&r->arena, n * size + (n == 0))) == NULL) {
        failed(r, moe_err_set(r->e, MOE_ENOMEM, "%s: out of memory", r->name));
        return NULL;
    }
    r->memory += n * size;
    return p;
}

/* ---- Scalars and strings --------------------------------------------------------- */

struct moe_tval
moe_template_value_bool(bool b)
{
    return (struct moe_tval){ .kind = MOE_T_BOOL, .u.b = b };
}

struct moe_tval
moe_template_value_int(int64_t i)
{
    return (struct moe_tval){ .kind = MOE_T_INT, .u.i = i };
}

struct moe_tval
moe_template_value_float(double f)
{
    return (struct moe_tval){ .kind = MOE_T_FLOAT, .u.f = f };
}

struct moe_tval
moe_template_value_none(void)
{
    return (struct moe_tval){ .kind = MOE_T_NONE };
}

static int
new_str(struct moe_trun *r, const char *p, size_t n, struct moe_tval *out)
{
    struct moe_tstr *s = moe_template_value_alloc(r, 1, sizeof(*s));

    if (s == NULL)
        return MOE_T_FAILED;
    *s = (struct moe_tstr){ .p = n == 0 ? "" : p, .n = n, .chars = n < 2 ? n : SIZE_MAX };
    *out = (struct moe_tval){ .kind = MOE_T_STR, .u.s = s };
    return 0;
}

int
moe_template_value_str(struct moe_trun *r, const char *p, size_t n, bool outside,
    struct moe_tval *out)
{
    struct moe_span *span;
    int rc = new_str(r, p, n, out);

    if (rc != 0 || !outside || n == 0)
        return rc;
    if ((span = moe_template_value_alloc(r, 1, sizeof(*span))) == NULL)
        return MOE_T_FAILED;
    *span = (struct moe_span){ 0, n };
    out->u.s->span = span;
    out->u.s->n_span = 1;
    return 0;
}

int
moe_template_value_sub(struct moe_trun *r, const struct moe_tstr *s, size_t from, size_t to,
    struct moe_tval *out)
{
    struct moe_span *span;
    size_t n = 0;
    int rc = new_str(r, s->p + from, to - from, out);

    if (rc != 0 || s->n_span == 0)
        return rc;
    if ((span = moe_template_value_alloc(r, s->n_span, sizeof(*span))) == NULL)
        return MOE_T_FAILED;
    for (size_t i = 0; i < s->n_span; i++) {
        size_t a = s->span[i].from < from ? from : s->span[i].from;
        size_t b = s->span[i].to > to ? to : s->span[i].to;

        if (a < b)
            span[n++] = (struct moe_span){ a - from, b - from };
    }
    out->u.s->span = span;
    out->u.s->n_span = n;
    return 0;
}

int
moe_template_value_undefined(struct moe_trun *r, struct moe_tval *out, const char *fmt, ...)
{
    char text[256];
    struct moe_tval why = { 0 };
    va_list ap;
    char *p;
    int n, rc;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    n = n < 0 ? 0 : n < (int)sizeof(text) ? n : (int)sizeof(text) - 1;
    if ((p = moe_template_value_alloc(r, (size_t)n + 1, 1)) == NULL)
        return MOE_T_FAILED;
    memcpy(p, text, (size_t)n);
    p[n] = '\0';
    if ((rc = new_str(r, p, (size_t)n, &why)) == 0)
        *out = (struct moe_tval){ .kind = MOE_T_UNDEFINED, .u.why = why.u.s };
    return rc;
}

bool
moe_template_value_outside(const struct moe_tstr *s)
{
    return s->n_span > 0;
}

size_t
moe_template_value_chars(struct moe_tstr *s)
{
    if (s->chars == SIZE_MAX) {
        s->chars = 0;
        for (size_t i = 0; i < s->n; i++)
            s->chars += ((unsigned char)s->p[i] & 0xc0) != 0x80;
    }
    return s->chars;
}

size_t
moe_template_value_offset(struct moe_tstr *s, size_t i)
{
    size_t at = 0;

    if (moe_template_value_chars(s) == s->n)
        return i;
    if (i == s->chars)
        return s->n;
    for (; i > 0; i--)
        at += moe_utf8_len(s->p + at, s->n - at);
    return at;
}

/* ---- Lists ----------------------------------------------------------------------- */

int
moe_template_value_list(struct moe_trun *r, enum moe_tkind kind, size_t cap,
    struct moe_tval *out)
{
    struct moe_tlist *l = moe_template_value_alloc(r, 1, sizeof(*l));

    if (l == NULL)
        return MOE_T_FAILED;
    *l = (struct moe_tlist){ NULL, 0, cap };
    if (cap > 0 && (l->v = moe_template_value_alloc(r, cap, sizeof(*l->v))) == NULL)
        return MOE_T_FAILED;
    *out = (struct moe_tval){ .kind = kind, .u.l = l };
    return 0;
}

int
moe_template_value_push(struct moe_trun *r, struct moe_tlist *l, struct moe_tval v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap < 8 ? 8 : 2 * l->cap;
        struct moe_tval *p = moe_template_value_alloc(r, cap, sizeof(*p));

        if (p == NULL)
            return MOE_T_FAILED;
        if (l->n > 0)
            memcpy(p, l->v, l->n * sizeof(*p));
        l->v = p;
        l->cap = cap;
    }
    l->v[l->n++] = v;
    return moe_template_value_step(r, 1);
}

/* ---- From JSON ------------------------------------------------------------------- */

static int
import_object(struct moe_trun *r, const json_t *j, bool outside, struct moe_tval *out)
{
    void *it;
    int rc = moe_template_dict_new(r, out);

    for (it = json_object_iter((json_t *)(uintptr_t)j); rc == 0 && it != NULL;
         it = json_object_iter_next((json_t *)(uintptr_t)j, it)) {
        const char *key = json_object_iter_key(it);
        struct moe_tval k, v;

        rc = moe_template_value_str(r, key, strlen(key), outside, &k);
        if (rc == 0)
            rc = moe_template_value_import(r, json_object_iter_value(it), outside, &v);
        if (rc == 0)
            rc = moe_template_dict_set(r, out->u.d, k, v);
    }
    return rc;
}

static int
import_array(struct moe_trun *r, const json_t *j, bool outside, struct moe_tval *out)
{
    int rc = moe_template_value_list(r, MOE_T_LIST, json_array_size(j), out);

    for (size_t i = 0; rc == 0 && i < json_array_size(j); i++) {
        struct moe_tval v;

        rc = moe_template_value_import(r, json_array_get(j, i), outside, &v);
        if (rc == 0)
            rc = moe_template_value_push(r, out->u.l, v);
    }
    return rc;
}

int
moe_template_value_import(struct moe_trun *r, const json_t *j, bool outside,
    struct moe_tval *out)
{
    int rc = moe_template_value_deeper(r);

    if (rc != 0)
        return rc;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        rc = import_object(r, j, outside, out);
        break;
    case JSON_ARRAY:
        rc = import_array(r, j, outside, out);
        break;
    case JSON_STRING:
        rc = moe_template_value_str(r, json_string_value(j), json_string_length(j), outside, out);
        break;
    case JSON_INTEGER:
        *out = moe_template_value_int(json_integer_value(j));
        break;
    case JSON_REAL:
        *out = moe_template_value_float(json_real_value(j));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = moe_template_value_bool(json_is_true(j));
        break;
    default:
        *out = moe_template_value_none();
        break;
    }
    r->depth--;
    return rc;
}

/* ---- Text ------------------------------------------------------------------------ */

void
moe_template_value_begin(struct moe_trun *r, struct moe_tbuf *b)
{
    *b = (struct moe_tbuf){ .r = r };
}

static int
add_span(struct moe_tbuf *b, size_t from, size_t to)
{
    if (b->n_span > 0 && b->span[b->n_span - 1].to == from) {
        b->span[b->n_span - 1].to = to;
        return 0;
    }
    if (b->n_span == b->cap_span) {
        size_t cap = b->cap_span < 8 ? 8 : 2 * b->cap_span;
        struct moe_span *p = moe_template_value_alloc(b->r, cap, sizeof(*p));

        if (p == NULL)
            return MOE_T_FAILED;
        if (b->n_span > 0)
            memcpy(p, b->span, b->n_span * sizeof(*p));
        b->span = p;
        b->cap_span = cap;
    }
    b->span[b->n_span++] = (struct moe_span){ from, to };
    return 0;
}

static int
add_bytes(struct moe_tbuf *b, const char *p, size_t n)
{
    if (n > MOE_CHAT_MAX_OUTPUT - b->n)
        return moe_template_value_limit(b->r, "a text grows too long");
    if (n > b->cap - b->n) {
        size_t cap = b->cap < 64 ? 64 : b->cap;
        char *q;

        while (cap < b->n + n)
            cap *= 2;
        if ((q = moe_template_value_alloc(b->r, cap, 1)) == NULL)
            return MOE_T_FAILED;
        if (b->n > 0)
            memcpy(q, b->p, b->n);
        b->p = q;
        b->cap = cap;
    }
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return moe_template_value_step(b->r, n / 64);
}

int
moe_template_value_add(struct moe_tbuf *b, const char *p, size_t n, bool outside)
{
    int rc = add_bytes(b, p, n);

    return rc != 0 || !outside || n == 0 ? rc : add_span(b, b->n - n, b->n);
}

int
moe_template_value_add_str(struct moe_tbuf *b, const struct moe_tstr *s)
{
    size_t at = b->n;
    int rc = add_bytes(b, s->p, s->n);

    for (size_t i = 0; rc == 0 && i < s->n_span; i++)
        rc = add_span(b, at + s->span[i].from, at + s->span[i].to);
    return rc;
}

int
moe_template_value_done(struct moe_tbuf *b, struct moe_tval *out)
{
    int rc = new_str(b->r, b->p, b->n, out);

    if (rc == 0) {
        out->u.s->span = b->span;
        out->u.s->n_span = b->n_span;
    }
    return rc;
}

/* ---- Asking ---------------------------------------------------------------------- */

bool
moe_template_value_truth(const struct moe_tval *v)
{
    switch (v->kind) {
    case MOE_T_MISSING:
    case MOE_T_UNDEFINED:
    case MOE_T_NONE:
        return false;
    case MOE_T_BOOL:
        return v->u.b;
    case MOE_T_INT:
        return v->u.i != 0;
    case MOE_T_FLOAT:
        return v->u.f != 0;
    case MOE_T_STR:
        return v->u.s->n > 0;
    case MOE_T_LIST:
    case MOE_T_TUPLE:
        return v->u.l->n > 0;
    case MOE_T_DICT:
        return v->u.d->n > 0;
    case MOE_T_RANGE:
        return v->u.r->n > 0;
    case MOE_T_VIEW:
        return v->u.view->d->n > 0;
    default:
        return true;
    }
}

bool
moe_template_value_is_number(const struct moe_tval *v)
{
    return v->kind == MOE_T_BOOL || v->kind == MOE_T_INT || v->kind == MOE_T_BIG ||
        v->kind == MOE_T_FLOAT;
}

bool
moe_template_value_is_text(const struct moe_tval *v, const char *text)
{
    size_t n = strlen(text);

    return v->kind == MOE_T_STR && v->u.s->n == n && memcmp(v->u.s->p, text, n) == 0;
}

const char *
moe_template_value_type(const struct moe_tval *v)
{
    static const char *const names[] = {
        [MOE_T_MISSING] = "Undefined", [MOE_T_UNDEFINED] = "Undefined", [MOE_T_NONE] = "NoneType",
        [MOE_T_BOOL] = "bool", [MOE_T_INT] = "int", [MOE_T_BIG] = "int", [MOE_T_FLOAT] = "float",
        [MOE_T_STR] = "str", [MOE_T_LIST] = "list", [MOE_T_TUPLE] = "tuple",
        [MOE_T_DICT] = "dict", [MOE_T_RANGE] = "range", [MOE_T_VIEW] = "dict_view",
        [MOE_T_GENERATOR] = "generator", [MOE_T_NAMESPACE] = "Namespace", [MOE_T_MACRO] = "Macro",
        [MOE_T_METHOD] = "builtin_function_or_method", [MOE_T_FUNCTION] = "function",
        [MOE_T_LOOP] = "LoopContext", [MOE_T_CYCLER] = "Cycler", [MOE_T_JOINER] = "Joiner",
    };

    return names[v->kind];
}
