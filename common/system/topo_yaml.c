/* SPDX-License-Identifier: Apache-2.0 */
/* Owns descriptions by hand in YAML: devices, links, and a link for all that are not named. */
#include <string.h>

#include "common/base/num.h"
#include "common/base/yaml.h"
#include "common/system/topo_form.h"

struct reader {
    const struct moe_yaml *y;
    const char *file;
    struct moe_topo *t;
    struct moe_err *e;
};

static const char *const root_keys[] = { "devices", "links", "others", NULL };
static const char *const device_keys[] = { "name", "kind", "numa", "memory", "speed", NULL };
static const char *const link_keys[] = { "between", "class", "bandwidth", "source", NULL };

/* A text member; NULL and no error when it is not there. */
static int
text(const struct reader *r, const json_t *o, const char *key, const char **out)
{
    const json_t *v = json_object_get(o, key);

    *out = json_string_value(v);
    return v == NULL || *out != NULL ? 0 : moe_yaml_fail(r->y, v, r->e, "%s is no text", key);
}

/* Bytes, as a number or a text with a unit; 0 when it is not there. */
static int
size(const struct reader *r, const json_t *o, const char *key, uint64_t *out)
{
    const json_t *v = json_object_get(o, key);
    const char *s = json_string_value(v);

    *out = 0;
    if (v == NULL)
        return 0;
    if (json_is_integer(v) && json_integer_value(v) > 0)
        *out = (uint64_t)json_integer_value(v);
    else if (s == NULL || moe_num_size(s, 1, UINT64_C(1) << 60, key, out, NULL) != 0)
        return moe_yaml_fail(r->y, v, r->e, "%s is no size", key);
    return 0;
}

static int
device(const struct reader *r, const json_t *o)
{
    const json_t *numa = json_object_get(o, "numa"), *speed = json_object_get(o, "speed");
    const char *name, *kind;
    struct moe_topo_device *d;
    int rc;

    if (!json_is_object(o))
        return moe_yaml_fail(r->y, o, r->e, "a device is no mapping");
    if ((rc = moe_yaml_only(r->y, o, device_keys, r->e)) != 0 ||
        (rc = text(r, o, "name", &name)) != 0 || (rc = text(r, o, "kind", &kind)) != 0)
        return rc;
    if (name == NULL || kind == NULL)
        return moe_yaml_fail(r->y, o, r->e, "a device without name or kind");
    if (numa != NULL && (!json_is_integer(numa) || json_integer_value(numa) < 0 ||
        json_integer_value(numa) > 65535))
        return moe_yaml_fail(r->y, numa, r->e, "numa is no number from 0 to 65535");
    if (speed != NULL && !(json_number_value(speed) >= 1e-6 && json_number_value(speed) <= 1e6))
        return moe_yaml_fail(r->y, speed, r->e, "speed is no number above 0");
    if ((rc = moe_topo_add(r->t, name, kind, r->file, r->e)) != 0)
        return rc;
    d = &r->t->device[r->t->n - 1];
    d->numa = numa == NULL ? -1 : (int)json_integer_value(numa);
    d->speed = speed == NULL ? 1 : json_number_value(speed);
    return size(r, o, "memory", &d->memory);
}

/* Class, bandwidth and source. */
static int
link_value(const struct reader *r, const json_t *o, struct moe_topo_link *out)
{
    const char *class, *source;
    uint64_t bandwidth;
    int rc;

    if ((rc = moe_yaml_only(r->y, o, link_keys, r->e)) != 0 ||
        (rc = text(r, o, "class", &class)) != 0 || (rc = text(r, o, "source", &source)) != 0 ||
        (rc = size(r, o, "bandwidth", &bandwidth)) != 0)
        return rc;
    if (class == NULL || !moe_topo_class_read(class, strlen(class), out) ||
        (source != NULL && (strlen(source) >= sizeof(out->source) ||
        strpbrk(source, "\t\r\n") != NULL)))
        return moe_yaml_fail(r->y, o, r->e, "no known class, or a source of over %d bytes",
            MOE_TOPO_NAME - 1);
    out->bandwidth = (double)bandwidth;
    if (source != NULL)
        memcpy(out->source, source, strlen(source) + 1);
    return 0;
}

static int
link_of(const struct reader *r, const json_t *o)
{
    const json_t *between = json_object_get(o, "between");
    struct moe_topo *t = r->t;
    struct moe_topo_link l;
    size_t end[2];
    int rc;

    if (json_array_size(between) != 2)
        return moe_yaml_fail(r->y, o, r->e, "between is not two devices");
    for (size_t i = 0; i < 2; i++) {
        const char *s = json_string_value(json_array_get(between, i));

        end[i] = s == NULL ? t->n : moe_topo_find(t, s, strlen(s));
    }
    if (end[0] == t->n || end[1] == t->n || end[0] == end[1])
        return moe_yaml_fail(r->y, between, r->e, "between is not two devices");
    if (t->link[end[0] * t->n + end[1]].class != MOE_TOPO_SELF)
        return moe_yaml_fail(r->y, between, r->e, "the same two devices again");
    if ((rc = link_value(r, o, &l)) == 0)
        t->link[end[0] * t->n + end[1]] = t->link[end[1] * t->n + end[0]] = l;
    return rc;
}

/* The link of all pairs that were not named. */
static int
others(const struct reader *r, const json_t *o)
{
    struct moe_topo *t = r->t;
    struct moe_topo_link l;
    int rc;

    if (!json_is_object(o) || json_object_get(o, "between") != NULL)
        return moe_yaml_fail(r->y, o, r->e, "others is no class, bandwidth and source");
    if ((rc = link_value(r, o, &l)) != 0)
        return rc;
    for (size_t a = 0; a < t->n; a++) {
        for (size_t b = 0; b < t->n; b++) {
            if (a != b && t->link[a * t->n + b].class == MOE_TOPO_SELF)
                t->link[a * t->n + b] = l;
        }
    }
    return 0;
}

int
moe_topo_yaml(const char *p, size_t n, const char *file, struct moe_topo *t, struct moe_err *e)
{
    struct moe_yaml *y;
    const json_t *root, *devices, *list, *rest;
    struct reader r = { NULL, file, t, e };
    int rc = moe_yaml_parse(p, n, file, &y, e);

    if (rc != 0)
        return rc;
    r.y = y;
    root = moe_yaml_root(y);
    devices = json_object_get(root, "devices");
    list = json_object_get(root, "links");
    rest = json_object_get(root, "others");
    if (!json_is_array(devices) || (list != NULL && !json_is_array(list)))
        rc = moe_yaml_fail(y, root, e, "wanted: a list of devices, and perhaps of links");
    else
        rc = moe_yaml_only(y, root, root_keys, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(devices); i++)
        rc = device(&r, json_array_get(devices, i));
    if (rc == 0)
        rc = moe_topo_links(t, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
        rc = link_of(&r, json_array_get(list, i));
    if (rc == 0 && rest != NULL)
        rc = others(&r, rest);
    moe_yaml_free(y);
    return rc;
}
