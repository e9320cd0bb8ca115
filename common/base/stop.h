/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one flag by which a signal asks long work to end. The library polls it
 * between pieces of work; only tool.c (and tests) set it.
 */
#ifndef MOE_BASE_STOP_H
#define MOE_BASE_STOP_H

#include "common/base/err.h"

/* Ask to stop because of signal sig (async-signal-safe). sig 0 clears it. */
void moe_stop_set(int sig);

/* The signal that asked, or 0. */
int moe_stop_signal(void);

/* 0, or MOE_ESTOP with text when a stop was asked for. */
int moe_stop_check(struct moe_err *e);

#endif
