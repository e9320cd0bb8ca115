/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging against a plain reading of the rule: merge the leftmost pair of lowest
 * rank until there is none. Random merges over a small alphabet.
 */
#include <stdlib.h>
#include <string.h>

#include "common/engine/bpe.h"
#include "tests/tap.h"

enum { MAX_TOKENS = 64, MAX_WORD = 400 };

struct model {
    struct moe_vocab vocab;
    struct moe_bpe bpe;
    char text[MAX_TOKENS][MAX_WORD];
    int n, left[MAX_TOKENS], right[MAX_TOKENS], n_merges;
    int merge[MAX_TOKENS];      /* the token that merge i makes */
};

static unsigned
dice(unsigned *seed, unsigned n)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % n;
}

static void
make(struct model *m, unsigned *seed)
{
    memset(m, 0, sizeof(*m));
    for (; m->n < 3; m->n++)
        m->text[m->n][0] = (char)('a' + m->n);
    for (int tries = 0; m->n < 40 && tries < 400; tries++) {
        int l = (int)dice(seed, (unsigned)m->n), r = (int)dice(seed, (unsigned)m->n);
        size_t n = strlen(m->text[l]), k = strlen(m->text[r]);
        bool there = false;

        if (n + k > 12)
            continue;
        memcpy(m->text[m->n], m->text[l], n);
        memcpy(m->text[m->n] + n, m->text[r], k + 1);
        for (int i = 0; i < m->n; i++)
            there = there || strcmp(m->text[i], m->text[m->n]) == 0;
        if (there)
            continue;
        m->left[m->n_merges] = l;
        m->right[m->n_merges] = r;
        m->merge[m->n_merges++] = m->n++;
    }
    for (int i = 0; i < m->n; i++)
        (void)moe_vocab_add(&m->vocab, m->text[i], strlen(m->text[i]), (uint64_t)i, MAX_TOKENS,
            NULL);
    moe_bpe_init(&m->bpe, &m->vocab);
    for (int i = 0; i < m->n_merges; i++)
        (void)moe_bpe_add(&m->bpe, m->text[m->left[i]], strlen(m->text[m->left[i]]),
            m->text[m->right[i]], strlen(m->text[m->right[i]]), NULL);
}

/* The rule, read plainly. */
static size_t
plain(const struct model *m, const char *word, size_t n, uint32_t *id)
{
    for (size_t i = 0; i < n; i++)
        id[i] = (uint32_t)(word[i] - 'a');
    for (;;) {
        size_t at = 0;
        int best = m->n_merges;

        for (size_t i = 0; i + 1 < n; i++)
            for (int k = 0; k < best; k++)
                if ((uint32_t)m->left[k] == id[i] && (uint32_t)m->right[k] == id[i + 1]) {
                    best = k;
                    at = i;
                }
        if (best == m->n_merges)
            return n;
        id[at] = (uint32_t)m->merge[best];
        memmove(id + at + 1, id + at + 2, (n - at - 2) * sizeof(*id));
        n--;
    }
}

int
main(void)
{
    static struct model m;
    unsigned seed = 1;
    int wrong = 0, words = 0;

    for (int round = 0; round < 30; round++) {
        struct moe_tokens got = MOE_TOKENS_INIT;
        struct moe_bpe_run *run = NULL;

        make(&m, &seed);
        if (moe_bpe_run_new(&m.bpe, &got, &run, NULL) != 0)
            break;
        for (int i = 0; i < 60; i++) {
            char word[MAX_WORD];
            uint32_t want[MAX_WORD];
            size_t n = 1 + dice(&seed, i % 4 == 0 ? 300 : 12), k, was = got.n;

            for (size_t c = 0; c < n; c++)
                word[c] = (char)('a' + dice(&seed, 3));
            k = plain(&m, word, n, want);
            words++;
            /* The second time a short word is remembered. */
            for (int twice = 0; twice < 2; twice++) {
                was = got.n;
                if (moe_bpe_word(run, word, n, NULL) != 0 || got.n - was != k ||
                    memcmp(got.id + was, want, k * sizeof(*want)) != 0)
                    wrong++;
            }
        }
        moe_bpe_run_free(run);
        moe_tokens_fini(&got);
        moe_bpe_fini(&m.bpe);
        moe_vocab_fini(&m.vocab);
    }
    tap_is_int(words, 30 * 60, "all words were tried");
    tap_is_int(wrong, 0, "words merge as the rule says");

    make(&m, &seed);
    tap_is_int(moe_bpe_add(&m.bpe, "a", 1, "q", 1, NULL), MOE_EFORMAT, "no such part");
    tap_is_int(moe_bpe_add(&m.bpe, m.text[m.n - 1], strlen(m.text[m.n - 1]), m.text[m.n - 1],
        strlen(m.text[m.n - 1]), NULL), MOE_EFORMAT, "no such whole");
    moe_bpe_fini(&m.bpe);
    moe_vocab_fini(&m.vocab);
    return tap_done();
}
