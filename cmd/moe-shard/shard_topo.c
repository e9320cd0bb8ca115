/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command `topo`: any description of a machine, in one form. */
#include <stdio.h>

#include "cmd/moe-shard/shard_topo.h"
#include "common/system/topo.h"

static const struct moe_opt rows[] = {
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "FILE", NULL };

const struct moe_opt_cmd shard_topo_cmd = {
    "moe-shard topo", usage, "Tell what is between each two devices of a machine.", rows, NULL
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    (void)ctx, (void)id, (void)arg, (void)e;
    return 0;
}

int
shard_topo(int argc, char **argv, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_topo t;
    bool done;
    int first, rc = moe_opt_parse(&shard_topo_cmd, argc, argv, option, NULL, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    if (argc - first != 1)
        return moe_err_set(e, MOE_EUSAGE, "one FILE is wanted, or -");
    if ((rc = moe_topo_read(argv[first], &t, e)) != 0)
        return rc;
    moe_topo_write(&t, &b);
    if (b.bad)
        rc = moe_err_set(e, MOE_ENOMEM, "topology: out of memory");
    else
        (void)fwrite(b.p, 1, b.len, stdout);
    moe_buf_fini(&b);
    moe_topo_fini(&t);
    return rc;
}
