/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command line of moe-verify says, for all its parts.
 */
#ifndef MOE_VERIFY_OPTS_H
#define MOE_VERIFY_OPTS_H

#include <stdbool.h>

struct verify_opts {
    bool tensors;           /* sum: digests of tensors, not of files */
    bool json;
    bool zero;              /* records end in NUL */
    bool quiet;             /* check: no line for what is fine; no progress */
    bool status;            /* check: nothing on stdout */
    bool ignore_missing;    /* check: a missing file is no answer */
    int threads;            /* 0: as many as there are processors */
};

#endif
