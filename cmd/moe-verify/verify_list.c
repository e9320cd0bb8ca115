/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns reading a list and saying what is wrong with its lines.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-verify/verify_list.h"
#include "common/base/read.h"
#include "common/base/tool.h"

static int
no_memory(const char *path, struct moe_err *e)
{
    return moe_err_set(e, MOE_ENOMEM, "%s: out of memory", path);
}

static const char *
copy(struct verify_list *v, const char *text)
{
    return moe_arena_text(&v->text, text, strlen(text));
}

static int
keep(struct verify_list *v, const struct moe_sumlist_line *line, const char *path,
    struct moe_err *e)
{
    struct moe_sumlist_line l = *line;

    if (v->n == v->cap) {
        size_t cap = v->cap > 0 ? 2 * v->cap : 64;
        struct moe_sumlist_line *more = reallocarray(v->l, cap, sizeof(*more));
        if (more == NULL)
            return no_memory(path, e);
        v->l = more;
        v->cap = cap;
    }
    if ((l.name = copy(v, l.name)) == NULL)
        return no_memory(path, e);
    if (l.tensor != NULL && ((l.tensor = copy(v, l.tensor)) == NULL ||
        (l.type = copy(v, l.type)) == NULL || (l.shape = copy(v, l.shape)) == NULL))
        return no_memory(path, e);
    v->l[v->n++] = l;
    return 0;
}

int
verify_list_read(struct verify_list *v, const char *path, bool zero, struct moe_err *e)
{
    struct moe_buf text = MOE_BUF_INIT;
    struct moe_sumlist_line l;
    struct moe_sumlist s;
    int rc = moe_read_file(path, MOE_SUMLIST_MAX, &text, e);

    if (rc != 0)
        goto out;
    moe_sumlist_open(&s, text.p, text.len, zero);
    while ((rc = moe_sumlist_next(&s, &l, e)) != 0) {
        if (rc == 1) {
            if ((rc = keep(v, &l, path, e)) != 0)
                break;
        } else if (rc != MOE_EFORMAT) {
            break;
        } else if (v->bad++ < VERIFY_LIST_SHOWN) {
            moe_tool_warn("%s: line %zu: %s", path, l.number, e->text);
        }
    }
    moe_sumlist_close(&s);
    if (v->bad > VERIFY_LIST_SHOWN)
        moe_tool_warn("%s: %zu lines more that are none of a list", path,
            v->bad - VERIFY_LIST_SHOWN);
    if (rc == 0 && v->n == 0 && v->bad == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no line to check", path);
out:
    moe_buf_fini(&text);
    return rc;
}

void
verify_list_fini(struct verify_list *v)
{
    free(v->l);
    moe_arena_fini(&v->text);
    *v = (struct verify_list)VERIFY_LIST_INIT;
}
