/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns parsing of statements: one function a tag, found by its name in a table.
 * Templates stand alone: include, import and extends are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/chat.h"
#include "common/engine/template_node.h"

static struct moe_tnode *statements(struct moe_tparser *ps, const char *const *ends);

/* ---- Help ------------------------------------------------------------------------ */

static bool
block_end(struct moe_tparser *ps)
{
    return moe_template_expr_expect(ps, MOE_TT_BLOCK_END, NULL);
}

static bool
skip_name(struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_skip(ps, MOE_TT_NAME, text);
}

static bool
skip_op(struct moe_tparser *ps, const char *text)
{
    return moe_template_expr_skip(ps, MOE_TT_OP, text);
}

/* What was parsed must not hold an unknown filter or test, unless an if may pass it by. */
static struct moe_tnode *
known(struct moe_tparser *ps, struct moe_tnode *n)
{
    const struct moe_tnode *u = ps->unknown;

    ps->unknown = NULL;
    if (n == NULL || u == NULL || ps->soft)
        return n;
    ps->r->line = u->line;
    (void)moe_template_value_fail(ps->r, "No %s named '%s'.",
        u->type == MOE_N_TEST ? "test" : "filter", u->name);
    return NULL;
}

/* One of the NULL-ended names stands at the current token. */
static bool
at_one_of(const struct moe_tparser *ps, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++)
        if (moe_template_expr_is(ps, MOE_TT_NAME, *names))
            return true;
    return false;
}

/* What a body changes about the parser, to be put back after it. */
struct outer { bool soft; int loops; struct moe_tnode *macro; };

/*
 * Statements in a scope of their own up to one of the end tags, whose name is
 * the current token after. loops: what break and continue may leave (-1: as
 * before); macro: that the body belongs to, or NULL.
 */
static bool
scoped(struct moe_tparser *ps, const char *const *ends, int loops, struct moe_tnode *macro,
    struct moe_tnode **body)
{
    struct outer was = { ps->soft, ps->loops, ps->macro };

    ps->soft = false;
    if (loops >= 0)
        ps->loops = loops;
    if (macro != NULL)
        ps->macro = macro;
    *body = statements(ps, ends);
    ps->soft = was.soft;
    ps->loops = was.loops;
    ps->macro = was.macro;
    return ps->r->rc == 0;
}

/* The body up to one end tag, and past its name. */
static bool
body_to(struct moe_tparser *ps, const char *end, int loops, struct moe_tnode *macro,
    struct moe_tnode **body)
{
    const char *const ends[] = { end, NULL };

    if (!block_end(ps) || !scoped(ps, ends, loops, macro, body))
        return false;
    ps->tok++;
    return true;
}

/* ---- Tags ------------------------------------------------------------------------ */

static bool
parse_for(struct moe_tparser *ps, struct moe_tnode *n)
{
    static const char *const ends[] = { "endfor", "else", NULL };
    static const char *const last[] = { "endfor", NULL };

    n->type = MOE_N_FOR;
    if ((n->a = moe_template_expr_target(ps, true, false, "in")) == NULL ||
        !moe_template_expr_expect(ps, MOE_TT_NAME, "in") ||
        (n->b = known(ps, moe_template_expr_tuple(ps, false, "recursive"))) == NULL ||
        (skip_name(ps, "if") && (n->c = known(ps, moe_template_expr(ps, true))) == NULL))
        return false;
    n->flag = skip_name(ps, "recursive");
    if (!block_end(ps) || !scoped(ps, ends, ps->loops + 1, NULL, &n->body))
        return false;
    if (skip_name(ps, "endfor"))
        return true;
    ps->tok++;
    if (!block_end(ps) || !scoped(ps, last, -1, NULL, &n->other))
        return false;
    ps->tok++;
    return true;
}

