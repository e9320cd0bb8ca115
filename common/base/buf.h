/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing run of bytes. `p` is NULL or a heap block owned by the struct and
 * always followed by a NUL that `len` does not count, so text can be read as a
 * C string. Adding can fail only for memory; a failure is remembered in `bad`
 * and later additions do nothing, so that a chain of them needs one check.
 */
#ifndef MOE_BASE_BUF_H
#define MOE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct moe_buf {
    char *p;
    size_t len, cap;
    bool bad;       /* an addition found no memory */
};

#define MOE_BUF_INIT { NULL, 0, 0, false }

void moe_buf_fini(struct moe_buf *b);

/* Make it empty, keeping the memory. */
void moe_buf_clear(struct moe_buf *b);

/* Room for n more bytes at the end; returns where they start, or NULL. */
char *moe_buf_room(struct moe_buf *b, size_t n);

void moe_buf_add(struct moe_buf *b, const void *p, size_t n);
void moe_buf_str(struct moe_buf *b, const char *s);
void moe_buf_byte(struct moe_buf *b, char c);
void moe_buf_show(struct moe_buf *b, const char *p, size_t n);  /* as moe_utf8_show() has it */
void moe_buf_fmt(struct moe_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Hand the block over to the caller, who frees it; the struct is empty after.
 * NULL if an addition failed. An empty buffer gives an empty string.
 */
char *moe_buf_take(struct moe_buf *b);

#endif
