/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_model SRC OUT: turn the rule in SRC/weights.json into safetensors in
 * the new directory OUT (with an index when there are several files), check the
 * SHA-256 of every tensor, and copy the other files of the model.
 *
 * The rule: element i of a tensor, in row-major order and 64-bit wrap-around, is
 *   key = fnv1a64(name) + seed * G,   z = key + (i + 1) * G
 *   h = mix(z): z ^= z >> 30, * C1, z ^= z >> 27, * C2, z ^= z >> 31
 *   u = (float)(h >> 40) * 2^-23 - 1
 * BF16 and F32: mean + scale * u in float, each step rounded; U8 and F8_E4M3:
 * low + h mod span, with the NaNs of E4M3 as 0. Written without the library's
 * own code, so that a fault there cannot hide.
 */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define G UINT64_C(0x9e3779b97f4a7c15)

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void
fail(const char *fmt, ...)
{
    va_list ap;

    fputs("golden_model: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(2);
}

static uint64_t
key_of(const char *name, uint64_t seed)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h + seed * G;
}

static uint64_t
hash(uint64_t key, uint64_t i)
{
    uint64_t z = key + (i + 1) * G;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static float
value(uint64_t h, float mean, float scale)
{
    float u = (float)(h >> 40) * 0x1p-23f - 1.0f;
    float v = scale * u;

    return mean + v;
}

static double
number(const json_t *t, const char *key)
{
    const json_t *v = json_object_get(t, key);

    if (!json_is_number(v))
        fail("%s is no number", key);
    return json_number_value(v);
}

static const char *
string(const json_t *t, const char *key)
{
    const char *s = json_string_value(json_object_get(t, key));

    if (s == NULL)
        fail("%s is no string", key);
    return s;
}

static size_t
size_of(const char *dtype)
{
    return strcmp(dtype, "F32") == 0 ? 4 : strcmp(dtype, "BF16") == 0 ? 2 : 1;
}

static size_t
elements(const json_t *t)
{
    size_t n = 1, i;
    json_t *d;

    json_array_foreach(json_object_get(t, "shape"), i, d)
        n *= (size_t)json_integer_value(d);
    return n;
}

/* All bytes of a tensor. */
static unsigned char *
make(const json_t *t, uint64_t seed, size_t *bytes)
{
    const char *dtype = string(t, "dtype");
    size_t n = elements(t), size = size_of(dtype);
    uint64_t key = key_of(string(t, "name"), seed);
    unsigned char *p = malloc(n * size + 1);
    bool reals = size > 1;
    float mean = reals ? (float)number(t, "mean") : 0;
    float scale = reals ? (float)number(t, "scale") : 0;
    uint64_t low = reals ? 0 : (uint64_t)number(t, "low");
    uint64_t span = reals ? 1 : (uint64_t)number(t, "span");

    if (p == NULL)
        fail("out of memory");
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash(key, i);
        float f = value(h, mean, scale);
        uint32_t b;
        uint16_t half;

        memcpy(&b, &f, 4);
        half = (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
        if (size == 4) {
            memcpy(p + 4 * i, &b, 4);
        } else if (size == 2) {
            memcpy(p + 2 * i, &half, 2);
        } else {
            p[i] = (unsigned char)(low + h % span);
            if (strcmp(dtype, "F8_E4M3") == 0 && (p[i] & 0x7f) == 0x7f)
                p[i] = 0;
        }
    }
    *bytes = n * size;
    return p;
}

static void
check(const json_t *t, const unsigned char *p, size_t n)
{
    unsigned char d[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    unsigned len;

    if (EVP_Digest(p, n, d, &len, EVP_sha256(), NULL) != 1)
        fail("EVP_Digest");
    for (unsigned i = 0; i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", d[i]);
    if (strcmp(hex, string(t, "sha256")) != 0)
        fail("%s: sha256 %s, want %s", string(t, "name"), hex, string(t, "sha256"));
}

static FILE *
create(const char *dir, const char *name)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if ((f = fopen(path, "wb")) == NULL)
        fail("%s: %s", path, strerror(errno));
    return f;
}

static void
put(FILE *f, const void *p, size_t n)
{
    if (fwrite(p, 1, n, f) != n)
        fail("write: %s", strerror(errno));
}

static void
done(FILE *f)
{
    if (fclose(f) != 0)
        fail("close: %s", strerror(errno));
}

static void
write_file(const char *out, const json_t *file, uint64_t seed)
{
    json_t *tensors = json_object_get(file, "tensors"), *head = json_object(), *t;
    FILE *f = create(out, string(file, "file"));
    uint64_t at = 0, len;
    char *text;
    size_t i;

    json_object_set_new(head, "__metadata__", json_pack("{ss}", "format", "pt"));
    json_array_foreach(tensors, i, t) {
        uint64_t end = at + elements(t) * size_of(string(t, "dtype"));

        json_object_set_new(head, string(t, "name"), json_pack("{s:s,s:O,s:[I,I]}",
            "dtype", string(t, "dtype"), "shape", json_object_get(t, "shape"),
            "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    text = json_dumps(head, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(head);
    if (text == NULL)
        fail("out of memory");
    len = (strlen(text) + 7) & ~(uint64_t)7;
    put(f, &len, 8);        /* little-endian machines only, like everything here */
    put(f, text, strlen(text));
    put(f, "       ", len - strlen(text));
    free(text);
    json_array_foreach(tensors, i, t) {
        size_t n;
        unsigned char *p = make(t, seed, &n);

        check(t, p, n);
        put(f, p, n);
        free(p);
    }
    done(f);
}

static void
write_index(const char *out, const json_t *files)
{
    json_t *map = json_object(), *file, *t, *index;
    uint64_t total = 0;
    size_t i, k;
    char *text;
    FILE *f;

    json_array_foreach(files, i, file) {
        json_array_foreach(json_object_get(file, "tensors"), k, t) {
            json_object_set(map, string(t, "name"), json_object_get(file, "file"));
            total += elements(t) * size_of(string(t, "dtype"));
        }
    }
    index = json_pack("{s:{s:I},s:o}", "metadata", "total_size", (json_int_t)total,
        "weight_map", map);
    text = json_dumps(index, JSON_INDENT(1));
    json_decref(index);
    f = create(out, "model.safetensors.index.json");
    put(f, text, strlen(text));
    free(text);
    done(f);
}

static void
copy(const char *src, const char *out, const char *name)
{
    char path[4096], piece[65536];
    FILE *from, *to;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", src, name);
    if ((from = fopen(path, "rb")) == NULL)
        fail("%s: %s", path, strerror(errno));
    to = create(out, name);
    while ((n = fread(piece, 1, sizeof(piece), from)) > 0)
        put(to, piece, n);
    done(from);
    done(to);
}

static void
copy_others(const char *src, const char *out)
{
    DIR *d = opendir(src);
    struct dirent *x;

    if (d == NULL)
        fail("%s: %s", src, strerror(errno));
    while ((x = readdir(d)) != NULL) {
        if (x->d_name[0] != '.' && strcmp(x->d_name, "weights.json") != 0 &&
            strncmp(x->d_name, "golden.", 7) != 0)
            copy(src, out, x->d_name);
    }
    closedir(d);
}

int
main(int argc, char **argv)
{
    json_t *w, *files, *file;
    char path[4096];
    json_error_t je;
    size_t i;

    if (argc != 3)
        fail("usage: golden_model SRC OUT");
    snprintf(path, sizeof(path), "%s/weights.json", argv[1]);
    if ((w = json_load_file(path, 0, &je)) == NULL)
        fail("%s: %s", path, je.text);
    if (mkdir(argv[2], 0777) != 0)
        fail("%s: %s", argv[2], strerror(errno));
    files = json_object_get(w, "files");
    json_array_foreach(files, i, file)
        write_file(argv[2], file, (uint64_t)number(w, "seed"));
    if (json_array_size(files) > 1)
        write_index(argv[2], files);
    copy_others(argv[1], argv[2]);
    json_decref(w);
    return 0;
}
