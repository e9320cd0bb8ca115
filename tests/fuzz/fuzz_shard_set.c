/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe-cut.json and the header of a file m.safetensors from any bytes: two bytes
 * of length, so much JSON, the rest the header. The program's reader is no part
 * of the library, it is compiled in.
 */
/* covers: cmd/moe-shard/shard_set.c */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cmd/moe-shard/shard_set.c"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static char dir[] = P_tmpdir "/moe-fuzz-XXXXXX";

static void
put(int at, const char *name, const void *p, size_t n)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    close(fd);
}

static void
clean(void)
{
    static const char *const names[] = { "moe-cut.json", "config.json",
        "source/m.safetensors.head" };
    int at = open(dir, O_RDONLY | O_DIRECTORY);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlinkat(at, names[i], 0);
    (void)unlinkat(at, "source", AT_REMOVEDIR);
    close(at);
    (void)rmdir(dir);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char config[] = "{\"model_type\":\"mixtral\",\"num_hidden_layers\":2,"
        "\"num_local_experts\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
        "\"hidden_size\":64}";
    static int at = -1;
    struct moe_err e = { 0, "" };
    struct shard_set s;
    size_t len = n < 2 ? 0 : (size_t)p[0] + 256 * (size_t)p[1];

    if (n < 2 || len > n - 2)
        return 0;
    if (at < 0) {
        if (mkdtemp(dir) == NULL || (at = open(dir, O_RDONLY | O_DIRECTORY)) < 0 ||
            mkdirat(at, "source", 0700) != 0 || atexit(clean) != 0)
            abort();
        put(at, "config.json", config, sizeof(config) - 1);
    }
    put(at, "moe-cut.json", p + 2, len);
    put(at, "source/m.safetensors.head", p + 2 + len, n - 2 - len);
    if (shard_set_read(at, "fuzz", &s, &e) == 0) {
        struct moe_buf b = MOE_BUF_INIT;

        record(&s, &b);
        moe_buf_fini(&b);
        shard_set_fini(&s);
    } else if (e.code == 0 || e.text[0] == '\0') {
        abort();
    }
    return 0;
}
