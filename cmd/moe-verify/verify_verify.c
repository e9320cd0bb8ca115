/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify verify`: who signed a bundle, then whether the model is the
 * one in it. Nothing of a payload is read before its signatures are good.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cmd/moe-verify/verify_model.h"
#include "cmd/moe-verify/verify_verify.h"
#include "common/base/num.h"
#include "common/base/read.h"
#include "common/base/tool.h"
#include "common/trust/bundle.h"
#include "common/trust/keyfile.h"

enum { KEY = 1, ROOTS, REQUIRE, AT, IGNORE, QUIET };

#define MAX_KEYS 16
#define MAX_IGNORED 64

static const struct moe_opt rows[] = {
    { KEY, 'k', "key", MOE_OPT_FILE, "[ROLE=]FILE", "a public key that may sign, in PEM", NULL,
        false, true },
    { ROOTS, 0, "roots", MOE_OPT_FILE, "FILE", "certificates that are trusted, in PEM", NULL,
        false, false },
    { REQUIRE, 0, "require", MOE_OPT_WORD, "N", "how many of the keys must have signed (1)", NULL,
        false, false },
    { AT, 0, "at", MOE_OPT_WORD, "TIME", "judge certificates at YYYY-MM-DD[THH:MM:SSZ]; now", NULL,
        false, false },
    { IGNORE, 0, "ignore", MOE_OPT_WORD, "PATH", "a path of the model that need not be signed",
        NULL, false, true },
    { QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "say nothing when it holds", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "--key [ROLE=]FILE [--require N] BUNDLE MODEL",
    "--roots FILE [--at TIME] BUNDLE MODEL", NULL };

const struct moe_opt_cmd verify_verify_cmd = {
    "moe-verify verify", usage, "Tell whether a model is what was signed, and by whom.", rows, NULL
};

struct args {
    const char *key[MAX_KEYS], *ignored[MAX_IGNORED], *roots;
    size_t n_keys, n_ignored;
    int64_t require;
    time_t at;
    bool quiet;
};

static int
time_of(const char *text, time_t *at, struct moe_err *e)
{
    struct tm tm = { 0 };
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

    if (end == NULL) {
        memset(&tm, 0, sizeof(tm));
        end = strptime(text, "%Y-%m-%d", &tm);
    }
    if (end == NULL || *end != '\0')
        return moe_err_set(e, MOE_EUSAGE, "--at: %s: is no time", text);
    *at = timegm(&tm);
    return 0;
}

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    switch (id) {
    case KEY:
        if (a->n_keys == MAX_KEYS)
            return moe_err_set(e, MOE_EUSAGE, "--key: at most %d", MAX_KEYS);
        a->key[a->n_keys++] = arg;
        return 0;
    case IGNORE:
        if (a->n_ignored == MAX_IGNORED || !moe_statement_canonical(arg))
            return moe_err_set(e, MOE_EUSAGE, "--ignore: %s: is no plain path, or one too many",
                arg);
        a->ignored[a->n_ignored++] = arg;
        return 0;
    case ROOTS:
        a->roots = arg;
        return 0;
    case REQUIRE:
        return moe_num_int(arg, 1, MAX_KEYS, "--require", &a->require, e);
    case AT:
        return time_of(arg, &a->at, e);
    default:
        a->quiet = true;
        return 0;
    }
}

/* "ROLE=FILE": the file; its role is of letters, digits and "-". */
static const char *
file_of(const char *arg)
{
    size_t n = strspn(arg, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return n > 0 && arg[n] == '=' ? arg + n + 1 : arg;
}

/* 1: not signed by the key. */
static int
signed_by(const struct moe_keyfile *k, const struct moe_bundle *b, struct moe_err *e)
{
    int rc = 1;

    for (size_t i = 0; i < b->n_sigs && rc == 1; i++)
        rc = moe_keyfile_check(k, b->pae.p, b->pae.len, b->sig[i].p, b->sig[i].len, e);
    return rc;
}

/* How many of the keys, each counted once, have signed; 1 if too few. */
static int
check_keys(const struct args *a, const struct moe_bundle *b, const char *name, struct moe_err *e)
{
    struct moe_keyfile k[MAX_KEYS];
    bool hinted = b->hint[0] == '\0';
    int64_t good = 0;
    int rc = 0;

    for (size_t i = 0; i < MAX_KEYS; i++)
        k[i] = (struct moe_keyfile)MOE_KEYFILE_INIT;
    for (size_t i = 0; i < a->n_keys && rc == 0; i++) {
        if ((rc = moe_keyfile_public(&k[i], file_of(a->key[i]), e)) != 0)
            break;
        for (size_t j = 0; j < i && rc == 0; j++)
            if (strcmp(k[i].hint, k[j].hint) == 0)
                rc = moe_err_set(e, MOE_EUSAGE, "--key: %s: is given twice", a->key[i]);
        hinted = hinted || strcmp(b->hint, k[i].hint) == 0;
        if (rc == 0 && (rc = signed_by(&k[i], b, e)) == 0)
            good++;
        else if (rc == 1) {
            if (a->n_keys > 1 && !a->quiet)
                moe_tool_warn("%s: not signed by %s", name, a->key[i]);
            rc = 0;
        }
    }
    for (size_t i = 0; i < MAX_KEYS; i++)
        moe_keyfile_fini(&k[i]);
    if (rc == 0 && (!hinted || good < a->require)) {
        moe_tool_warn(hinted ? "%s: signed by %jd of the keys, of %jd that must" :
            "%s: is signed with another key", name, (intmax_t)good, (intmax_t)a->require);
        rc = 1;
    }
    return rc;
}

static int
check_chain(const struct args *a, const struct moe_bundle *b, const char *name,
    struct moe_err *e)
{
    struct moe_keyfile k = MOE_KEYFILE_INIT;
    struct moe_keyfile_der der[MOE_BUNDLE_MAX_CERTS];
    int rc;

    for (size_t i = 0; i < b->n_certs; i++)
        der[i] = (struct moe_keyfile_der){ b->cert[i].p, b->cert[i].len };
    rc = moe_keyfile_chain(&k, der, b->n_certs, a->roots, a->at, e);
    if (rc == 1)
        moe_tool_warn("%s: %s", name, e->text);
    else if (rc == 0 && (rc = signed_by(&k, b, e)) == 1)
        moe_tool_warn("%s: is not signed with the key of its certificate", name);
    moe_keyfile_fini(&k);
    return rc;
}

static int
check_signers(const struct args *a, const struct moe_bundle *b, const char *name,
    struct moe_err *e)
{
    if (a->roots != NULL && b->n_certs == 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: holds no certificates", name);
    if (a->roots == NULL && b->n_certs > 0)
        return moe_err_set(e, MOE_EFORMAT, "%s: is signed with certificates: --roots", name);
    return a->roots != NULL ? check_chain(a, b, name, e) : check_keys(a, b, name, e);
}

/* The caller's ignored paths join those that are signed. */
static int
ignore(struct moe_statement *s, const struct args *a, struct moe_err *e)
{
    const char **more = reallocarray(s->ignored, s->n_ignored + a->n_ignored + 1, sizeof(*more));

    if (more == NULL)
        return moe_err_set(e, MOE_ENOMEM, "out of memory");
    s->ignored = more;
    for (size_t i = 0; i < a->n_ignored; i++)
        s->ignored[s->n_ignored++] = a->ignored[i];
    return 0;
}

static int
run(const struct args *a, const char *name, const char *path, struct moe_err *e)
{
    struct moe_bundle b = MOE_BUNDLE_INIT;
    struct moe_statement s = MOE_STATEMENT_INIT;
    struct verify_model m = VERIFY_MODEL_INIT;
    struct moe_buf text = MOE_BUF_INIT;
    struct stat st;
    bool is_file = stat(name, &st) == 0;
    int rc = moe_read_file(name, MOE_BUNDLE_MAX, &text, e);

    if (rc == 0)
        rc = moe_bundle_read(&b, text.p != NULL ? text.p : "", text.len, name, e);
    moe_buf_fini(&text);
    if (rc == 0)
        rc = check_signers(a, &b, name, e);
    if (rc == 0 && (rc = moe_statement_read(&s, b.payload.p, b.payload.len, name, e)) == 0 &&
        (rc = ignore(&s, a, e)) == 0 &&
        (rc = verify_model_open(&m, path, &s, is_file ? &st : NULL, e)) == 0)
        rc = verify_model_compare(&m, &s, e);
    if (rc == 0 && !a->quiet && printf("%zu files as signed\n", m.n) < 0)
        rc = moe_err_set(e, MOE_EIO, "standard output");
    verify_model_close(&m);
    moe_statement_fini(&s);
    moe_bundle_fini(&b);
    return rc;
}

int
verify_verify(int argc, char **argv, struct moe_err *e)
{
    struct args a = { .require = 1, .at = time(NULL) };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_verify_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if ((a.roots != NULL) == (a.n_keys > 0))
        return moe_err_set(e, MOE_EUSAGE, "whose signature: --key or --roots?");
    if (a.require > 1 && (size_t)a.require > a.n_keys)
        return moe_err_set(e, MOE_EUSAGE, "--require: more than there are keys");
    if (argc - first != 2)
        return moe_err_set(e, MOE_EUSAGE, "verify BUNDLE MODEL");
    return run(&a, argv[first], argv[first + 1], e);
}
