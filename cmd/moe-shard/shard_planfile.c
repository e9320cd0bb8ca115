/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the format of plans.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/moe-shard/shard_load.h"
#include "cmd/moe-shard/shard_planfile.h"
#include "common/base/json.h"
#include "common/base/jsonw.h"

#define VERSION 1

static void
put_list(struct moe_jsonw *w, const char *key, const uint32_t *v, size_t n)
{
    if (key != NULL)
        moe_jsonw_key(w, key);
    moe_jsonw_open(w, '[');
    for (size_t i = 0; i < n; i++)
        moe_jsonw_uint(w, v[i]);
    moe_jsonw_close(w, ']');
}

static void
put_uint(struct moe_jsonw *w, const char *key, size_t v)
{
    moe_jsonw_key(w, key);
    moe_jsonw_uint(w, v);
}

int
shard_planfile_write(const struct shard_planfile *p, const char *const *made_for,
    struct moe_buf *b, struct moe_err *e)
{
    struct moe_jsonw w = { b, false };

    moe_jsonw_open(&w, '{');
    put_uint(&w, "moe_plan", VERSION);
    put_uint(&w, "experts", p->experts);
    put_uint(&w, "devices", p->devices);
    put_uint(&w, "nodes", p->nodes);
    put_list(&w, "room", p->room, p->devices);
    moe_jsonw_key(&w, "made_for");
    moe_jsonw_open(&w, '[');
    for (size_t i = 0; made_for[i] != NULL; i++)
        moe_jsonw_str(&w, made_for[i], strlen(made_for[i]));
    moe_jsonw_close(&w, ']');
    put_list(&w, "layers", p->id, p->layers);
    moe_jsonw_key(&w, "physical_to_logical_map");
    moe_jsonw_open(&w, '[');
    for (size_t l = 0; l < p->layers; l++)
        put_list(&w, NULL, p->slot + l * p->slots, p->slots);
    moe_jsonw_close(&w, ']');
    moe_jsonw_close(&w, '}');
    moe_buf_byte(b, '\n');
    return b->bad ? moe_err_set(e, MOE_ENOMEM, "plan: out of memory") : 0;
}

/* ---- Reading ------------------------------------------------------------------------- */

static int
numbers(struct moe_json_at at, const char *key, const json_t *list, int64_t hi, uint32_t *out,
    struct moe_err *e)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > hi)
            return moe_err_set(e, MOE_EFORMAT, "%s: %s: entry %zu is not in 0 to %lld", at.name,
                key, i, (long long)hi);
        out[i] = (uint32_t)json_integer_value(v);
    }
    return 0;
}

static int
sizes(struct moe_json_at at, struct shard_planfile *p, struct moe_err *e)
{
    int64_t version, experts, devices, nodes;
    int rc;

    if ((rc = moe_json_int(at, "moe_plan", true, 0, 0, INT64_MAX, &version, e)) != 0)
        return rc;
    if (version != VERSION)
        return moe_err_set(e, MOE_EUNSUP, "%s: version %" PRId64 ", not %d", at.name, version,
            VERSION);
    if ((rc = moe_json_int(at, "experts", true, 0, 1, SHARD_LOAD_MAX_EXPERTS, &experts, e)) != 0 ||
        (rc = moe_json_int(at, "devices", true, 0, 1, SHARD_PLANFILE_MAX_DEVICES, &devices,
            e)) != 0 ||
        (rc = moe_json_int(at, "nodes", false, 1, 1, devices, &nodes, e)) != 0)
        return rc;
    p->experts = (size_t)experts;
    p->devices = (size_t)devices;
    p->nodes = (size_t)nodes;
    return p->devices % p->nodes == 0 ? 0 : moe_err_set(e, MOE_EFORMAT,
        "%s: nodes: do not divide the devices", at.name);
}

/* Rooms, by `room` or alike; and their sum. */
static int
rooms(struct moe_json_at at, size_t slots, struct shard_planfile *p, struct moe_err *e)
{
    const json_t *room;
    uint64_t sum = 0;
    int rc;

    if ((rc = moe_json_arr(at, "room", false, &room, e)) != 0)
        return rc;
    if ((p->room = calloc(p->devices, sizeof(*p->room))) == NULL)
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    if (room != NULL && json_array_size(room) != p->devices)
        return moe_err_set(e, MOE_EFORMAT, "%s: room: not one for each device", at.name);
    if (room != NULL && (rc = numbers(at, "room", room, SHARD_LOAD_MAX_EXPERTS, p->room, e)) != 0)
        return rc;
    for (size_t g = 0; g < p->devices; g++) {
        if (room == NULL)
            p->room[g] = (uint32_t)(slots / p->devices);
        sum += p->room[g];
    }
    p->slots = slots;
    return sum == slots ? 0 : moe_err_set(e, MOE_EFORMAT, "%s: %zu slots a layer are not those of"
        " the devices", at.name, slots);
}

