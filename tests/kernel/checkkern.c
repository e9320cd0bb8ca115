/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of checks, the buffers and numbers they share, and main:
 * checkkern [--bench] [--tier=NAME] [CHECK ...]
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/kernel/checkkern.h"
#include "tests/tap.h"

extern const struct ck_check check_chains;
extern const struct ck_check check_convert;
extern const struct ck_check check_crc32c;
extern const struct ck_check check_dot;
extern const struct ck_check check_ema;
extern const struct ck_check check_errsum;
extern const struct ck_check check_grid;
extern const struct ck_check check_gemm;
extern const struct ck_check check_gemm_packed;
extern const struct ck_check check_groupq;
extern const struct ck_check check_rmsnorm;
extern const struct ck_check check_rope;
extern const struct ck_check check_sha256;
extern const struct ck_check check_silu;
extern const struct ck_check check_softmax;
extern const struct ck_check check_topk;
extern const struct ck_check check_xor;
extern const struct ck_check check_wsum;

static const struct ck_check *const checks[] = {
    &check_chains,
    &check_convert,
    &check_crc32c,
    &check_dot,
    &check_ema,
    &check_errsum,
    &check_grid,
    &check_gemm,
    &check_gemm_packed,
    &check_groupq,
    &check_rmsnorm,
    &check_rope,
    &check_sha256,
    &check_silu,
    &check_softmax,
    &check_topk,
    &check_xor,
    &check_wsum,
};

#define GUARD 64
#define PATTERN 0xa5
#define SHOWN 4                 /* failing cases printed a line */

static struct {
    uint8_t *end, *start;
} slots[CK_SLOTS];

static struct {
    const char *op, *tier;
    size_t cases, bad;
} line;

static const char *only_tier;   /* NULL: all */
static uint64_t rand_state = 0x9e3779b97f4a7c15u;

const struct moe_kernels *
ck_ref(void)
{
    return moe_kernels_tier("ref");
}

const struct moe_kernels *
ck_tier(size_t i)
{
    static const char *const names[] = { "avx2", "avx512" };

    if (only_tier != NULL)
        return i == 0 ? moe_kernels_tier(only_tier) : NULL;
    return i < sizeof(names) / sizeof(names[0]) ? moe_kernels_tier(names[i]) : NULL;
}

static void
slot_map(int s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, CK_BYTES + 2 * page, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED || mprotect(p + page + CK_BYTES, page, PROT_NONE) != 0) {
        perror("checkkern: mmap");
        exit(2);
    }
    slots[s].end = p + page + CK_BYTES;
}

void *
ck_buf(int s, size_t n)
{
    if (s < 0 || s >= CK_SLOTS || n > CK_BYTES) {
        fprintf(stderr, "checkkern: no slot %d of %zu bytes\n", s, n);
        exit(2);
    }
    if (slots[s].end == NULL)
        slot_map(s);
    slots[s].start = slots[s].end - n;
    memset(slots[s].start - GUARD, PATTERN, n + GUARD);
    return slots[s].start;
}

bool
ck_intact(int s)
{
    for (int i = 1; i <= GUARD; i++)
        if (slots[s].start[-i] != PATTERN)
            return false;
    return true;
}

const char *
ck_kind_name(enum ck_kind kind)
{
    static const char *const names[CK_KINDS] = { "random", "equal", "extreme", "special" };

    return names[kind];
}

/* xorshift64*: Vigna 2016, "An experimental exploration of Marsaglia's xorshift generators". */
uint32_t
ck_rand(void)
{
    rand_state ^= rand_state >> 12;
    rand_state ^= rand_state << 25;
    rand_state ^= rand_state >> 27;
    return (uint32_t)(rand_state * 0x2545f4914f6cdd1du >> 32);
}

static float
number(enum ck_kind kind, float equal)
{
    static const float extreme[] = { 0x1.fffffep+127f, -0x1.fffffep+127f, 0x1p-126f, -0x1p-149f,
        0x1.8p-140f, 0.0f, -0.0f, 1.0f, -0x1.8p+60f, 0x1.4p-70f };
    float x = (float)(int32_t)ck_rand() * 0x1p-31f;

    if (kind == CK_EQUAL)
        return equal;
    if (kind == CK_EXTREME)
        return extreme[ck_rand() % (sizeof(extreme) / sizeof(extreme[0]))];
    if (kind == CK_SPECIAL)
        switch (ck_rand() % 64) {
        case 0: return NAN;
        case 1: return INFINITY;
        case 2: return -INFINITY;
        }
    return x;
}

void
ck_f32(float *x, size_t n, enum ck_kind kind)
{
    float equal = number(CK_RANDOM, 0);

    for (size_t i = 0; i < n; i++)
        x[i] = number(kind, equal);
}

void
ck_bf16(uint16_t *x, size_t n, enum ck_kind kind)
{
    float equal = number(CK_RANDOM, 0);

    for (size_t i = 0; i < n; i++) {
        float v = number(kind, equal);
        uint32_t u;

        memcpy(&u, &v, sizeof(u));
        x[i] = (uint16_t)(u >> 16);
    }
}

/* Random bit patterns of the exponent's range a kind stands for. */
void
ck_f16(uint16_t *x, size_t n, enum ck_kind kind)
{
    uint16_t equal = (uint16_t)(ck_rand() & 0xbfff);

    for (size_t i = 0; i < n; i++) {
        uint16_t sign = (uint16_t)(ck_rand() & 0x8000), m = (uint16_t)(ck_rand() & 0x3ff);
        static const uint16_t extreme[] = { 0x7bff, 0x0400, 0x0001, 0x03ff, 0x0000 };

        if (kind == CK_EQUAL)
            x[i] = equal;
        else if (kind == CK_EXTREME)
            x[i] = sign | extreme[ck_rand() % 5];
        else if (kind == CK_SPECIAL && ck_rand() % 32 == 0)
            x[i] = sign | 0x7c00 | (ck_rand() % 2 ? m : 0);
        else
            x[i] = sign | (uint16_t)((8 + ck_rand() % 8) << 10) | m;
    }
}

bool
ck_same_f32(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof(a[i])) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

void
ck_begin(const char *op, const char *tier)
{
    line.op = op;
    line.tier = tier;
    line.cases = line.bad = 0;
}

bool
ck_expect(bool yes, const char *fmt, ...)
{
    va_list ap;

    line.cases++;
    if (yes)
        return true;
    if (line.bad++ < SHOWN) {
        printf("# %s %s: ", line.op, line.tier);
        va_start(ap, fmt);
        vprintf(fmt, ap);
        va_end(ap);
        putchar('\n');
    }
    return false;
}

void
ck_end(void)
{
    tap_ok(line.bad == 0 && line.cases > 0, "%s %s: %zu cases, %zu differ", line.op, line.tier,
        line.cases, line.bad);
}

static bool
wanted(const char *name, char **names)
{
    if (*names == NULL)
        return true;
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

int
main(int argc, char **argv)
{
    bool bench = false;

    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++)
        if (strcmp(argv[1], "--bench") == 0) {
            bench = true;
        } else if (strncmp(argv[1], "--tier=", 7) == 0) {
            only_tier = argv[1] + 7;
        } else {
            fprintf(stderr, "usage: checkkern [--bench] [--tier=NAME] [CHECK ...]\n");
            return 2;
        }
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (!wanted(checks[i]->name, argv + 1))
            continue;
        if (!bench)
            checks[i]->run();
        else if (checks[i]->bench != NULL)
            checks[i]->bench();
    }
    return bench ? 0 : tap_done();
}
