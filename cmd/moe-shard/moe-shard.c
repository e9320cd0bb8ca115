/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-shard: plan where experts go, and cut checkpoints to fit. Owns the list
 * of commands.
 */
#include "cmd/moe-shard/shard_compare.h"
#include "cmd/moe-shard/shard_fit.h"
#include "cmd/moe-shard/shard_mem.h"
#include "cmd/moe-shard/shard_merge.h"
#include "cmd/moe-shard/shard_plan.h"
#include "cmd/moe-shard/shard_reshard.h"
#include "cmd/moe-shard/shard_sim.h"
#include "cmd/moe-shard/shard_split.h"
#include "cmd/moe-shard/shard_topo.h"
#include "common/base/tool.h"
#include "common/base/verb.h"

static const struct moe_verb verbs[] = {
    { "plan", &shard_plan_cmd, shard_plan },
    { "compare", &shard_compare_cmd, shard_compare },
    { "sim", &shard_sim_cmd, shard_sim },
    { "topo", &shard_topo_cmd, shard_topo },
    { "mem", &shard_mem_cmd, shard_mem },
    { "fit", &shard_fit_cmd, shard_fit },
    { "split", &shard_split_cmd, shard_split },
    { "merge", &shard_merge_cmd, shard_merge },
    { "reshard", &shard_reshard_cmd, shard_reshard },
    { NULL, NULL, NULL },
};

static const struct moe_verb_set set = {
    "moe-shard", "Plan where experts go, and cut models for the ranks that run them.", verbs
};

int
main(int argc, char **argv)
{
    struct moe_err e = { 0, "" };

    moe_tool_start("moe-shard");
    return moe_tool_end(moe_verb_run(&set, argc, argv, &e), &e);
}
