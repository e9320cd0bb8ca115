/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists from any bytes, ended by LF and by NUL; a line that is accepted is
 * written and read back the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/sumlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
same(const char *a, const char *b)
{
    if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
        abort();
}

static void
again(const struct moe_sumlist_line *l)
{
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_sumlist s;
    struct moe_sumlist_line back;

    if (l->tensor != NULL && strpbrk(l->type, "\\\n\r\t") == NULL &&
        strpbrk(l->shape, "\\\n\r\t") == NULL)
        moe_sumlist_put_tensor(&b, l->sum, l->name, l->tensor, l->type, l->shape);
    else if (l->tensor == NULL)
        moe_sumlist_put(&b, l->sum, l->name, false);
    if (b.len > 0) {
        moe_sumlist_open(&s, b.p, b.len, false);
        if (moe_sumlist_next(&s, &back, NULL) != 1 ||
            memcmp(l->sum, back.sum, sizeof(back.sum)) != 0)
            abort();
        same(l->name, back.name);
        same(l->tensor, back.tensor);
        moe_sumlist_close(&s);
    }
    moe_buf_fini(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct moe_sumlist s;
    struct moe_sumlist_line l;
    struct moe_err e;
    int rc;

    for (int zero = 0; zero < 2; zero++) {
        moe_sumlist_open(&s, (const char *)p, n, zero);
        while ((rc = moe_sumlist_next(&s, &l, &e)) != 0)
            if (rc == 1)
                again(&l);
        moe_sumlist_close(&s);
    }
    return 0;
}
