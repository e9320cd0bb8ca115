/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The completion script of a program, made from its option table.
 */
#ifndef MOE_BASE_COMPLETION_H
#define MOE_BASE_COMPLETION_H

#include <stdio.h>

#include "common/base/opt.h"
#include "common/base/verb.h"

/* Write a script that bash can source. The table's words need no quoting. */
void moe_completion_bash(const struct moe_opt_cmd *cmd, FILE *to);

/* The same for a program of commands: after one, its own options. */
void moe_completion_verbs(const struct moe_verb_set *set, FILE *to);

#endif
