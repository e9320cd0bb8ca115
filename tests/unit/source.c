/* SPDX-License-Identifier: Apache-2.0 */
/* Opening models: directory, index, file, GGUF, stream, and every way it is refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/formats/source.h"
#include "tests/golden.h"
#include "tests/scratch.h"
#include "tests/tap.h"

static struct moe_err err;
static char dir[100];           /* a directory of our own */

static const char *
in(const char *name)
{
    static char path[4][512];
    static int k;

    k = (k + 1) % 4;
    snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
    return path[k];
}

static void
put(const char *name, const char *text, size_t n)
{
    FILE *f = fopen(in(name), "wb");

    if (f == NULL || fwrite(text, 1, n, f) != n || fclose(f) != 0)
        exit(1);
}

/* A file of U8 tensors, one a letter of names, n bytes each: 'a' + position. */
static void
model(const char *file, const char *names, size_t n)
{
    struct moe_tensor t[16] = { { .rank = 0 } };
    char name[16][2];
    uint64_t shape = n;
    struct moe_buf b = MOE_BUF_INIT;
    size_t k = strlen(names);

    for (size_t i = 0; i < k; i++) {
        snprintf(name[i], 2, "%c", names[i]);
        t[i] = (struct moe_tensor){ .name = name[i], .dtype = MOE_U8, .rank = 1, .shape = &shape };
    }
    moe_safet_write(&b, t, k, NULL, 8, NULL);
    for (size_t i = 0; i < k * n; i++)
        moe_buf_byte(&b, (char)('A' + i));
    put(file, b.p, b.len);
    moe_buf_fini(&b);
}

static void
text(const char *name, const char *s)
{
    put(name, s, strlen(s));
}

static void
fresh(void)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf '%s' && mkdir '%s'", dir, dir);
    if (system(command) != 0)
        exit(1);
}

static void
refused(const char *path, int code, const char *words, const char *what)
{
    struct moe_source *s;
    int rc = moe_source_open(path, &s, &err);

    tap_ok(rc == code && s == NULL && strstr(err.text, words) != NULL, "%s: %s", what, err.text);
    moe_source_close(s);
}

static void
check_kjv(void)
{
    struct moe_source *s;
    struct moe_buf b = MOE_BUF_INIT;
    const char *const *want = (const char *const []){ "chat_template.jinja", "config.json",
        "generation_config.json", "special_tokens_map.json", "tokenizer.json",
        "tokenizer_config.json", NULL };
    size_t n = 0, same = 0;
    uint64_t bytes;
    const void *p;
    char piece[64];

    if (!tap_is_int(moe_source_open("tests/data/kjv-moe", &s, &err), 0, "kjv-moe opens: %s",
        err.text))
        return;
    tap_ok(moe_source_is_dir(s) && !moe_source_is_stream(s) && moe_source_gguf(s) == NULL, "kind");
    tap_ok(moe_source_files(s) == 1 && strcmp(moe_source_file(s, 0), "model.safetensors") == 0,
        "model.safetensors alone, not what lies beside it");
    tap_is_str(moe_source_config(s)->family, "qwen3_moe", "its configuration");
    while (moe_source_aux_name(s, n) != NULL) {
        same += want[n] != NULL && strcmp(want[n], moe_source_aux_name(s, n)) == 0;
        n++;
    }
    tap_ok(n == 6 && same == 6, "the files that go with it");
    tap_ok(moe_source_aux_size(s, "config.json", &bytes, &err) == 0 &&
        moe_source_aux(s, "config.json", 1 << 20, &b, &err) == 0 && b.len == bytes, "its size");
    tap_is_int(moe_source_aux_size(s, "nothing", &bytes, &err), MOE_ENOENT, "of nothing");
    tap_is_int(moe_source_aux(s, "heldout.txt", 16, &b, &err), MOE_ELIMIT, "a limit: %s", err.text);
    tap_is_int(moe_source_aux(s, "../README.md", 1 << 20, &b, &err), MOE_EFORMAT, "beneath: %s",
        err.text);
    tap_is_int(moe_source_aux(s, "nothing", 1 << 20, &b, &err), MOE_ENOENT, "missing: %s",
        err.text);
    n = moe_source_find(s, "model.norm.weight");
    tap_ok(n != SIZE_MAX && strcmp(moe_source_at(s, n)->name, "model.norm.weight") == 0, "found");
    tap_ok(moe_source_find(s, "model.norm") == SIZE_MAX, "not found");
    tap_ok(moe_source_read(s, n, 2, piece, 64, &err) == 0 && moe_source_map(s, n, &p, &err) == 0 &&
        memcmp((const char *)p + 2, piece, 64) == 0, "read and mapped alike");
    tap_is_int(moe_source_read(s, n, moe_source_at(s, n)->end - moe_source_at(s, n)->begin - 1,
        piece, 2, &err), MOE_EFORMAT, "past the end: %s", err.text);
    moe_source_close(s);
    moe_buf_fini(&b);
}

