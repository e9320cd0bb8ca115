/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as a file with a name, for parsers that open what they read. */
#ifndef TESTS_FUZZ_ASFILE_H
#define TESTS_FUZZ_ASFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ASFILE_PATH 64

/* A descriptor to close, and the path it is under. */
static int
asfile(const uint8_t *p, size_t n, char path[ASFILE_PATH])
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    (void)snprintf(path, ASFILE_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
