/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a chat template while it is rendered, with Python's meaning.
 * Everything belongs to one rendering (struct moe_trun) and is freed with it;
 * values are immutable but for namespaces, cyclers, joiners and generators.
 * Functions return 0 or something negative after setting the run's error; the
 * code of a failure is the run's rc.
 */
#ifndef MOE_ENGINE_TEMPLATE_VALUE_H
#define MOE_ENGINE_TEMPLATE_VALUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/engine/span.h"

/* All that one rendering may allocate. */
#define MOE_TEMPLATE_MAX_MEMORY ((size_t)512 << 20)
/* Depth of values inside values, and of expressions and statements. */
#define MOE_TEMPLATE_MAX_NESTING 400

enum moe_tkind {
    MOE_T_MISSING,      /* no value: an argument that was not given */
    MOE_T_UNDEFINED, MOE_T_NONE, MOE_T_BOOL, MOE_T_INT, MOE_T_BIG, MOE_T_FLOAT, MOE_T_STR,
    MOE_T_LIST, MOE_T_TUPLE, MOE_T_DICT, MOE_T_RANGE, MOE_T_VIEW, MOE_T_GENERATOR,
    MOE_T_NAMESPACE, MOE_T_MACRO, MOE_T_METHOD, MOE_T_FUNCTION, MOE_T_LOOP, MOE_T_CYCLER,
    MOE_T_JOINER
};

struct moe_tstr {
    const char *p;              /* UTF-8, not ended by a NUL */
    size_t n, chars;            /* bytes; characters, or SIZE_MAX before they are counted */
    const struct moe_span *span;    /* what came from outside the template */
    size_t n_span;
};

struct moe_tval {
    enum moe_tkind kind;
    union {
        bool b;
        int64_t i;
        double f;
        struct moe_tstr *s;         /* MOE_T_STR */
        const char *big;            /* MOE_T_BIG: decimal digits, perhaps a minus */
        struct moe_tlist *l;        /* MOE_T_LIST, MOE_T_TUPLE */
        struct moe_tdict *d;        /* MOE_T_DICT, MOE_T_NAMESPACE */
        struct moe_trange *r;
        struct moe_tview *view;
        struct moe_tgen *gen;
        struct moe_tmacro *macro;
        struct moe_tmethod *method;
        const struct moe_tfunction *fn;
        struct moe_tloop *loop;
        struct moe_tcycler *cycler;
        struct moe_tstr *why;       /* MOE_T_UNDEFINED: what using it says */
    } u;
};

struct moe_tlist { struct moe_tval *v; size_t n, cap; };

struct moe_tdict {
    struct moe_tval *k, *v;     /* in order of insertion */
    size_t n, cap;
    uint32_t *slot;             /* hash table of places, or NULL while small */
    size_t n_slots;
};

struct moe_trange { int64_t start, stop, step; size_t n; };
struct moe_tview { const struct moe_tdict *d; const char *what; };  /* "keys", "values", "items" */
struct moe_tgen { struct moe_tlist *l; bool used; };                /* yields its items once */
struct moe_tcycler { struct moe_tlist *l; size_t at; struct moe_tstr *sep; };   /* or joiner */

/* Returned where only the run's rc knows why. */
enum { MOE_T_FAILED = MOE_ENOMEM };

/* One rendering. */
struct moe_trun {
    struct moe_arena arena;
    size_t memory;              /* taken from it */
    uint64_t steps;
    int depth, calls;           /* of nesting, of macros within macros */
    long long now;
    const char *name;           /* for messages */
    int line;
    struct moe_err *e;
    int rc;                     /* first failure */
    struct moe_tval vars;       /* a dict */
    const void *chat;           /* the template: blocks by name */
};

/* Text under construction, in the run's memory. */
struct moe_tbuf {
    struct moe_trun *r;
    char *p;
    size_t n, cap;
    struct moe_span *span;
    size_t n_span, cap_span;
};

/* ---- The run ---- */

/* "name:line: text" with MOE_EFORMAT; every failure of a rendering goes through these. */
int moe_template_value_fail(struct moe_trun *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int moe_template_value_limit(struct moe_trun *r, const char *what);

/* Count work. */
int moe_template_value_step(struct moe_trun *r, size_t n);

/* Go one level deeper; the caller comes back up with r->depth--. */
int moe_template_value_deeper(struct moe_trun *r);

void *moe_template_value_alloc(struct moe_trun *r, size_t n, size_t size);

/* ---- Making values ---- */

struct moe_tval moe_template_value_bool(bool b);
struct moe_tval moe_template_value_int(int64_t i);
struct moe_tval moe_template_value_float(double f);
struct moe_tval moe_template_value_none(void);

/* A string of n bytes, borrowed for the run; outside: it came from outside the template. */
int moe_template_value_str(struct moe_trun *r, const char *p, size_t n, bool outside,
    struct moe_tval *out);

/* Bytes [from, to) of s. */
int moe_template_value_sub(struct moe_trun *r, const struct moe_tstr *s, size_t from, size_t to,
    struct moe_tval *out);

/* An undefined value; using it fails with the text. */
int moe_template_value_undefined(struct moe_trun *r, struct moe_tval *out, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether any part of s came from outside. */
bool moe_template_value_outside(const struct moe_tstr *s);

int moe_template_value_list(struct moe_trun *r, enum moe_tkind kind, size_t cap,
    struct moe_tval *out);
int moe_template_value_push(struct moe_trun *r, struct moe_tlist *l, struct moe_tval v);

int moe_template_value_import(struct moe_trun *r, const json_t *j, bool outside,
    struct moe_tval *out);

/* ---- Text ---- */

void moe_template_value_begin(struct moe_trun *r, struct moe_tbuf *b);
int moe_template_value_add(struct moe_tbuf *b, const char *p, size_t n, bool outside);
int moe_template_value_add_str(struct moe_tbuf *b, const struct moe_tstr *s);
int moe_template_value_done(struct moe_tbuf *b, struct moe_tval *out);

/* Characters of s, and the byte where character i begins (i <= chars). */
size_t moe_template_value_chars(struct moe_tstr *s);
size_t moe_template_value_offset(struct moe_tstr *s, size_t i);

/* ---- Asking ---- */

bool moe_template_value_truth(const struct moe_tval *v);
bool moe_template_value_is_number(const struct moe_tval *v);    /* bool too */
bool moe_template_value_is_text(const struct moe_tval *v, const char *text);

/* Python's name of the type: "int", "dict", "NoneType". */
const char *moe_template_value_type(const struct moe_tval *v);

#endif