#define INDEX "model.safetensors.index.json"

static void
check_index(void)
{
    struct moe_source *s;
    char c[3] = "";
    size_t n;

    fresh();
    model("m-2.safetensors", "cb", 2);
    model("m-1.safetensors", "a", 2);
    text(INDEX, "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\","
        "\"c\":\"m-2.safetensors\"}}");
    model("other.safetensors", "a", 2);
    if (!tap_is_int(moe_source_open(dir, &s, &err), 0, "an index: %s", err.text))
        return;
    tap_ok(moe_source_n(s) == 3 && strcmp(moe_source_at(s, 0)->name, "a") == 0 &&
        strcmp(moe_source_at(s, 1)->name, "c") == 0, "files by name, tensors by data");
    tap_ok(moe_source_file_of(s, 2) == 1 && moe_source_bytes(s) == 6, "places");
    n = moe_source_find(s, "b");
    tap_ok(moe_source_read(s, n, 0, c, 2, &err) == 0 && strcmp(c, "CD") == 0, "data");
    tap_ok(moe_source_config(s) == NULL && moe_source_aux_name(s, 0) == NULL, "no configuration");
    moe_source_close(s);

    model("model.safetensors", "z", 2);
    refused(dir, MOE_EFORMAT, "model.safetensors", "an index beside another model");
    unlink(in("model.safetensors"));
    model("m-1.safetensors", "ax", 2);
    refused(dir, MOE_EFORMAT, "tensor x of m-1.safetensors is not in the weight_map", "one more");
    model("m-1.safetensors", "x", 2);
    refused(dir, MOE_EFORMAT, "tensor a is not in m-1.safetensors", "one less");
    unlink(in("m-1.safetensors"));
    refused(dir, MOE_ENOENT, "m-1.safetensors", "a file is missing");
    text("m-1.safetensors", "");
    refused(dir, MOE_EFORMAT, "m-1.safetensors", "an empty file");
}

static void
check_escape(void)
{
    fresh();
    mkdir(in("in"), 0777);
    model("a.safetensors", "a", 1);
    text("in/" INDEX, "{\"weight_map\":{\"a\":\"../a.safetensors\"}}");
    refused(in("in"), MOE_EFORMAT, "../a.safetensors", "an index with ..");
    text("in/" INDEX, "{\"weight_map\":{\"a\":\"/etc/a.safetensors\"}}");
    refused(in("in"), MOE_EFORMAT, "/etc/a.safetensors", "an absolute name");
    text("in/" INDEX, "{\"weight_map\":{\"a\":\"l.safetensors\"}}");
    if (symlink("../a.safetensors", in("in/l.safetensors")) != 0)
        exit(1);
    refused(in("in"), MOE_EFORMAT, "l.safetensors", "a link that leads out");
    unlink(in("in/" INDEX));
    refused(in("in"), MOE_EFORMAT, "l.safetensors", "the same without an index");
}

