/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every program's main does alike: a flag set by SIGINT, SIGTERM and
 * SIGHUP, the line on stderr, the exit status, the check that stdout arrived.
 * Only cmd/ may call it; the library itself never prints and installs nothing.
 */
#ifndef MOE_BASE_TOOL_H
#define MOE_BASE_TOOL_H

#include <stdbool.h>

#include "common/base/err.h"

enum { MOE_EXIT_YES = 0, MOE_EXIT_NO = 1, MOE_EXIT_TROUBLE = 2 };

/*
 * Hold closed standard descriptors, so that no file opened later becomes one;
 * install the stop handler, ignore SIGPIPE, remember the program's name.
 */
void moe_tool_start(const char *program);

/* Print "program: text" on stderr as one line. */
void moe_tool_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * End of main: if rc < 0 print e, then flush and close stdout; returns the
 * exit status: rc when 0 or 1, else 2 (a failed stdout is 2 as well). After a
 * stop by signal the program ends itself with that signal's default action.
 */
int moe_tool_end(int rc, const struct moe_err *e);

#endif
