/* SPDX-License-Identifier: Apache-2.0 */
/* Headers from a stream: the verdicts of files, and promises that are not kept. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/stream.h"
#include "common/formats/safet.h"
#include "tests/tap.h"

static struct moe_err err;

/* A stream knows no length, so the data is read to the end as its users do. */
static int
from_stream(const char *path, struct moe_safet **out)
{
    int fd = open(path, O_RDONLY), rc;
    struct moe_stream *st = NULL;
    uint64_t data = 0;
    const void *p;
    size_t n = 1;

    *out = NULL;
    rc = moe_stream_open(fd, path, false, &st, &err);
    if (rc == 0)
        rc = moe_safet_stream(st, path, out, &err);
    while (rc == 0 && n > 0 && (rc = moe_stream_next(st, &p, &n, &err)) == 0)
        data += n;
    if (rc == 0 && data != moe_safet_data_len(*out))
        rc = MOE_EFORMAT;
    moe_stream_close(st);
    close(fd);
    return rc;
}

static int
from_file(const char *path)
{
    struct moe_safet *s;
    int fd = open(path, O_RDONLY), rc;

    rc = moe_safet_fd(fd, path, &s, NULL);
    moe_safet_free(s);
    close(fd);
    return rc;
}

static void
check_files(void)
{
    static const char dir[] = "tests/data/safetensors";
    DIR *d = opendir(dir);
    struct dirent *x;
    size_t n = 0;

    while (d != NULL && (x = readdir(d)) != NULL) {
        struct moe_safet *s;
        char path[512];
        int rc;

        if (strstr(x->d_name, ".safetensors") == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, x->d_name);
        rc = from_stream(path, &s);
        moe_safet_free(s);
        tap_ok((rc == 0) == (from_file(path) == 0), "%s: as from a file", x->d_name);
        n++;
    }
    if (d != NULL)
        closedir(d);
    tap_ok(n >= 85, "%zu files", n);
}

/* 100 MB are promised and nothing comes. */
static void
check_promise(void)
{
    static const unsigned char length[8] = { 0x00, 0xe1, 0xf5, 0x05 };
    struct moe_stream *st = NULL;
    struct moe_safet *s;
    int fd[2];

    if (!tap_ok(pipe(fd) == 0, "a pipe"))
        return;
    tap_ok(write(fd[1], length, 8) == 8 && write(fd[1], "{", 1) == 1, "a start");
    close(fd[1]);
    tap_ok(moe_stream_open(fd[0], "pipe", false, &st, &err) == 0 &&
        moe_safet_stream(st, "pipe", &s, &err) == MOE_EFORMAT && s == NULL,
        "refused: %s", err.text);
    moe_stream_close(st);
    close(fd[0]);
}

int
main(void)
{
    check_files();
    check_promise();
    return tap_done();
}
