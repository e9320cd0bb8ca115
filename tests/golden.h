/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden data for the C tests: files under tests/data whole, JSON, tensors of a
 * safetensors file (read without the library's own reader), SHA-256. Whatever
 * cannot be read ends the test with a failure. The caller frees whole
 * files; trees and tensors stay until the end.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Path is relative to tests/data. */
unsigned char *golden_file(const char *path, size_t *n);
json_t *golden_json(const char *path);

struct golden_tensor {
    const char *dtype;
    int rank;
    uint64_t shape[8];
    const unsigned char *p;
    size_t n;
};

struct golden_tensors {
    json_t *header;
    const unsigned char *data;
};

struct golden_tensors golden_tensors(const char *path);

/* False if there is no such tensor; `must` makes that a failure. */
bool golden_find(const struct golden_tensors *g, const char *name, bool must,
    struct golden_tensor *t);

/* SHA-256 in hexadecimal; the text is valid until the next call. */
const char *golden_sha256(const void *p, size_t n);

#endif
