/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second readings of ranges at odd places. What a disk and its cache disagree
 * on needs a loop device: tests/long.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/trust/reread.h"
#include "tests/scratch.h"
#include "tests/tap.h"

#define N ((size_t)3 << 20)

int
main(void)
{
    static const struct { uint64_t at, len; } r[] = { { 0, N }, { 1, 1 }, { 4095, 2 }, { 4096, 0 },
        { 12345, 2345678 }, { N - 7, 7 } };
    unsigned char *p = malloc(N), sum[MOE_DIGEST_LEN], got[MOE_DIGEST_LEN];
    enum moe_reread why;
    struct moe_err e = { 0 };
    struct stat st;
    bool direct;
    int fd;

    scratch_enter();
    fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);

    for (size_t i = 0; i < N; i++)
        p[i] = (unsigned char)(i * 2654435761u >> 13);
    tap_ok(write(fd, p, N) == (ssize_t)N && fsync(fd) == 0 && fstat(fd, &st) == 0, "a file");
    for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
        moe_digest_of(p + r[i].at, r[i].len, sum, NULL);
        tap_is_int(moe_reread_direct(fd, "file", r[i].at, r[i].len, got, &direct, &e), 0,
            "range %zu is read", i);
        tap_ok(!direct || memcmp(got, sum, sizeof(sum)) == 0, "past the cache");
        tap_is_int(moe_reread_judge(fd, "file", r[i].at, r[i].len, sum, &st, &why, &e), 0,
            "and judged");
        tap_is_str(moe_reread_name(why), "transient", "well now");
        sum[5] ^= 1;
        tap_is_int(moe_reread_judge(fd, "file", r[i].at, r[i].len, sum, &st, &why, &e), 0,
            "another digest");
        tap_is_str(moe_reread_name(why), direct ? "disk" : "memory or disk", "the disk has it");
    }
    tap_is_int(moe_reread_judge(fd, "file", N, 1, sum, &st, &why, &e), MOE_EFORMAT, "past the end");
    st.st_mtim.tv_nsec ^= 1;
    tap_is_int(moe_reread_judge(fd, "file", 0, 10, sum, &st, &why, &e), 0, "another time");
    tap_is_str(moe_reread_name(why), "changed while checking", "was written meanwhile");
    (void)close(fd);
    scratch_leave();
    free(p);
    return tap_done();
}
