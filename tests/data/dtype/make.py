# SPDX-License-Identifier: Apache-2.0
"""Write golden.safetensors: what ml_dtypes and numpy make of every small code and of chosen floats.

decode_T   F32 [codes]: value of each code of T, ascending
x          F32 [n]: inputs
encode_T   U8 or U16 [n]: x in T; x is cut to the finite range first for T that saturate
"""
import sys
import ml_dtypes as m
import numpy as np
from safetensors.numpy import save_file

SMALL = {"F4": m.float4_e2m1fn, "F6_E2M3": m.float6_e2m3fn, "F6_E3M2": m.float6_e3m2fn,
         "F8_E5M2": m.float8_e5m2, "F8_E4M3": m.float8_e4m3fn, "F8_E8M0": m.float8_e8m0fnu,
         "F8_E4M3FNUZ": m.float8_e4m3fnuz, "F8_E5M2FNUZ": m.float8_e5m2fnuz}
BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
MAX = {"F4": 6.0, "F8_E4M3": 448.0, "F8_E5M2": 57344.0}

out = {}
for name, t in SMALL.items():
    codes = np.arange(1 << BITS.get(name, 8), dtype=np.uint8)
    out["decode_" + name] = codes.view(t).astype(np.float32)
out["decode_F16"] = np.arange(0, 65536, 7, dtype=np.uint16).view(np.float16).astype(np.float32)

rng = np.random.default_rng(1)
x = [0.0, -0.0, np.inf, -np.inf, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65519.99, 65520.0,
     6.0, 7.0, 2.5, 3.5, 5.0, 0.25, 0.75, 1e-45, -1e-45, 2.0**-126, 3.4028235e38]
for t in (m.float4_e2m1fn, m.float8_e4m3fn, m.float8_e5m2):
    v = np.arange(8 if t is m.float4_e2m1fn else 128, dtype=np.uint8).view(t).astype(np.float32)
    v = v[np.isfinite(v)]
    mid = (v[:-1] + v[1:]) / 2          # ties
    x += list(v) + list(mid) + list(np.nextafter(mid, np.float32(0))) + list(-np.nextafter(mid, np.float32(1e9)))
x = np.concatenate([np.array(x, np.float32),
                    (rng.standard_normal(500) * np.exp2(rng.integers(-30, 20, 500))).astype(np.float32),
                    rng.integers(0, 2**31 - 2**23, 500, dtype=np.uint32).view(np.float32)])
out["x"] = x
for name, top in MAX.items():
    out["encode_" + name] = np.clip(x, -top, top).astype(SMALL[name]).view(np.uint8)
with np.errstate(over="ignore"):
    out["encode_F16"] = x.astype(np.float16).view(np.uint16)
out["encode_BF16"] = x.astype(m.bfloat16).view(np.uint16)
save_file(out, sys.argv[1])
