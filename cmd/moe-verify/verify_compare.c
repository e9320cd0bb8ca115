/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify compare`: lists that several nodes made of the same model,
 * and which node has something else. Reads no weights.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-verify/verify_compare.h"
#include "cmd/moe-verify/verify_list.h"
#include "common/base/jsonw.h"
#include "common/base/tool.h"

#define SHOWN 10        /* parts of a node that are named */

enum { JSON = 1, QUIET };

static const struct moe_opt rows[] = {
    { JSON, 0, "json", MOE_OPT_NONE, NULL, "print JSON Lines", NULL, false, false },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no line for nodes that agree", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[-q] [--json] [NODE=]LIST [NODE=]LIST ...", NULL };

const struct moe_opt_cmd verify_compare_cmd = {
    "moe-verify compare", usage, "Find the node whose weights are not those of the others.", rows,
    NULL
};

enum verdict { SAME, CONTAINER, DIFFERS, UNDECIDED };

static const char *const words[] = { "same", "same weights, different container", "differs",
    "undecided" };

struct args { bool json, quiet; };

struct node {
    const char *name;
    size_t name_len;
    struct verify_list v;               /* lines in order of part */
    unsigned char weights[MOE_DIGEST_LEN], container[MOE_DIGEST_LEN];
    size_t alike;                       /* nodes with these weights */
    size_t delta;                       /* parts that are not as the reference has them */
    enum verdict verdict;
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    (void)arg;
    (void)e;
    if (id == JSON)
        a->json = true;
    else
        a->quiet = true;
    return 0;
}

/* What a line is about: its tensor, wherever it lies, or its file. */
static const char *
part(const struct moe_sumlist_line *l)
{
    return l->tensor != NULL ? l->tensor : l->name;
}

static int
by_part(const void *x, const void *y)
{
    const struct moe_sumlist_line *a = x, *b = y;
    int c = strcmp(part(a), part(b));

    return c != 0 ? c : memcmp(a->sum, b->sum, sizeof(a->sum));
}

static bool
same_part(const struct moe_sumlist_line *a, const struct moe_sumlist_line *b)
{
    return memcmp(a->sum, b->sum, sizeof(a->sum)) == 0 && (a->tensor == NULL ||
        (strcmp(a->type, b->type) == 0 && strcmp(a->shape, b->shape) == 0));
}

/* One digest of the weights, one of where they lie. */
static int
weigh(struct node *n, struct moe_err *e)
{
    struct moe_digest w = MOE_DIGEST_INIT, c = MOE_DIGEST_INIT;
    int rc = moe_digest_begin(&w, e);

    if (rc == 0)
        rc = moe_digest_begin(&c, e);
    for (size_t i = 0; i < n->v.n && rc == 0; i++) {
        const struct moe_sumlist_line *l = &n->v.l[i];
        moe_digest_add(&w, part(l), strlen(part(l)) + 1);
        moe_digest_add(&w, l->sum, sizeof(l->sum));
        moe_digest_add(&c, l->name, strlen(l->name) + 1);
        if (l->tensor != NULL) {
            moe_digest_add(&w, l->type, strlen(l->type) + 1);
            moe_digest_add(&w, l->shape, strlen(l->shape) + 1);
        }
    }
    if (rc == 0 && (rc = moe_digest_end(&w, n->weights, e)) == 0)
        rc = moe_digest_end(&c, n->container, e);
    moe_digest_fini(&w);
    moe_digest_fini(&c);
    return rc;
}

/*
 * Lists may have lines of files beside lines of tensors: files are then the
 * container, and only tensors are parts.
 */
static int
load(struct node *n, const char *operand, struct moe_err *e)
{
    const char *eq = strchr(operand, '='), *path = eq != NULL ? eq + 1 : operand;
    size_t k = 0;
    int rc = verify_list_read(&n->v, path, false, e);

    n->name = operand;
    n->name_len = eq != NULL ? (size_t)(eq - operand) : strlen(operand);
    if (rc == 0 && n->v.bad > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %zu lines are none of a list", path, n->v.bad);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n->v.n; i++)
        if (n->v.l[i].tensor != NULL)
            n->v.l[k++] = n->v.l[i];
    if (k > 0)
        n->v.n = k;
    qsort(n->v.l, n->v.n, sizeof(*n->v.l), by_part);
    for (size_t i = 1; i < n->v.n; i++)
        if (strcmp(part(&n->v.l[i]), part(&n->v.l[i - 1])) == 0)
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: is listed twice", path,
                part(&n->v.l[i]));
    return weigh(n, e);
}

/* ---- Telling ------------------------------------------------------------------------- */

/* Walk two lists; name what node has otherwise, at most SHOWN, when b is not NULL. */
static size_t
differences(const struct node *ref, const struct node *n, struct moe_buf *b)
{
    size_t i = 0, j = 0, count = 0;

    while (i < ref->v.n || j < n->v.n) {
        const struct moe_sumlist_line *x = &ref->v.l[i], *y = &n->v.l[j];
        int c = i == ref->v.n ? 1 : j == n->v.n ? -1 : strcmp(part(x), part(y));
        const char *what = c < 0 ? "missing" : c > 0 ? "extra" :
            same_part(x, y) ? NULL : "differs";
        const char *name = c > 0 ? part(y) : part(x);
        if (what != NULL && count++ < SHOWN && b != NULL) {
            moe_buf_show(b, n->name, n->name_len);
            moe_buf_str(b, ": ");
            moe_buf_show(b, name, strlen(name));
            moe_buf_fmt(b, ": %s\n", what);
        }
        i += c <= 0;
        j += c >= 0;
    }
    return count;
}

/* The node that most agree with, or the first when there is no majority. */
static const struct node *
judge(struct node *nodes, size_t n)
{
    const struct node *ref = nodes;
    bool majority;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            nodes[i].alike += memcmp(nodes[i].weights, nodes[j].weights,
                sizeof(nodes[i].weights)) == 0;
        if (nodes[i].alike > ref->alike)
            ref = &nodes[i];
    }
    majority = ref->alike > n - ref->alike;
    for (size_t i = 0; i < n; i++) {
        struct node *x = &nodes[i];
        x->delta = differences(ref, x, NULL);
        if (!majority)
            x->verdict = UNDECIDED;
        else if (x->delta > 0)
            x->verdict = DIFFERS;
        else if (memcmp(x->container, ref->container, sizeof(x->container)) != 0)
            x->verdict = CONTAINER;
    }
    return ref;
}

static void
json_line(struct moe_buf *b, const struct node *n)
{
    struct moe_jsonw w = { b, false };
    char hex[MOE_DIGEST_HEX];

    moe_jsonw_open(&w, '{');
    moe_jsonw_key(&w, "node");
    moe_jsonw_str(&w, n->name, n->name_len);
    moe_jsonw_key(&w, "weights");
    moe_jsonw_str(&w, moe_digest_hex(n->weights, hex), MOE_DIGEST_HEX - 1);
    moe_jsonw_key(&w, "parts");
    moe_jsonw_uint(&w, n->v.n);
    moe_jsonw_key(&w, "delta");
    moe_jsonw_uint(&w, n->delta);
    moe_jsonw_key(&w, "verdict");
    moe_jsonw_str(&w, words[n->verdict], strlen(words[n->verdict]));
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
}

static int
print(const struct args *a, const struct node *nodes, size_t n, const struct node *ref,
    struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    char hex[MOE_DIGEST_HEX];
    bool no = false;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        const struct node *x = &nodes[i];
        no = no || x->verdict >= DIFFERS;
        if (a->quiet && x->verdict == SAME)
            continue;
        if (a->json) {
            json_line(&b, x);
            continue;
        }
        moe_buf_show(&b, x->name, x->name_len);
        moe_buf_fmt(&b, "\t%.12s\t%zu\t%s\n", moe_digest_hex(x->weights, hex), x->delta,
            words[x->verdict]);
    }
    for (size_t i = 0; i < n && !a->json; i++)
        if (nodes[i].verdict >= DIFFERS)
            (void)differences(ref, &nodes[i], &b);
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    else if (b.len > 0 && fwrite(b.p, 1, b.len, stdout) != b.len)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    moe_buf_fini(&b);
    return rc != 0 ? rc : no ? MOE_EXIT_NO : MOE_EXIT_YES;
}

int
verify_compare(int argc, char **argv, struct moe_err *e)
{
    struct args a = { false, false };
    struct node *nodes;
    bool helped = false;
    size_t n;
    int first, rc = moe_opt_parse(&verify_compare_cmd, argc, argv, option, &a, &first, &helped,
        e);

    if (rc != 0 || helped)
        return rc;
    n = (size_t)(argc - first);
    if (n < 2)
        return moe_err_set(e, MOE_EUSAGE, "two lists or more are compared");
    if ((nodes = calloc(n, sizeof(*nodes))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        nodes[i].v = (struct verify_list)VERIFY_LIST_INIT;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = load(&nodes[i], argv[first + (int)i], e);
        if (rc == 0 && (nodes[i].v.l[0].tensor == NULL) != (nodes[0].v.l[0].tensor == NULL))
            rc = moe_err_set(e, MOE_EFORMAT, "%s: lists files, others list tensors or reverse",
                argv[first + (int)i]);
    }
    if (rc == 0)
        rc = print(&a, nodes, n, judge(nodes, n), e);
    for (size_t i = 0; i < n; i++)
        verify_list_fini(&nodes[i].v);
    free(nodes);
    return rc;
}
