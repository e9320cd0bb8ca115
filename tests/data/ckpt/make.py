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
