#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models and what averages of them are, by numpy in long double. Run in this folder."""
import json
import struct

import numpy as np

L = np.longdouble


def bf16(v):
    """Nearest even, from float; returns the value as float."""
    b = np.asarray(v, np.float32).view(np.uint32)
    b = ((b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)) << np.uint32(16)
    return b.astype(np.uint32).view(np.float32)


def pack(dtype, v):
    if dtype == "BF16":
        return (bf16(v).view(np.uint32) >> 16).astype("<u2").tobytes()
    return np.asarray(v).astype({"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8"}[dtype]).tobytes()


def save(path, tensors, meta=None):
    head, data = {}, b""
    if meta:
        head["__metadata__"] = meta
    for name, (dtype, v) in tensors.items():
        raw = pack(dtype, v)
        head[name] = {"dtype": dtype, "shape": list(np.shape(v)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


TYPES = {"a.f32": "F32", "b.bf16": "BF16", "c.f16": "F16", "d.f64": "F64"}
SHAPES = {"a.f32": (3, 7), "b.bf16": (33,), "c.f16": (2, 2, 5), "d.f64": ()}
N = 5
rng = np.random.default_rng(7)
models = []
for k in range(N):
    m = {}
    for name, dtype in TYPES.items():
        v = rng.normal(0, 0.05, SHAPES[name])
        v = {"F32": lambda: v.astype(np.float32), "BF16": lambda: bf16(v), "F16": lambda: v.astype(np.float16),
             "F64": lambda: v}[dtype]()
        m[name] = np.asarray(v).astype(L)
    models.append(m)
    t = {n: (TYPES[n], np.asarray(v, np.float64)) for n, v in m.items()}
    save("m%d.safetensors" % k, t)
    save("int%d.safetensors" % k, {"x": ("F32", np.float32(k)), "steps": ("I64", np.array([k, 10 * k]))})

D = L(0.9)  # the double nearest to it
want = {}
for bias in ("first", "zero", "warmup"):
    e = {n: (v * 0 if bias == "zero" else v.copy()) for n, v in models[0].items()}
    t = 0
    for m in models[0 if bias == "zero" else 1:]:
        t += 1
        d = min(D, L((1 + t) / (10 + t))) if bias == "warmup" else D
        e = {n: e[n] + (1 - d) * (m[n] - e[n]) for n in e}
    if bias == "zero":
        e = {n: v / (1 - D ** t) for n, v in e.items()}
    save("ema_%s.safetensors" % bias, {n: (TYPES[n], np.asarray(v, np.float64)) for n, v in e.items()})
    save("ema_%s_f32.safetensors" % bias, {n: ("F32", np.asarray(v, np.float64)) for n, v in e.items()})

# Means, of models and of what they add to a base, clipped.
w = [L(k + 1) for k in range(N)]
mean = {n: sum(w[k] * models[k][n] for k in range(N)) / sum(w) for n in TYPES}
save("avg.safetensors", {n: (TYPES[n], np.asarray(v, np.float64)) for n, v in mean.items()})
ups = [{n: m[n] - models[0][n] for n in TYPES} for m in models[1:]]
norms = [np.sqrt(sum((v * v).sum() for v in u.values())) for u in ups]
clip = sorted(norms)[1]    # two of the four are shortened
mean = {n: models[0][n] + sum(min(L(1), L(float(clip)) / norms[k]) * ups[k][n] for k in range(4)) / 4 for n in TYPES}
save("avg_base.safetensors", {n: (TYPES[n], np.asarray(v, np.float64)) for n, v in mean.items()})
open("avg_base.clip", "w").write("%r\n" % float(clip))

# A delta, clipped as PyTorch does it in float.
norm = np.sqrt(sum((v * v).sum() for v in models[1].values()))
coef = np.float32(1) / (np.float32(norm) + np.float32(1e-6)) * np.float32(0.25)
assert coef < 1
total = {n: models[0][n] + (models[1][n] * L(coef)).astype(np.float32).astype(L) for n in TYPES}
save("apply.safetensors", {n: (TYPES[n], np.asarray(v, np.float64)) for n, v in total.items()})

# Federated means of clip.json, whose clients are a hash of name, seed 1 and index.
G, M = 0x9E3779B97F4A7C15, (1 << 64) - 1


def unit(name, n):
    z = 0xCBF29CE484222325
    for b in name.encode():
        z = ((z ^ b) * 0x100000001B3) & M
    out = []
    for i in range(n):
        h = (z + G + (i + 1) * G) & M
        h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & M
        h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & M
        h ^= h >> 31
        out.append(np.float32(h >> 40) * np.float32(2.0**-23) - np.float32(1))
    return np.array(out, np.float32)


for f in json.load(open("clip.json"))["fed"]:
    if f["clients"] > 4:
        continue
    for c in range(f["clients"]):
        v = np.float32(0.3 * (1 + c % 4)) * unit("fed%d.%d" % (f["case"], c), f["n"])
        save("fed%d_%d.safetensors" % (f["case"], c), {"u": ("F64", v)})
    save("fed%d.safetensors" % f["case"], {"u": ("F64", np.array([float.fromhex(x) for x in f["mean"]]))})
