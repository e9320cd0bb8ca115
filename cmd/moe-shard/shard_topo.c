/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command `topo`: this machine, or any description of one, in one form. */
#include <stdio.h>

#include "cmd/moe-shard/shard_topo.h"
#include "common/system/topo.h"

enum { CPU = 1 };

static const struct moe_opt rows[] = {
    { CPU, 0, "cpu", MOE_OPT_NONE, NULL, "NUMA nodes too, where hwloc tells of them", NULL, false,
        false },
    { 0, 0, NULL, MOE_OPT_NONE, NULL, NULL, NULL, false, false },
};

static const char *const usage[] = { "[--cpu] [FILE]", NULL };

const struct moe_opt_cmd shard_topo_cmd = {
    "moe-shard topo", usage, "Tell what is between each two devices of a machine.", rows, NULL
};

static int
option(void *ctx, int id, const char *arg, struct moe_err *e)
{
    (void)id, (void)arg, (void)e;
    *(bool *)ctx = true;
    return 0;
}

int
shard_topo(int argc, char **argv, struct moe_err *e)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_topo t;
    bool done, cpus = false;
    int first, rc = moe_opt_parse(&shard_topo_cmd, argc, argv, option, &cpus, &first, &done, e);

    if (rc != 0 || done)
        return rc;
    if (argc - first > 1)
        return moe_err_set(e, MOE_EUSAGE, "one FILE is wanted, or -, or none for this machine");
    rc = argc - first == 1 ? moe_topo_read(argv[first], cpus, &t, e) : moe_topo_here(cpus, &t, e);
    if (rc != 0)
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
