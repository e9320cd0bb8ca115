/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-verify: tell whether files and tensors are what they were. Owns the list
 * of commands.
 */
#include "cmd/moe-verify/verify_check.h"
#include "cmd/moe-verify/verify_compare.h"
#include "cmd/moe-verify/verify_lock.h"
#include "cmd/moe-verify/verify_prove.h"
#include "cmd/moe-verify/verify_scrub.h"
#include "cmd/moe-verify/verify_sign.h"
#include "cmd/moe-verify/verify_sum.h"
#include "cmd/moe-verify/verify_tree.h"
#include "cmd/moe-verify/verify_verify.h"
#include "common/base/tool.h"
#include "common/base/verb.h"

static const struct moe_verb verbs[] = {
    { "sum", &verify_sum_cmd, verify_sum },
    { "check", &verify_check_cmd, verify_check },
    { "tree", &verify_tree_cmd, verify_tree },
    { "prove", &verify_prove_cmd, verify_prove },
    { "scrub", &verify_scrub_cmd, verify_scrub },
    { "compare", &verify_compare_cmd, verify_compare },
    { "lock", &verify_lock_cmd, verify_lock },
    { "sign", &verify_sign_cmd, verify_sign },
    { "verify", &verify_verify_cmd, verify_verify },
    { NULL, NULL, NULL },
};

static const struct moe_verb_set set = {
    "moe-verify", "Tell whether files and tensors are what they were.", verbs
};

int
main(int argc, char **argv)
{
    struct moe_err e = { 0 };

    moe_tool_start("moe-verify");
    return moe_tool_end(moe_verb_run(&set, argc, argv, &e), &e);
}
