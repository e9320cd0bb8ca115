/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors are values: every call that can fail returns 0 or a negative MOE_E*
 * code and leaves one line of text in the caller's struct moe_err.
 *
 * Ownership: the caller owns the struct; nothing here allocates.
 */
#ifndef MOE_BASE_ERR_H
#define MOE_BASE_ERR_H

enum {
    MOE_EUSAGE = -1,    /* the command line is wrong */
    MOE_EIO = -2,       /* the system refused: open, read, write, fsync */
    MOE_EFORMAT = -3,   /* the input breaks its format */
    MOE_ENOMEM = -4,    /* out of memory */
    MOE_ELIMIT = -5,    /* a named limit is exceeded */
    MOE_EEXIST = -6,    /* the output is there already */
    MOE_ENOENT = -7,    /* a file or a tensor is missing */
    MOE_EUNSUP = -8,    /* well formed, but nothing here handles it */
    MOE_ESTOP = -9      /* a signal asked to stop */
};

#pragma GCC visibility push(default)

#define MOE_ERR_TEXT 512

struct moe_err {
    int code;                   /* 0, or the MOE_E* of the last failure */
    char text[MOE_ERR_TEXT];    /* one line, no newline, cut with "..." */
};

/*
 * Record a failure and return its code, so that callers can write
 * `return moe_err_set(e, MOE_EFORMAT, "%s: bad magic", path);`.
 * e may be NULL. Control characters and bytes that are not UTF-8 are shown
 * as \xNN, so that a hostile name cannot forge a second line.
 */
int moe_err_set(struct moe_err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As moe_err_set(), with ": " and the text of errno `sys` added. */
int moe_err_sys(struct moe_err *e, int code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Put "where: " before the text already in e; returns e's code. */
int moe_err_at(struct moe_err *e, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A short constant name of a code, such as "bad input"; never NULL. */
const char *moe_err_name(int code);

#pragma GCC visibility pop

#endif
