/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the drawing; numbers are the simulator's. */
#include <math.h>
#include <stdbool.h>

#include "cmd/moe-shard/shard_picture.h"

#define SIZE 800                /* of the picture, in user units */
#define RING 280                /* radius */
#define MEAN 24                 /* radius of a device with the mean load; areas go with loads */
#define WIDE 14                 /* the widest line */

struct place { double x, y; };

static struct place
place_of(size_t g, size_t n)
{
    const double turn = 6.283185307179586;
    double a = turn * (double)g / (double)n - turn / 4;

    return (struct place){ SIZE / 2.0 + RING * cos(a), SIZE / 2.0 + RING * sin(a) };
}

/* Text that XML does not take for its own. */
static void
name(struct moe_buf *b, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '&' || *s == '<' || *s == '>' || *s == '"' || (unsigned char)*s < ' ')
            moe_buf_fmt(b, "&#%d;", (unsigned char)*s < ' ' ? '?' : *s);
        else
            moe_buf_byte(b, *s);
    }
}

static void
line(const struct shard_wire *w, size_t a, size_t c, double bytes, double most, struct moe_buf *b)
{
    struct place p = place_of(a, w->n), q = place_of(c, w->n);
    char x[MOE_TOPO_NAME], y[MOE_TOPO_NAME];

    shard_wire_name(w, a, x);
    shard_wire_name(w, c, y);
    moe_buf_fmt(b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\""
        " stroke-opacity=\"0.6\" stroke-width=\"%.2f\"><title>", p.x, p.y, q.x, q.y,
        w->pair[a * w->n + c].own ? "#2a7f62" : "#a05a2c", WIDE * bytes / most);
    name(b, x);
    moe_buf_str(b, " - ");
    name(b, y);
    moe_buf_fmt(b, ": %.0f bytes</title></line>\n", bytes);
}

static void
device(const struct shard_wire *w, size_t g, double load, double mean, struct moe_buf *b)
{
    struct place p = place_of(g, w->n);
    char x[MOE_TOPO_NAME];

    shard_wire_name(w, g, x);
    moe_buf_fmt(b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.2f\" fill=\"%s\"/>\n", p.x, p.y,
        mean > 0 ? MEAN * sqrt(load / mean) : MEAN, load > 1.1 * mean ? "#c0392b" : "#34618d");
    moe_buf_fmt(b, "<text x=\"%.1f\" y=\"%.1f\">", SIZE / 2.0 + (p.x - SIZE / 2.0) * 1.25,
        SIZE / 2.0 + (p.y - SIZE / 2.0) * 1.25);
    name(b, x);
    moe_buf_fmt(b, " %.2f</text>\n", mean > 0 ? load / mean : 1);
}

int
shard_picture_svg(const struct shard_wire *w, const double *load, const double *bytes,
    struct moe_buf *b, struct moe_err *e)
{
    double most = 0, mean = 0;

    for (size_t a = 0; a < w->n; a++) {
        mean += load[a] / (double)w->n;
        for (size_t c = a + 1; c < w->n; c++)
            most = fmax(most, bytes[a * w->n + c] + bytes[c * w->n + a]);
    }
    moe_buf_fmt(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\""
        " font-family=\"sans-serif\" font-size=\"14\" text-anchor=\"middle\">\n"
        "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", SIZE, SIZE, SIZE, SIZE);
    for (size_t a = 0; a < w->n; a++) {
        for (size_t c = a + 1; c < w->n; c++) {
            double both = bytes[a * w->n + c] + bytes[c * w->n + a];

            if (both > 0)
                line(w, a, c, both, most, b);
        }
    }
    for (size_t g = 0; g < w->n; g++)
        device(w, g, load[g], mean, b);
    moe_buf_str(b, "</svg>\n");
    return b->bad ? moe_err_set(e, MOE_ENOMEM, "picture: out of memory") : 0;
}
