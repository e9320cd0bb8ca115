/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before each source by `make tidy` only: tells the analyser, which
 * sees one file at a time, that a recorded failure is never 0.
 */
#ifndef MOE_ANALYSER_H
#define MOE_ANALYSER_H

#include "common/base/err.h"

#define moe_err_set(e, code, ...) ((moe_err_set)(e, code, __VA_ARGS__), (code))
#define moe_err_sys(e, code, ...) ((moe_err_sys)(e, code, __VA_ARGS__), (code))
#define moe_err_at(e, ...) ((moe_err_at)(e, __VA_ARGS__), MOE_EFORMAT)

#endif
