/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping: content, empty files, what is no regular file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/map.h"
#include "tests/tap.h"

int
main(void)
{
    char path[] = P_tmpdir "/moe-map-XXXXXX";
    struct moe_map m = MOE_MAP_INIT;
    struct moe_err e = { 0, "" };
    int fd = mkstemp(path), in[2];

    tap_is_int(moe_map_open(&m, path, &e), 0, "an empty file");
    tap_ok(m.p == NULL && m.len == 0, "has nothing");
    moe_map_close(&m);
    tap_ok(write(fd, "hello", 5) == 5, "five bytes");
    tap_is_int(moe_map_fd(&m, fd, "f", &e), 0, "are mapped");
    close(fd);
    tap_ok(m.len == 5 && memcmp(m.p, "hello", 5) == 0, "and stay when the descriptor goes");
    moe_map_close(&m);
    moe_map_close(&m);
    tap_ok(m.p == NULL, "closing twice is harmless");
    unlink(path);
    tap_is_int(moe_map_open(&m, path, &e), MOE_ENOENT, "no file");
    tap_is_int(moe_map_open(&m, "/", &e), MOE_EFORMAT, "a directory");
    tap_is_int(moe_map_open(&m, "/dev/zero", &e), MOE_EFORMAT, "a device");
    tap_ok(mkfifo(path, 0600) == 0, "a named pipe");
    tap_is_int(moe_map_open(&m, path, &e), MOE_EFORMAT, "is refused, not waited for");
    unlink(path);
    tap_ok(pipe(in) == 0 && moe_map_fd(&m, in[0], "p", &e) == MOE_EFORMAT, "a pipe");
    tap_is_str(e.text, "p: not a regular file", "said so");
    tap_is_int(moe_map_fd(&m, -1, "bad", &e), MOE_EIO, "a bad descriptor");
    return tap_done();
}