/* Everything below an if may be passed by. */
static bool
parse_if(struct moe_tparser *ps, struct moe_tnode *n)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    static const char *const last[] = { "endif", NULL };
    bool was = ps->soft, ok = false;

    ps->soft = true;
    for (;;) {
        n->type = MOE_N_IF;
        if ((n->a = known(ps, moe_template_expr_tuple(ps, false, NULL))) == NULL || !block_end(ps))
            break;
        n->body = statements(ps, ends);
        if (ps->r->rc != 0)
            break;
        if (skip_name(ps, "elif")) {
            if ((n->other = moe_template_expr_node(ps, MOE_N_IF)) == NULL)
                break;
            n = n->other;
            continue;
        }
        if (skip_name(ps, "else")) {
            if (!block_end(ps))
                break;
            n->other = statements(ps, last);
            if (ps->r->rc != 0)
                break;
        }
        ps->tok++;
        ok = true;
        break;
    }
    ps->soft = was;
    return ok;
}

static bool
parse_set(struct moe_tparser *ps, struct moe_tnode *n)
{
    struct moe_tnode *in;

    if ((n->a = moe_template_expr_target(ps, true, true, NULL)) == NULL)
        return false;
    if (skip_op(ps, "=")) {
        n->type = MOE_N_SET;
        return (n->b = known(ps, moe_template_expr_tuple(ps, true, NULL))) != NULL;
    }
    n->type = MOE_N_SET_BLOCK;
    if (moe_template_expr_is(ps, MOE_TT_OP, "|")) {
        if ((in = moe_template_expr_node(ps, MOE_N_INPUT)) == NULL ||
            (n->b = known(ps, moe_template_primary_filters(ps, in, false))) == NULL)
            return false;
    }
    return body_to(ps, "endset", -1, NULL, &n->body);
}

