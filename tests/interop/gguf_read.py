# SPDX-License-Identifier: Apache-2.0
"""GGUF against the gguf package: its files read by us (keys, tensors, decoded values), written
again byte for byte, and read by it. TAP."""
import hashlib
import json
import os
import subprocess

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

B, T = os.environ["B"], os.environ["T"]
run = 0


def ok(yes, what):
    global run
    run += 1
    print(f"{'ok' if yes else 'not ok'} {run} - {what}")


def keys_file(path, align):
    """Every kind of value, at its limits, as the package writes them."""
    w = gguf.GGUFWriter(path, "llama")
    if align != 32:
        w.add_custom_alignment(align)
    for bits in (8, 16, 32, 64):
        getattr(w, f"add_uint{bits}")(f"u{bits}", 2 ** min(bits, 63) - 1)
        getattr(w, f"add_int{bits}")(f"i{bits}", -2 ** (bits - 1))
    w.add_float32("f32", 1e-6)
    w.add_float64("f64", 0.1)
    w.add_bool("yes", True)
    w.add_bool("no", False)
    w.add_string("text", "gr\u00f6\u00dfe \U0001f600 \"\\\n")
    w.add_array("words", ["a", "", "b c", "\u00e9"] * 500)
    w.add_array("whole", list(range(-5, 700)))
    w.add_array("reals", [0.5, -1e30, 3.0])
    w.add_array("bools", [True, False, True])
    w.add_tensor("one", np.ones(1, np.float32))     # without a tensor the package does not pad
    return w


def blocks(rng, t, rows, cols):
    """Random blocks of a type, with scales that are numbers."""
    per, size = gguf.GGML_QUANT_SIZES[t]
    b = rng.integers(0, 256, (rows * cols // per, size), dtype=np.uint8)
    halves = {Type.Q4_0: [0], Type.Q5_0: [0], Type.Q8_0: [0], Type.Q2_K: [80, 82],
              Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}
    for at in halves.get(t, []):
        half = rng.normal(0, 0.1, len(b)).astype(np.float16)
        b[:, at:at + 2] = half.view(np.uint8).reshape(-1, 2)
    if t == Type.MXFP4:
        b[:, 0] = rng.integers(0, 250, len(b))
    if t == Type.NVFP4:
        b[:, :4] &= 0x7E
    return b.reshape(rows, -1)


def tensors_file(path, rng):
    w = gguf.GGUFWriter(path, "llama")
    w.add_tensor("plain.f32", rng.normal(size=(3, 5)).astype(np.float32))
    w.add_tensor("plain.f16", rng.normal(size=(2, 2, 7)).astype(np.float16))
    w.add_tensor("plain.i32", rng.integers(-9, 9, (4,), dtype=np.int32))
    bf16 = gguf.quants.quantize(rng.normal(size=(4, 64)).astype(np.float32), Type.BF16)
    w.add_tensor("plain.bf16", bf16, raw_dtype=Type.BF16)
    for t in (Type.Q4_0, Type.Q5_0, Type.Q8_0):
        q = gguf.quants.quantize(rng.normal(size=(6, 96)).astype(np.float32), t)
        w.add_tensor(f"made.{t.name}", q, raw_dtype=t)
    for t in (Type.Q4_0, Type.Q5_0, Type.Q8_0, Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K,
              Type.Q6_K, Type.MXFP4, Type.NVFP4, Type.IQ4_XS, Type.TQ1_0, Type.Q4_1, Type.Q5_1):
        w.add_tensor(f"random.{t.name}", blocks(rng, t, 5, 512), raw_dtype=t)
    return w


def write(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def same_keys(reader, lines):
    want = {k: f for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    got = {d["key"]: d for d in lines if "key" in d}
    bad = sorted(set(want) ^ set(got))
    for k, f in want.items():
        if k in got and (got[k]["type"] != f.types[-1].name or got[k]["value"] != f.contents()):
            bad.append(k)
    return bad


def same_tensors(reader, lines):
    got = [d for d in lines if "tensor" in d]
    bad = [] if len(got) == len(reader.tensors) else ["the number"]
    for d, t in zip(got, reader.tensors):
        same = (d["tensor"] == t.name and d["type"] == t.tensor_type.name and
                d["ne"] == [int(n) for n in t.shape] and d["offset"] == t.data_offset and
                d["bytes"] == t.n_bytes)
        if d["f32_sha256"] is not None:
            f = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
            same = same and d["f32_sha256"] == hashlib.sha256(f.tobytes()).hexdigest()
        elif t.tensor_type in (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_K, Type.MXFP4):
            same = False
        if not same:
            bad.append(t.name)
    return bad


def check(path, what):
    p = subprocess.run([f"{B}/tests/tools/gguf_dump", path], capture_output=True, text=True)
    if p.returncode != 0:
        ok(False, f"{what}: {p.stderr.strip()}")
        return
    lines = [json.loads(x) for x in p.stdout.splitlines()]
    reader = gguf.GGUFReader(path)
    bad = same_keys(reader, lines)
    ok(not bad, f"{what}: {sum('key' in d for d in lines)} keys {bad or ''}")
    bad = same_tensors(reader, lines)
    n = sum(d.get("f32_sha256") is not None for d in lines)
    ok(not bad, f"{what}: {len(reader.tensors)} tensors, {n} decoded {bad or ''}")
    subprocess.run([f"{B}/tests/tools/gguf_rewrite", path, "again.gguf"], check=True)
    with open(path, "rb") as a, open("again.gguf", "rb") as b:
        ok(a.read() == b.read(), f"{what}: written again, byte for byte")
    again = gguf.GGUFReader("again.gguf")
    ok(len(again.tensors) == len(reader.tensors) and again.fields.keys() == reader.fields.keys(),
       f"{what}: what we wrote is read by the package")


for align in (32, 64, 4096):
    write(keys_file(f"keys{align}.gguf", align))
    check(f"keys{align}.gguf", f"keys, alignment {align}")
for seed in range(3):
    write(tensors_file(f"tensors{seed}.gguf", np.random.default_rng(seed)))
    check(f"tensors{seed}.gguf", f"tensors, seed {seed}")
check(f"{T}/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf", "a converted model")
print(f"1..{run}")