static int
read_layers(struct moe_json_at at, struct shard_planfile *p, struct moe_err *e)
{
    const json_t *ids, *map;
    unsigned char *seen;
    int rc;

    if ((rc = moe_json_arr(at, "layers", false, &ids, e)) != 0 ||
        (rc = moe_json_arr(at, "physical_to_logical_map", true, &map, e)) != 0)
        return rc;
    p->layers = json_array_size(map);
    if (p->layers == 0 || p->layers > SHARD_LOAD_MAX_LAYERS ||
        (ids != NULL && json_array_size(ids) != p->layers))
        return moe_err_set(e, MOE_EFORMAT, "%s: layers: not one for each list of slots", at.name);
    if ((rc = rooms(at, json_array_size(json_array_get(map, 0)), p, e)) != 0)
        return rc;
    p->id = calloc(p->layers, sizeof(*p->id));
    p->slot = calloc(p->layers * p->slots + 1, sizeof(*p->slot));
    seen = calloc(p->experts, 1);
    if (p->id == NULL || p->slot == NULL || seen == NULL)
        rc = moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    for (size_t l = 0; rc == 0 && ids == NULL && l < p->layers; l++)
        p->id[l] = (uint32_t)l;
    if (rc == 0 && ids != NULL)
        rc = numbers(at, "layers", ids, SHARD_LOAD_MAX_LAYERS, p->id, e);
    for (size_t l = 0; rc == 0 && l < p->layers; l++) {
        const json_t *row = json_array_get(map, l);
        uint32_t *slot = p->slot + l * p->slots;

        if (l > 0 && p->id[l] <= p->id[l - 1])
            rc = moe_err_set(e, MOE_EFORMAT, "%s: layers: not ascending", at.name);
        else if (!json_is_array(row) || json_array_size(row) != p->slots)
            rc = moe_err_set(e, MOE_EFORMAT, "%s: layer %" PRIu32 ": not %zu slots", at.name,
                p->id[l], p->slots);
        else
            rc = numbers(at, "physical_to_logical_map", row, (int64_t)p->experts - 1, slot, e);
        memset(seen, 0, p->experts);
        for (size_t i = 0; rc == 0 && i < p->slots; i++)
            seen[slot[i]] = 1;
        for (size_t x = 0; rc == 0 && x < p->experts; x++) {
            if (!seen[x])
                rc = moe_err_set(e, MOE_EFORMAT, "%s: layer %" PRIu32 ": expert %zu has no slot",
                    at.name, p->id[l], x);
        }
    }
    free(seen);
    return rc;
}

int
shard_planfile_read(const char *path, struct shard_planfile *out, struct moe_err *e)
{
    static const char *const keys[] = { "moe_plan", "experts", "devices", "nodes", "room",
        "made_for", "layers", "physical_to_logical_map", NULL };
    struct moe_json_at at = { NULL, strcmp(path, "-") == 0 ? "stdin" : path };
    json_t *tree;
    int rc;

    *out = (struct shard_planfile){ .layers = 0 };
    if ((rc = moe_json_file(path, &tree, e)) != 0)
        return rc;
    at.o = tree;
    if (!json_is_object(tree))
        rc = moe_err_set(e, MOE_EFORMAT, "%s: not an object", at.name);
    else if ((rc = moe_json_only(at, keys, e)) == 0 && (rc = sizes(at, out, e)) == 0)
        rc = read_layers(at, out, e);
    json_decref(tree);
    if (rc != 0)
        shard_planfile_fini(out);
    return rc;
}

void
shard_planfile_fini(struct shard_planfile *p)
{
    free(p->id);
    free(p->room);
    free(p->slot);
    *p = (struct shard_planfile){ .layers = 0 };
}

int
shard_planfile_naive(size_t experts, size_t devices, size_t nodes, const uint32_t *id, size_t n,
    struct shard_planfile *out, struct moe_err *e)
{
    struct shard_planfile *p = out;

    *p = (struct shard_planfile){ .layers = n, .experts = experts, .devices = devices,
        .nodes = nodes, .slots = experts };
    p->id = calloc(n + 1, sizeof(*p->id));
    p->room = calloc(devices, sizeof(*p->room));
    p->slot = calloc(n * experts + 1, sizeof(*p->slot));
    if (p->id == NULL || p->room == NULL || p->slot == NULL) {
        shard_planfile_fini(p);
        return moe_err_set(e, MOE_ENOMEM, "plan: out of memory");
    }
    memcpy(p->id, id, n * sizeof(*id));
    for (size_t l = 0; l < n; l++) {
        for (size_t g = 0, i = l * experts; g < devices; g++) {
            p->room[g] = 0;
            for (size_t x = g; x < experts; x += devices, p->room[g]++)
                p->slot[i++] = (uint32_t)x;
        }
    }
    return 0;
}

size_t
shard_planfile_layer(const struct shard_planfile *p, uint32_t id)
{
    size_t lo = 0, hi = p->layers;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (p->id[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->layers && p->id[lo] == id ? lo : p->layers;
}