static void
check_several(void)
{
    struct moe_source *s;

    fresh();
    refused(dir, MOE_ENOENT, "no weights", "an empty directory");
    model("b.safetensors", "b", 1);
    model("a.safetensors", "a", 1);
    model(".hidden.safetensors", "h", 1);
    tap_ok(moe_source_open(dir, &s, &err) == 0 && moe_source_files(s) == 2 &&
        moe_source_n(s) == 2, "several files without an index");
    moe_source_close(s);
    model("c.safetensors", "ca", 1);
    refused(dir, MOE_EFORMAT, "tensor a in both a.safetensors and c.safetensors", "a tensor twice");
    model("model.safetensors", "", 1);
    refused(dir, MOE_EFORMAT, "no tensors", "no tensors");
    model("model.safetensors", "m", 1);
    text("config.json", "{\"model_type\":\"m\",\"hidden_size\":true}");
    refused(dir, MOE_EFORMAT, "config.json: hidden_size", "a wrong configuration");
    text("config.json", "");
    refused(dir, MOE_EFORMAT, "config.json", "an empty configuration");
    refused(in("missing"), MOE_ENOENT, "missing", "nothing there");
    refused("/dev/null", MOE_EFORMAT, "/dev/null", "a device");
}

/* More files than are held open: each is opened for its reads. */
static void
check_many(void)
{
    struct moe_source *s;
    char name[16], file[32], c = 0;
    size_t right = 0, n = MOE_SOURCE_OPEN + 20;
    FILE *f;

    fresh();
    f = fopen(in(INDEX), "w");
    fputs("{\"weight_map\":{", f);
    for (size_t i = 0; i < n; i++) {
        struct moe_buf b = MOE_BUF_INIT;
        struct moe_tensor t = { .name = name, .dtype = MOE_U8 };

        snprintf(name, sizeof(name), "t%03zu", i);
        moe_safet_write(&b, &t, 1, NULL, 8, NULL);
        moe_buf_byte(&b, (char)i);
        fprintf(f, "%s\"%s\":\"%s.safetensors\"", i > 0 ? "," : "", name, name);
        snprintf(file, sizeof(file), "%s.safetensors", name);
        put(file, b.p, b.len);
        moe_buf_fini(&b);
    }
    fputs("}}", f);
    fclose(f);
    if (!tap_is_int(moe_source_open(dir, &s, &err), 0, "%zu files: %s", n, err.text))
        return;
    for (size_t i = 0; i < n; i++)
        right += moe_source_read(s, i, 0, &c, 1, &err) == 0 && (unsigned char)c == i;
    tap_is_int((long long)right, (long long)n, "all are read");
    text("t147.safetensors", "another");
    tap_is_int(moe_source_read(s, n - 1, 0, &c, 1, &err), MOE_EFORMAT, "a file that changed: %s",
        err.text);
    moe_source_close(s);
}

static void
check_file(void)
{
    static const char *const meta[] = { "moe.config", "{\"model_type\":\"m\",\"hidden_size\":64,"
        "\"num_hidden_layers\":2,\"vocab_size\":100,\"num_attention_heads\":4}", NULL };
    struct moe_tensor t = { .name = "t", .dtype = MOE_U8 };
    struct moe_buf b = MOE_BUF_INIT;
    struct moe_source *s;

    fresh();
    moe_safet_write(&b, &t, 1, meta, 8, NULL);
    moe_buf_byte(&b, 'x');
    put("m.safetensors", b.p, b.len);
    tap_ok(moe_source_open(in("m.safetensors"), &s, &err) == 0 && !moe_source_is_dir(s) &&
        strcmp(moe_source_config(s)->family, "m") == 0, "one file with a configuration inside");
    tap_is_int(moe_source_aux(s, "config.json", 99, &b, &err), MOE_ENOENT, "no files beside it");
    moe_source_close(s);
    put("cut.safetensors", b.p, b.len - 1);
    refused(in("cut.safetensors"), MOE_EFORMAT, "cut.safetensors", "a truncated file");
    refused("tests/data/safetensors/ok_names.safetensors", MOE_EFORMAT, "NUL", "a NUL in a name");
    refused("tests/data/safetensors/bad_overlap.safetensors", MOE_EFORMAT, "overlap", "overlap");
    moe_buf_fini(&b);
}

