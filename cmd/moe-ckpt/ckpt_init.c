/* SPDX-License-Identifier: Apache-2.0 */
/* Owns `moe-ckpt init`: an empty store. */
#include "cmd/moe-ckpt/ckpt_init.h"
#include "common/store/store.h"

static const struct moe_opt rows[] = {
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "STORE", NULL };

const struct moe_opt_cmd ckpt_init_cmd = { "moe-ckpt init", usage, "Make an empty store.", rows,
    NULL };

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    (void)ctx;
    (void)id;
    (void)arg;
    (void)e;
    return 0;
}

int
ckpt_init(int argc, char **argv, struct moe_err *e)
{
    int rc, first;
    bool done;

    if ((rc = moe_opt_parse(&ckpt_init_cmd, argc, argv, option, NULL, &first, &done, e)) != 0 ||
        done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "init wants one STORE");
    return moe_store_init(argv[first], e);
}
