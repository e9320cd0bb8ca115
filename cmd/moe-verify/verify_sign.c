/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns `moe-verify sign`: a bundle over all files of a model, or one more
 * signature in a bundle that is there.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-verify/verify_model.h"
#include "cmd/moe-verify/verify_sign.h"
#include "common/base/out.h"
#include "common/base/read.h"
#include "common/base/tool.h"
#include "common/trust/bundle.h"
#include "common/trust/keyfile.h"

enum { KEY = 1, PASS, CERTS, ADD, OUTPUT, LINKS, IGNORE, FORCE };

#define MAX_IGNORED 64

static const struct moe_opt rows[] = {
    { KEY, 'k', "key", MOE_OPT_FILE, "FILE", "the private key, in PEM", NULL, false, false },
    { PASS, 0, "pass", MOE_OPT_FILE, "FILE", "the key's pass phrase is its first line", NULL,
        false, false },
    { CERTS, 0, "certs", MOE_OPT_FILE, "FILE", "certificates to put in, the key's first", NULL,
        false, false },
    { ADD, 0, "add", MOE_OPT_FILE, "BUNDLE", "sign what this bundle says, beside its signers",
        NULL, false, false },
    { OUTPUT, 'o', "output", MOE_OPT_FILE, "FILE", "write the bundle there; -: standard output",
        NULL, false, false },
    { LINKS, 0, "links", MOE_OPT_NONE, NULL, "follow symbolic links to files", NULL, false, false },
    { IGNORE, 0, "ignore", MOE_OPT_WORD, "PATH", "a path of the model to leave out", NULL, false,
        true },
    { FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace the output", NULL, false, false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "--key FILE [--certs FILE] -o FILE MODEL",
    "--key FILE --add BUNDLE -o FILE MODEL", NULL };

const struct moe_opt_cmd verify_sign_cmd = {
    "moe-verify sign", usage, "Sign all files of a model.", rows, NULL
};

struct args {
    const char *key, *pass, *certs, *add, *output, *ignored[MAX_IGNORED + 1];
    size_t n_ignored;
    bool links, force;
    char inside[PATH_MAX];      /* the output, if it lies in the model */
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    struct args *a = ctx;

    if (id == IGNORE) {
        if (a->n_ignored == MAX_IGNORED || !moe_statement_canonical(arg) ||
            strpbrk(arg, "*?[") != NULL)
            return moe_err_set(e, MOE_EUSAGE, "--ignore: %s: is no plain path, or one too many",
                arg);
        a->ignored[a->n_ignored++] = arg;
    } else if (id == LINKS)
        a->links = true;
    else if (id == FORCE)
        a->force = true;
    else
        *(id == KEY ? &a->key : id == PASS ? &a->pass : id == CERTS ? &a->certs : id == ADD ?
            &a->add : &a->output) = arg;
    return 0;
}

/* An output within the model is not signed: its path is among the ignored ones. */
static int
ignore_output(struct args *a, const char *model, struct moe_err *e)
{
    char dir[PATH_MAX], where[PATH_MAX], root[PATH_MAX];
    const char *slash = strrchr(a->output, '/'), *base = slash != NULL ? slash + 1 : a->output;
    size_t n;
    int len;

    len = slash == NULL ? snprintf(dir, sizeof(dir), ".") :
        snprintf(dir, sizeof(dir), "%.*s/", (int)(slash - a->output), a->output);
    if (len < 0 || (size_t)len >= sizeof(dir) || realpath(dir, where) == NULL ||
        realpath(model, root) == NULL)
        return 0;               /* opening them tells why */
    n = strlen(root);
    if (strncmp(where, root, n) != 0 || (where[n] != '\0' && where[n] != '/'))
        return 0;
    len = snprintf(a->inside, sizeof(a->inside), "%s%s%s", where[n] == '/' ? where + n + 1 : "",
        where[n] == '/' ? "/" : "", base);
    if (len < 0 || (size_t)len >= sizeof(a->inside) || strpbrk(a->inside, "*?[") != NULL ||
        !moe_statement_canonical(a->inside))
        return moe_err_set(e, MOE_EUSAGE, "%s: cannot be left out of the model by this name",
            a->output);
    a->ignored[a->n_ignored++] = a->inside;
    return 0;
}

/* The model's own name: the last part of its path. */
static int
name_of(const char *path, char real[static PATH_MAX], const char **name, struct moe_err *e)
{
    if (realpath(path, real) == NULL)
        return moe_err_set(e, MOE_ENOENT, "%s: is not there", path);
    *name = strrchr(real, '/') + 1;
    return 0;
}

/* The payload of a new bundle. */
static int
state(struct args *a, const char *path, struct moe_bundle *b, struct moe_err *e)
{
    struct moe_statement s = MOE_STATEMENT_INIT;
    struct verify_model m = VERIFY_MODEL_INIT;
    char real[PATH_MAX];
    const char *name = "";
    int rc = name_of(path, real, &name, e);

    s.links = a->links;
    s.n_ignored = a->n_ignored;
    if (rc == 0 && (s.ignored = calloc(a->n_ignored + 1, sizeof(*s.ignored))) == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    for (size_t i = 0; i < a->n_ignored && rc == 0; i++)
        s.ignored[i] = a->ignored[i];
    if (rc == 0 && (rc = verify_model_open(&m, path, &s, NULL, e)) == 0 && m.odd > 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: holds what cannot be signed", path);
    if (rc == 0 && (rc = verify_model_state(&m, &s, e)) == 0)
        rc = moe_statement_write(&s, name, &b->payload, e);
    verify_model_close(&m);
    moe_statement_fini(&s);
    return rc;
}

/* The payload of a bundle that is there, if the model is what it says. */
static int
join(const struct args *a, const char *path, struct moe_bundle *b, struct moe_err *e)
{
    struct moe_statement s = MOE_STATEMENT_INIT;
    struct verify_model m = VERIFY_MODEL_INIT;
    struct moe_buf text = MOE_BUF_INIT;
    struct stat st;
    bool is_file = stat(a->add, &st) == 0;
    int rc = moe_read_file(a->add, MOE_BUNDLE_MAX, &text, e);

    if (rc == 0 && (rc = moe_bundle_read(b, text.p != NULL ? text.p : "", text.len, a->add, e)) ==
        0 && b->n_sigs == MOE_BUNDLE_MAX_SIGS)
        rc = moe_err_set(e, MOE_ELIMIT, "%s: holds as many signatures as can be", a->add);
    if (rc == 0 && (rc = moe_statement_read(&s, b->payload.p, b->payload.len, a->add, e)) == 0 &&
        (rc = verify_model_open(&m, path, &s, is_file ? &st : NULL, e)) == 0)
        rc = verify_model_compare(&m, &s, e);
    moe_buf_clear(&b->pae);
    moe_buf_fini(&text);
    verify_model_close(&m);
    moe_statement_fini(&s);
    return rc;
}

static int
write_bundle(const struct args *a, const struct moe_bundle *b, struct moe_err *e)
{
    struct moe_buf text = MOE_BUF_INIT;
    struct moe_out *out = NULL;
    int rc = 0;

    moe_bundle_write(b, &text);
    if (text.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "out of memory");
    if (rc == 0 && (rc = moe_out_open(a->output, a->force, 0, &out, e)) == 0 &&
        (rc = moe_out_write(out, text.p, text.len, e)) == 0) {
        rc = moe_out_commit(out, e);
        out = NULL;
    }
    moe_out_abort(out);
    moe_buf_fini(&text);
    return rc;
}

static int
run(struct args *a, const char *path, struct moe_err *e)
{
    struct moe_bundle b = MOE_BUNDLE_INIT;
    struct moe_keyfile k = MOE_KEYFILE_INIT;
    int rc = moe_keyfile_private(&k, a->key, a->pass, e);

    if (rc == 0 && a->add == NULL && strcmp(a->output, "-") != 0)
        rc = ignore_output(a, path, e);
    if (rc == 0)
        rc = a->add != NULL ? join(a, path, &b, e) : state(a, path, &b, e);
    if (rc == 0 && a->add == NULL) {
        memcpy(b.hint, k.hint, sizeof(k.hint));
        if (a->certs != NULL)
            rc = moe_keyfile_certs(&k, a->certs, b.cert, MOE_BUNDLE_MAX_CERTS, &b.n_certs, e);
    }
    if (rc == 0) {
        moe_bundle_pae(&b.pae, b.payload.p, b.payload.len);
        rc = b.pae.bad ? moe_err_set(e, MOE_ENOMEM, "out of memory") :
            moe_keyfile_sign(&k, b.pae.p, b.pae.len, &b.sig[b.n_sigs], e);
        b.n_sigs++;
    }
    moe_keyfile_fini(&k);
    if (rc == 0)
        rc = write_bundle(a, &b, e);
    moe_bundle_fini(&b);
    return rc;
}

int
verify_sign(int argc, char **argv, struct moe_err *e)
{
    struct args a = { 0 };
    bool helped = false;
    int first, rc = moe_opt_parse(&verify_sign_cmd, argc, argv, option, &a, &first, &helped, e);

    if (rc != 0 || helped)
        return rc;
    if (a.key == NULL || a.output == NULL)
        return moe_err_set(e, MOE_EUSAGE, "--key and --output are needed");
    if (a.add != NULL && (a.certs != NULL || a.links || a.n_ignored > 0))
        return moe_err_set(e, MOE_EUSAGE, "--add excludes --certs, --links, --ignore");
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "which model?");
    return run(&a, argv[first], e);
}
