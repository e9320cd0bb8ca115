/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-ckpt: a store of checkpoints. Owns the list of commands.
 */
#include "cmd/moe-ckpt/ckpt_apply.h"
#include "cmd/moe-ckpt/ckpt_avg.h"
#include "cmd/moe-ckpt/ckpt_cat.h"
#include "cmd/moe-ckpt/ckpt_diff.h"
#include "cmd/moe-ckpt/ckpt_drop.h"
#include "cmd/moe-ckpt/ckpt_ema.h"
#include "cmd/moe-ckpt/ckpt_fsck.h"
#include "cmd/moe-ckpt/ckpt_gc.h"
#include "cmd/moe-ckpt/ckpt_get.h"
#include "cmd/moe-ckpt/ckpt_init.h"
#include "cmd/moe-ckpt/ckpt_load.h"
#include "cmd/moe-ckpt/ckpt_log.h"
#include "cmd/moe-ckpt/ckpt_promote.h"
#include "cmd/moe-ckpt/ckpt_save.h"
#include "cmd/moe-ckpt/ckpt_show.h"
#include "cmd/moe-ckpt/ckpt_stat.h"
#include "cmd/moe-ckpt/ckpt_tag.h"
#include "common/base/tool.h"
#include "common/base/verb.h"

static const struct moe_verb verbs[] = {
    { "init", &ckpt_init_cmd, ckpt_init },
    { "save", &ckpt_save_cmd, ckpt_save },
    { "log", &ckpt_log_cmd, ckpt_log },
    { "show", &ckpt_show_cmd, ckpt_show },
    { "cat", &ckpt_cat_cmd, ckpt_cat },
    { "load", &ckpt_load_cmd, ckpt_load },
    { "get", &ckpt_get_cmd, ckpt_get },
    { "diff", &ckpt_diff_cmd, ckpt_diff },
    { "tag", &ckpt_tag_cmd, ckpt_tag },
    { "drop", &ckpt_drop_cmd, ckpt_drop },
    { "gc", &ckpt_gc_cmd, ckpt_gc },
    { "fsck", &ckpt_fsck_cmd, ckpt_fsck },
    { "stat", &ckpt_stat_cmd, ckpt_stat },
    { "ema", &ckpt_ema_cmd, ckpt_ema },
    { "avg", &ckpt_avg_cmd, ckpt_avg },
    { "apply", &ckpt_apply_cmd, ckpt_apply },
    { "promote", &ckpt_promote_cmd, ckpt_promote },
    { NULL, NULL, NULL },
};

static const struct moe_verb_set set = { "moe-ckpt", "Keep the checkpoints of a model in a store.",
    verbs };

int
main(int argc, char **argv)
{
    struct moe_err e = { 0 };

    moe_tool_start("moe-ckpt");
    return moe_tool_end(moe_verb_run(&set, argc, argv, &e), &e);
}
