/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the table of `nvidia-smi topo -m`: a heading of device names, then a row
 * a device. Columns are parted by tabs, or by two blanks and more where it was
 * pasted; escapes of a terminal and lines before and after are passed over.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/num.h"
#include "common/system/topo_form.h"

/* Cut escape sequences and carriage returns out of the text. */
static void
plain(char *text)
{
    char *to = text;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\033' && p[1] == '[') {
            const char *end = p + 2;

            while ((*end >= '0' && *end <= '9') || *end == ';')
                end++;
            if (*end == '\0')
                break;
            p = end;
        } else if (*p != '\r') {
            *to++ = *p;
        }
    }
    *to = '\0';
}

/* The cell at *p, blanks around it cut off; *p goes behind it, NULL after the last. */
static char *
cell(char **p, bool tabs)
{
    char *from = *p, *end = tabs ? strchr(from, '\t') : strstr(from, "  ");
    size_t n;

    if (end != NULL) {
        *end = '\0';
        *p = end + (tabs ? 1 : 2);
        *p += tabs ? 0 : strspn(*p, " ");
    } else {
        *p = NULL;
    }
    from += strspn(from, " ");
    n = strlen(from);
    while (n > 0 && from[n - 1] == ' ')
        from[--n] = '\0';
    return from;
}

static bool
is_gpu(const char *name)
{
    int64_t v;

    return strncmp(name, "GPU", 3) == 0 && moe_num_int(name + 3, 0, 65535, "", &v, NULL) == 0;
}

/* ---- Heading ----------------------------------------------------------------------- */

/* A heading begins with blanks and a GPU. */
static bool
is_heading(const char *line)
{
    const char *p = line + strspn(line, " \t");

    return p > line && strncmp(p, "GPU", 3) == 0 && p[3] >= '0' && p[3] <= '9';
}

static int
heading(char *line, bool tabs, const char *file, struct moe_topo *t, struct moe_err *e)
{
    char *p = line + strspn(line, " \t");
    int rc = 0;

    while (rc == 0 && p != NULL) {
        char *name = cell(&p, tabs);

        if (*name == '\0' || strchr(name, ' ') != NULL)     /* "CPU Affinity" and on */
            break;
        rc = moe_topo_add(t, name, is_gpu(name) ? "gpu" : "nic", file, e);
    }
    return rc != 0 ? rc : moe_topo_links(t, e);
}

/* ---- Rows ---------------------------------------------------------------------------- */

/* The number a NUMA affinity begins with; -1 when it says none. */
static int
numa_of(const char *s)
{
    char number[8] = "";
    size_t n = strspn(s, "0123456789");
    int64_t v;

    if (n == 0 || n >= sizeof(number))
        return -1;
    memcpy(number, s, n);
    return moe_num_int(number, 0, 65535, "", &v, NULL) == 0 ? (int)v : -1;
}

static int
row(char *line, bool tabs, const char *file, struct moe_topo *t, bool *have, struct moe_err *e)
{
    char *p = line, *name = cell(&p, tabs);
    size_t a = moe_topo_find(t, name, strlen(name));

    if (a == t->n)
        return moe_err_set(e, MOE_EFORMAT, "%s: a row %s, which the heading does not have", file,
            name);
    if (have[a])
        return moe_err_set(e, MOE_EFORMAT, "%s: two rows %s", file, name);
    have[a] = true;
    for (size_t b = 0; b < t->n; b++) {
        char *word = p == NULL ? NULL : cell(&p, tabs);
        struct moe_topo_link *l = &t->link[a * t->n + b];

        if (word == NULL || *word == '\0')
            return moe_err_set(e, MOE_EFORMAT, "%s: row %s ends before %s", file, name,
                t->device[b].name);
        if (a == b ? strcmp(word, "X") != 0 : !moe_topo_class_read(word, strlen(word), l))
            return moe_err_set(e, MOE_EFORMAT, "%s: row %s, column %s: '%.20s' is not a class",
                file, name, t->device[b].name, word);
    }
    if (p != NULL)
        (void)cell(&p, tabs);       /* CPU affinity */
    if (p != NULL)
        t->device[a].numa = numa_of(cell(&p, tabs));
    return 0;
}

int
moe_topo_smi(char *text, const char *file, struct moe_topo *t, struct moe_err *e)
{
    bool *have = NULL, tabs = false;
    size_t rows = 0;
    int rc = 0;

    plain(text);
    for (char *p = text, *end; rc == 0 && p != NULL; p = end) {
        if ((end = strchr(p, '\n')) != NULL)
            *end++ = '\0';
        if (have == NULL && is_heading(p)) {
            tabs = strchr(p, '\t') != NULL;
            if ((rc = heading(p, tabs, file, t, e)) == 0 &&
                (have = calloc(t->n + 1, sizeof(*have))) == NULL)
                rc = moe_err_set(e, MOE_ENOMEM, "%s: out of memory", file);
        } else if (have != NULL) {
            if (p[strspn(p, " \t")] == '\0' || strncmp(p, "Legend", 6) == 0)
                break;
            rc = row(p, tabs, file, t, have, e);
            rows++;
        }
    }
    free(have);
    if (rc == 0 && rows == 0)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: no table of nvidia-smi topo -m", file);
    if (rc == 0 && rows < t->n)
        rc = moe_err_set(e, MOE_EFORMAT, "%s: %zu devices, %zu rows", file, t->n, rows);
    return rc;
}
