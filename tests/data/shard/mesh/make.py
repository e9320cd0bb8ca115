#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes counts.tsv: 32 layers of 64 experts, of which three have 80 % of each layer's choices (the
seed is one with which expert modulo 8 spreads the bytes of the links by 41 %), and mesh.topo: two
boards of four devices, an NVLink of 25 GB/s between each two."""
import random

r = random.Random(18)
with open("counts.tsv", "w") as f:
    f.write("layer\texpert\tcount\n")
    for layer in range(32):
        hot = r.sample(range(64), 3)
        w = [r.lognormvariate(0, 0.3) for _ in range(64)]
        cold = sum(w[x] for x in range(64) if x not in hot)
        for x in range(64):
            share = 0.8 * (1.2, 1.0, 0.8)[hot.index(x)] / 3 if x in hot else 0.2 * w[x] / cold
            f.write(f"{layer}\t{x}\t{round(share * 1e6)}\n")
with open("mesh.topo", "w") as f:
    f.write("# moe-topo 1\n")
    for g in range(8):
        f.write(f"device\tgpu{g}\tgpu\t{g // 4}\t{80 << 30}\t1\n")
    for a in range(8):
        for b in range(a + 1, 8):
            f.write(f"link\tgpu{a}\tgpu{b}\tNV1\t25000000000\tby hand\n")