static void
check_gguf(void)
{
    struct moe_source *s;
    const struct moe_tensor *t;
    unsigned char *p;
    json_t *golden = golden_json("quant/gguf_file/qwen3_moe-cut-q8_0.json");
    json_t *want = json_object_get(golden, "tensors"), *x;
    size_t i, bad = 0;

    if (!tap_is_int(moe_source_open("tests/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf", &s,
        &err), 0, "a GGUF file: %s", err.text))
        return;
    tap_is_int((long long)moe_source_n(s), (long long)json_array_size(want), "its tensors");
    t = moe_source_at(s, moe_source_find(s, "output.weight"));
    tap_ok(moe_source_gguf(s) != NULL && t->dtype == MOE_U8 && t->rank == 2 &&
        t->shape[0] == 640 && t->shape[1] == 136, "Q8_0 as bytes");
    json_array_foreach(want, i, x) {
        size_t k = moe_source_find(s, json_string_value(json_array_get(x, 0)));
        size_t n;

        t = moe_source_at(s, k);
        n = (size_t)(t->end - t->begin);
        p = malloc(n);
        bad += moe_source_read(s, k, 0, p, n, &err) != 0 ||
            strcmp(golden_sha256(p, n), json_string_value(json_array_get(x, 5))) != 0;
        free(p);
    }
    tap_is_int((long long)bad, 0, "every tensor has its digest");
    json_decref(golden);
    moe_source_close(s);
}

static int
from_stdin(const char *path, struct moe_source **s)
{
    int fd = open(path, O_RDONLY);

    dup2(fd, 0);
    close(fd);
    return moe_source_open("-", s, &err);
}

static void
check_stream(void)
{
    struct moe_source *s;
    char c[4] = "";

    fresh();
    model("m.safetensors", "abc", 2);
    if (!tap_is_int(from_stdin(in("m.safetensors"), &s), 0, "a stream: %s", err.text))
        return;
    tap_ok(moe_source_is_stream(s) && moe_source_n(s) == 3 && moe_source_bytes(s) == 6, "kind");
    tap_ok(moe_source_read(s, 0, 1, c, 1, &err) == 0 && c[0] == 'B', "a part");
    tap_ok(moe_source_read(s, 2, 0, c, 2, &err) == 0 && memcmp(c, "EF", 2) == 0, "one left out");
    tap_is_int(moe_source_read(s, 1, 0, c, 2, &err), MOE_EUNSUP, "backwards: %s", err.text);
    moe_source_close(s);
    put("m.safetensors", "", 0);
    tap_is_int(from_stdin(in("m.safetensors"), &s), MOE_EFORMAT, "an empty stream: %s", err.text);
    tap_is_int(from_stdin("tests/data/safetensors/bad_trailing_1.safetensors", &s), 0,
        "bytes after the end are not seen yet");
    {
        const struct moe_tensor *t = moe_source_at(s, moe_source_n(s) - 1);
        char big[64];

        tap_is_int(moe_source_read(s, moe_source_n(s) - 1, 0, big, (size_t)(t->end - t->begin),
            &err), MOE_EFORMAT, "but then: %s", err.text);
    }
    moe_source_close(s);
}

int
main(void)
{
    char root[4096], scratch[80];

    if (getcwd(root, sizeof(root)) == NULL)
        return 1;
    scratch_enter();
    if (getcwd(scratch, sizeof(scratch)) == NULL || chdir(root) != 0)
        return 1;
    snprintf(dir, sizeof(dir), "%s/model", scratch);
    check_kjv();
    check_index();
    check_escape();
    check_several();
    check_many();
    check_file();
    check_gguf();
    check_stream();
    scratch_leave();
    return tap_done();
}
