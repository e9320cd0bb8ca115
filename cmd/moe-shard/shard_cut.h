/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that tell a cut, alike for split and reshard, and from them and a
 * model the grid and the plan.
 */
#ifndef MOE_SHARD_CUT_H
#define MOE_SHARD_CUT_H

#include <stdbool.h>

#include "cmd/moe-shard/shard_set.h"
#include "common/base/err.h"
#include "common/base/opt.h"
#include "common/formats/cutplan.h"
#include "common/formats/source.h"

/* Ids of the rows below; a command's own begin after SHARD_CUT_LAST. */
enum {
    SHARD_CUT_TP = 1, SHARD_CUT_EP, SHARD_CUT_PP, SHARD_CUT_EXPERTS, SHARD_CUT_PLAN,
    SHARD_CUT_UNEVEN, SHARD_CUT_LAYOUT, SHARD_CUT_DRY, SHARD_CUT_THREADS, SHARD_CUT_FORCE,
    SHARD_CUT_JSON, SHARD_CUT_QUIET, SHARD_CUT_LAST
};

#define SHARD_CUT_ROWS \
    { SHARD_CUT_TP, 0, "tp", MOE_OPT_WORD, "N", "tensor-parallel ranks: matrices are cut", NULL, \
        false, false }, \
    { SHARD_CUT_EP, 0, "ep", MOE_OPT_WORD, "N", "expert-parallel ranks: experts are dealt out", \
        NULL, false, false }, \
    { SHARD_CUT_PP, 0, "pp", MOE_OPT_WORD, "N", "pipeline stages: layers are dealt out", NULL, \
        false, false }, \
    { SHARD_CUT_EXPERTS, 0, "experts", MOE_OPT_CHOICE, "RULE", "which rank an expert goes to", \
        "linear|round-robin", false, false }, \
    { SHARD_CUT_PLAN, 0, "plan", MOE_OPT_FILE, "PLAN", "experts and copies as a plan has them", \
        NULL, false, false }, \
    { SHARD_CUT_UNEVEN, 0, "uneven", MOE_OPT_CHOICE, "RULE", "cut what ranks do not divide", \
        "chunk|balanced", false, false }, \
    { SHARD_CUT_LAYOUT, 0, "layout", MOE_OPT_CHOICE, "L", "a directory or a file for each rank", \
        "dirs|files", false, false }, \
    { SHARD_CUT_DRY, 'n', "dry-run", MOE_OPT_NONE, NULL, "print exact sizes; write nothing", \
        NULL, false, false }, \
    { SHARD_CUT_JSON, 0, "json", MOE_OPT_NONE, NULL, "with -n: JSON Lines", NULL, false, false }, \
    { SHARD_CUT_THREADS, 'j', "threads", MOE_OPT_WORD, "N", "threads; default: the processors", \
        NULL, false, false }, \
    { SHARD_CUT_FORCE, 0, "force", MOE_OPT_NONE, NULL, "replace what is there", NULL, false, \
        false }, \
    { SHARD_CUT_QUIET, 'q', "quiet", MOE_OPT_NONE, NULL, "no progress and no summary on stderr", \
        NULL, false, false }

struct shard_cut_options {
    uint32_t tp, ep, pp;
    enum moe_grid_deal deal;
    const char *plan;           /* NULL: none; else ep is its devices */
    enum moe_cut_spread spread;
    enum shard_ranks_layout layout;
    bool dry, json, force, quiet;
    int threads;
};

#define SHARD_CUT_DEFAULTS { 1, 1, 1, MOE_GRID_LINEAR, NULL, MOE_CUT_EVEN, SHARD_RANKS_DIRS, \
    false, false, false, false, 0 }

/* One of the rows above. */
int shard_cut_option(struct shard_cut_options *o, int id, const char *arg, struct moe_err *e);

/* Put the grid into a set whose tensors and files are known. config may be NULL. */
int shard_cut_grid(const struct shard_cut_options *o, const struct moe_config *config,
    struct shard_set *s, struct moe_err *e);

/*
 * Which g_idx of a set's tensors, which are the source's, are in no order: their matrices keep all
 * scales on every rank. Not known of a stream.
 */
int shard_cut_order(struct moe_source *src, struct shard_set *s, struct moe_err *e);

/* The plan of a set, act-order as its flags say. name: for messages. */
int shard_cut_plan(const struct shard_set *s, const struct moe_config *config, const char *name,
    struct moe_cutplan *out, struct moe_err *e);

/* Print what each rank gets. moved[rank]: bytes that come from elsewhere, or NULL. */
int shard_cut_print(const struct moe_cutplan *p, bool json, const uint64_t *moved,
    struct moe_err *e);

#endif