static bool
parse_with(struct moe_tparser *ps, struct moe_tnode *n)
{
    struct moe_tnode **tail = &n->list;

    n->type = MOE_N_WITH;
    while (!moe_template_expr_is(ps, MOE_TT_BLOCK_END, NULL)) {
        if (n->list != NULL && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return false;
        if ((*tail = moe_template_expr_node(ps, MOE_N_SET)) == NULL ||
            ((*tail)->a = moe_template_expr_target(ps, true, false, NULL)) == NULL ||
            !moe_template_expr_expect(ps, MOE_TT_OP, "=") ||
            ((*tail)->b = known(ps, moe_template_expr(ps, true))) == NULL)
            return false;
        tail = &(*tail)->next;
    }
    return body_to(ps, "endwith", -1, NULL, &n->body);
}

/* Parameters in brackets: names, the last ones perhaps with a default. */
static bool
signature(struct moe_tparser *ps, struct moe_tnode *n)
{
    struct moe_tnode **tail = &n->list;
    bool defaults = false;

    if (!moe_template_expr_expect(ps, MOE_TT_OP, "("))
        return false;
    while (!moe_template_expr_is(ps, MOE_TT_OP, ")")) {
        if (n->list != NULL && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return false;
        if ((*tail = moe_template_expr_node(ps, MOE_N_NAME)) == NULL ||
            ((*tail)->name = moe_template_expr_name(ps)) == NULL)
            return false;
        if (skip_op(ps, "=")) {
            defaults = true;
            if (((*tail)->a = known(ps, moe_template_expr(ps, true))) == NULL)
                return false;
        } else if (defaults) {
            (void)moe_template_expr_fail(ps, "a parameter without a default after one with");
            return false;
        }
        tail = &(*tail)->next;
    }
    ps->tok++;
    return true;
}

static bool
parse_macro(struct moe_tparser *ps, struct moe_tnode *n)
{
    n->type = MOE_N_MACRO;
    return (n->name = moe_template_expr_name(ps)) != NULL && signature(ps, n) &&
        body_to(ps, "endmacro", 0, n, &n->body);
}

static bool
parse_call(struct moe_tparser *ps, struct moe_tnode *n)
{
    n->type = MOE_N_CALL_BLOCK;
    if ((n->b = moe_template_expr_node(ps, MOE_N_MACRO)) == NULL ||
        (moe_template_expr_is(ps, MOE_TT_OP, "(") && !signature(ps, n->b)) ||
        (n->a = known(ps, moe_template_expr(ps, true))) == NULL)
        return false;
    n->b->name = "caller";
    if (n->a->type != MOE_N_CALL) {
        (void)moe_template_expr_fail(ps, "expected a call");
        return false;
    }
    return body_to(ps, "endcall", 0, n->b, &n->b->body);
}

static bool
parse_filter(struct moe_tparser *ps, struct moe_tnode *n)
{
    struct moe_tnode *in = moe_template_expr_node(ps, MOE_N_INPUT);

    n->type = MOE_N_FILTER_BLOCK;
    return (n->b = known(ps, moe_template_primary_filters(ps, in, true))) != NULL &&
        body_to(ps, "endfilter", -1, NULL, &n->body);
}

static bool
parse_block(struct moe_tparser *ps, struct moe_tnode *n)
{
    n->type = MOE_N_BLOCK;
    n->flag = true;
    if ((n->name = moe_template_expr_name(ps)) == NULL)
        return false;
    for (size_t i = 0; i < ps->n_blocks; i++)
        if (strcmp(ps->blocks[i], n->name) == 0)
            return moe_template_expr_fail(ps, "a block is defined twice") != NULL;
    if (ps->n_blocks == sizeof(ps->blocks) / sizeof(*ps->blocks))
        return moe_template_expr_fail(ps, "too many blocks") != NULL;
    ps->blocks[ps->n_blocks++] = n->name;
    while (skip_name(ps, "scoped"))
        n->flag = false;
    if (!body_to(ps, "endblock", 0, NULL, &n->body))
        return false;
    (void)skip_name(ps, n->name);
    return true;
}

/* {% generation %} only marks what the assistant wrote. */
static bool
parse_generation(struct moe_tparser *ps, struct moe_tnode *n)
{
    n->type = MOE_N_BLOCK;
    return body_to(ps, "endgeneration", 0, NULL, &n->body);
}

static bool
parse_print(struct moe_tparser *ps, struct moe_tnode *n)
{
    struct moe_tnode **tail = &n->body;

    n->type = MOE_N_IF;         /* if true: one print after the other */
    if ((n->a = moe_template_expr_node(ps, MOE_N_CONST)) == NULL)
        return false;
    n->a->value = moe_template_value_bool(true);
    while (!moe_template_expr_is(ps, MOE_TT_BLOCK_END, NULL)) {
        if (n->body != NULL && !moe_template_expr_expect(ps, MOE_TT_OP, ","))
            return false;
        if ((*tail = moe_template_expr_node(ps, MOE_N_PRINT)) == NULL ||
            ((*tail)->a = known(ps, moe_template_expr(ps, true))) == NULL)
            return false;
        tail = &(*tail)->next;
    }
    return true;
}

static bool
parse_jump(struct moe_tparser *ps, struct moe_tnode *n)
{
    n->type = strcmp(n->name, "break") == 0 ? MOE_N_BREAK : MOE_N_CONTINUE;
    return ps->loops > 0 || moe_template_expr_fail(ps, "break or continue outside of a loop");
}

static bool
parse_refused(struct moe_tparser *ps, struct moe_tnode *n)
{
    (void)moe_err_set(ps->r->e, ps->r->rc = MOE_EUNSUP, "%s:%d: the tag %s is not supported",
        ps->r->name, n->line, n->name);
    return false;
}

static const struct {
    const char *name;
    bool (*parse)(struct moe_tparser *ps, struct moe_tnode *n);
} TAGS[] = {
    { "for", parse_for }, { "if", parse_if }, { "set", parse_set }, { "with", parse_with },
    { "macro", parse_macro }, { "call", parse_call }, { "filter", parse_filter },
    { "block", parse_block }, { "generation", parse_generation }, { "print", parse_print },
    { "break", parse_jump }, { "continue", parse_jump }, { "include", parse_refused },
    { "import", parse_refused }, { "from", parse_refused }, { "extends", parse_refused },
    { "autoescape", parse_refused },
};

/* ---- Statements ------------------------------------------------------------------- */

static struct moe_tnode *
tag(struct moe_tparser *ps)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_TEXT);
    bool ok = false;
    size_t i = 0;

    if (n == NULL)
        return NULL;
    n->name = ps->tok->p;
    while (i < sizeof(TAGS) / sizeof(*TAGS) && !moe_template_expr_is(ps, MOE_TT_NAME, TAGS[i].name))
        i++;
    if (i == sizeof(TAGS) / sizeof(*TAGS))
        return moe_template_expr_fail(ps, "unknown tag");
    ps->tok++;
    if (moe_template_value_deeper(ps->r) == 0) {
        ok = TAGS[i].parse(ps, n);
        ps->r->depth--;
    }
    return ok && block_end(ps) ? n : NULL;
}

