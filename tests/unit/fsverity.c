/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests and roots of fsverity 1.5 (tests/data/fsverity): both hashes, block
 * sizes, salts, sizes around the edges of blocks and levels; given in pieces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/trust/fsverity.h"
#include "tests/golden.h"
#include "tests/tap.h"

static void
hex_of(char *out, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static void
line(char *text)
{
    char *c[8], hex[2 * MOE_FSVERITY_MAX + 1];
    unsigned char digest[MOE_FSVERITY_MAX], root[MOE_FSVERITY_MAX], salt[MOE_FSVERITY_SALT];
    struct moe_fsverity *v = NULL;
    size_t size, len, salt_n, step = 1;
    unsigned long seed;
    unsigned char *p;

    for (int i = 0; i < 8; i++)
        c[i] = strsep(&text, "\t");
    size = strtoul(c[0], NULL, 10);
    seed = strtoul(c[1], NULL, 10);
    salt_n = strlen(c[4]) / 2;
    for (size_t i = 0; i < salt_n; i++) {
        unsigned x;
        (void)sscanf(c[4] + 2 * i, "%2x", &x);
        salt[i] = (unsigned char)x;
    }
    p = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        p[i] = (unsigned char)((uint32_t)((i + seed) * 2654435761u) >> 13);
    tap_is_str(golden_sha256(p, size), c[7], "%s bytes", c[0]);
    tap_is_int(moe_fsverity_new(strcmp(c[2], "sha512") == 0 ? MOE_FSVERITY_SHA512 :
        MOE_FSVERITY_SHA256, strtoul(c[3], NULL, 10), salt, salt_n, &v, NULL), 0, "begun");
    for (size_t at = 0; at < size; at += step, step = step * 3 + 1)
        moe_fsverity_add(v, p + at, size - at < step ? size - at : step);
    tap_is_int(moe_fsverity_end(v, digest, root, &len, NULL), 0, "ended");
    hex_of(hex, digest, len);
    tap_is_str(hex, c[5], "%s %s %s: digest", c[2], c[3], c[4]);
    hex_of(hex, root, len);
    tap_is_str(hex, c[6], "root");
    moe_fsverity_free(v);
    free(p);
}

int
main(void)
{
    size_t n;
    char *all = (char *)golden_file("fsverity/digests.tsv", &n), *at, *l;
    struct moe_fsverity *v = NULL;
    int lines = 0;

    at = realloc(all, n + 1);
    at[n] = '\0';
    all = at;
    for ((void)strsep(&at, "\n"); (l = strsep(&at, "\n")) != NULL && *l != '\0'; lines++)
        line(l);
    tap_ok(lines > 40, "%d lines", lines);
    tap_is_int(moe_fsverity_new(MOE_FSVERITY_SHA256, 1000, NULL, 0, &v, NULL), MOE_EUSAGE,
        "no power of two");
    tap_is_int(moe_fsverity_new(MOE_FSVERITY_SHA256, 4096, "", 33, &v, NULL), MOE_EUSAGE,
        "a salt too long");
    free(all);
    return tap_done();
}
