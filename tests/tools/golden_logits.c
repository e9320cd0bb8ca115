/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_logits prompts FILE.json: the prompts of a golden.json, one list of
 * ids a line. golden_logits steps FILE.json: each with its greedy tokens behind.
 * golden_logits greedy GOT FILE.json: whether the largest logit after each
 * token of `steps` is the next greedy token, wherever the gap to the second is
 * not too small; at least nine of ten steps must be compared.
 * golden_logits compare GOT GOLDEN LIMIT: whether every tensor of GOLDEN is in
 * GOT and differs by no more than LIMIT; where GOLDEN has fewer rows they are
 * the last ones. Prints the largest difference. Status 0 yes, 1 no, 2 trouble.
 * Reads safetensors without the library's own reader.
 */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP 1e-3        /* of the two largest logits: below it they may trade places */

struct file {
    unsigned char *p;
    size_t n;
    json_t *header;
    const unsigned char *data;
};

static int
trouble(const char *path, const char *what)
{
    fprintf(stderr, "golden_logits: %s: %s\n", path, what);
    exit(2);
}

static struct file
load(const char *path)
{
    struct file f = { NULL, 0, NULL, NULL };
    FILE *in = fopen(path, "rb");
    uint64_t head = 0;
    long size;

    if (in == NULL || fseek(in, 0, SEEK_END) != 0 || (size = ftell(in)) < 8)
        trouble(path, "cannot be read");
    rewind(in);
    f.n = (size_t)size;
    f.p = malloc(f.n);
    if (f.p == NULL || fread(f.p, 1, f.n, in) != f.n)
        trouble(path, "cannot be read");
    fclose(in);
    for (int i = 7; i >= 0; i--)
        head = head << 8 | f.p[i];
    if (head > f.n - 8)
        trouble(path, "header past the end");
    f.header = json_loadb((char *)f.p + 8, head, 0, NULL);
    f.data = f.p + 8 + head;
    if (f.header == NULL)
        trouble(path, "no header");
    return f;
}

/* Floats of a tensor and how many; NULL if there is none. */
static const unsigned char *
floats(const struct file *f, const char *path, const char *name, size_t *n)
{
    const json_t *t = json_object_get(f->header, name);
    const json_t *at = json_object_get(t, "data_offsets");
    size_t begin = (size_t)json_integer_value(json_array_get(at, 0));
    size_t end = (size_t)json_integer_value(json_array_get(at, 1));

    if (t == NULL)
        return NULL;
    if (end < begin || end > f->n - (size_t)(f->data - f->p))
        trouble(path, "data past the end");
    *n = (end - begin) / 4;
    return f->data + begin;
}

static int
compare(const char *got_path, const char *want_path, double limit)
{
    struct file got = load(got_path), want = load(want_path);
    const char *name;
    json_t *t;
    double worst = 0;
    size_t tensors = 0;

    json_object_foreach (want.header, name, t) {
        size_t n = 0, m = 0;
        const unsigned char *w = floats(&want, want_path, name, &n), *g;

        if (strcmp(name, "__metadata__") == 0)
            continue;
        if ((g = floats(&got, got_path, name, &m)) == NULL || m < n)
            trouble(got_path, name);
        for (size_t i = 0; i < n; i++) {
            float a, b;

            memcpy(&a, g + 4 * (m - n + i), 4);
            memcpy(&b, w + 4 * i, 4);
            worst = fabs((double)a - (double)b) <= worst ? worst : fabs((double)a - (double)b);
        }
        tensors++;
    }
    printf("%zu lists, largest difference %.2e\n", tensors, worst);
    json_decref(got.header);
    json_decref(want.header);
    free(got.p);
    free(want.p);
    return tensors > 0 && worst <= limit ? 0 : 1;
}

static int
prompts(const char *path, bool steps)
{
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(root, "prompts"), *p, *id;
    const json_t *greedy = json_object_get(root, "greedy");
    size_t i, k;

    if (list == NULL || (steps && greedy == NULL))
        trouble(path, "no prompts");
    json_array_foreach (list, i, p) {
        json_array_foreach (p, k, id)
            printf("%s%lld", k == 0 ? "" : " ", (long long)json_integer_value(id));
        json_array_foreach (json_array_get(steps ? greedy : NULL, i), k, id)
            printf(" %lld", (long long)json_integer_value(id));
        putchar('\n');
    }
    json_decref(root);
    return 0;
}

static size_t
largest(const unsigned char *row, size_t n)
{
    float best = -INFINITY, v;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        memcpy(&v, row + 4 * i, 4);
        if (v > best) {
            best = v;
            at = i;
        }
    }
    return at;
}

static int
greedy(const char *got_path, const char *path)
{
    struct file got = load(got_path);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(root, "greedy"), *ids, *id;
    size_t i, k, steps = 0, compared = 0, equal = 0;
    char name[32];

    json_array_foreach (list, i, ids) {
        size_t from = json_array_size(json_array_get(json_object_get(root, "prompts"), i)) - 1;
        const json_t *gaps = json_array_get(json_object_get(root, "gap"), i);
        const unsigned char *p;
        size_t n = 0, vocab;

        snprintf(name, sizeof(name), "logits_%zu", i);
        if ((p = floats(&got, got_path, name, &n)) == NULL)
            trouble(got_path, name);
        vocab = n / (from + 1 + json_array_size(ids));
        json_array_foreach (ids, k, id) {
            bool on = json_number_value(json_array_get(gaps, k)) > GAP;

            steps++;
            compared += on;
            equal += on && (json_int_t)largest(p + 4 * vocab * (from + k), vocab)
                == json_integer_value(id);
        }
    }
    printf("%zu of %zu steps compared, %zu equal\n", compared, steps, equal);
    json_decref(root);
    json_decref(got.header);
    free(got.p);
    return steps > 0 && compared * 10 >= steps * 9 && equal == compared ? 0 : 1;
}

int
main(int argc, char **argv)
{
    if (argc == 3 && (strcmp(argv[1], "prompts") == 0 || strcmp(argv[1], "steps") == 0))
        return prompts(argv[2], argv[1][0] == 's');
    if (argc == 4 && strcmp(argv[1], "greedy") == 0)
        return greedy(argv[2], argv[3]);
    if (argc == 5 && strcmp(argv[1], "compare") == 0)
        return compare(argv[2], argv[3], strtod(argv[4], NULL));
    fputs("usage: golden_logits prompts|steps JSON | greedy GOT JSON | compare GOT GOLDEN LIMIT\n",
        stderr);
    return 2;
}