static struct moe_tnode *
text(struct moe_tparser *ps)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_TEXT);

    if (n == NULL ||
        moe_template_value_str(ps->r, ps->tok->p, ps->tok->n, false, &n->value) != 0)
        return NULL;
    ps->tok++;
    return n;
}

static struct moe_tnode *
print(struct moe_tparser *ps)
{
    struct moe_tnode *n = moe_template_expr_node(ps, MOE_N_PRINT);

    ps->tok++;
    if (n == NULL || (n->a = known(ps, moe_template_expr_tuple(ps, true, NULL))) == NULL ||
        !moe_template_expr_expect(ps, MOE_TT_PRINT_END, NULL))
        return NULL;
    return n;
}

/*
 * Statements up to a tag with one of the names, which is left as the current
 * token, or without names to the end. NULL is also the empty list: r->rc tells.
 */
static struct moe_tnode *
statements(struct moe_tparser *ps, const char *const *ends)
{
    struct moe_tnode *first = NULL, **tail = &first;

    while (ps->tok->type != MOE_TT_END) {
        struct moe_tnode *n;

        if (moe_template_expr_skip(ps, MOE_TT_BLOCK_BEGIN, NULL)) {
            if (at_one_of(ps, ends))
                return first;
            n = tag(ps);
        } else if (ps->tok->type == MOE_TT_DATA && ps->tok->n == 0) {
            ps->tok++;
            continue;
        } else {
            n = ps->tok->type == MOE_TT_DATA ? text(ps) : print(ps);
        }
        if (n == NULL)
            return NULL;
        *tail = n;
        tail = &n->next;
    }
    return ends == NULL ? first : moe_template_expr_fail(ps, "a tag is not closed");
}

void
moe_template_parse_free(struct moe_template *t)
{
    if (t == NULL)
        return;
    moe_arena_fini(&t->run.arena);
    free(t);
}

int
moe_template_parse(const char *src, size_t n, const char *name, struct moe_template **out,
    struct moe_err *e)
{
    struct moe_template *t = calloc(1, sizeof(*t));
    struct moe_tparser *ps = calloc(1, sizeof(*ps));
    struct moe_ttoken *tok;
    int rc;

    *out = NULL;
    if (t == NULL || ps == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    if (n > MOE_CHAT_MAX_SOURCE) {
        rc = moe_err_set(e, MOE_ELIMIT, "%s: more than %zu bytes", name, MOE_CHAT_MAX_SOURCE);
        goto out;
    }
    t->run.e = e;
    if ((t->run.name = moe_arena_text(&t->run.arena, name, strlen(name))) == NULL) {
        rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    if ((rc = moe_template_lex(src, n, name, &t->run.arena, &tok, e)) != 0)
        goto out;
    *ps = (struct moe_tparser){ .t = t, .r = &t->run, .tok = tok };
    t->body = statements(ps, NULL);
    if ((rc = t->run.rc) != 0)
        goto out;
    t->run.e = NULL;
    *out = t;
    t = NULL;
out:
    moe_template_parse_free(t);
    free(ps);
    return rc;
}
