/* SPDX-License-Identifier: Apache-2.0 */
/*
 * golden_logits prompts FILE.json: the prompts of a golden.json, one list of
 * ids a line.
 * golden_logits compare GOT GOLDEN LIMIT: whether every tensor of GOLDEN is in
 * GOT and differs by no more than LIMIT; where GOLDEN has fewer rows they are
 * the last ones. Prints the largest difference. Status 0 yes, 1 no, 2 trouble.
 * Reads safetensors without the library's own reader.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
prompts(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(root, "prompts"), *p, *id;
    size_t i, k;

    if (list == NULL)
        trouble(path, "no prompts");
    json_array_foreach (list, i, p) {
        json_array_foreach (p, k, id)
            printf("%s%lld", k == 0 ? "" : " ", (long long)json_integer_value(id));
        putchar('\n');
    }
    json_decref(root);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "prompts") == 0)
        return prompts(argv[2]);
    if (argc == 5 && strcmp(argv[1], "compare") == 0)
        return compare(argv[2], argv[3], strtod(argv[4], NULL));
    fputs("usage: golden_logits prompts JSON | golden_logits compare GOT GOLDEN LIMIT\n", stderr);
    return 2;
}
