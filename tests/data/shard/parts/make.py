#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes whole.gguf and the same in parts of three tensors, both by the gguf package."""
import numpy as np
import gguf


def write(path, **kw):
    r = np.random.default_rng(5)
    w = gguf.GGUFWriter(path, "qwen3moe", **kw)
    w.add_block_count(2)
    w.add_embedding_length(64)
    w.add_array("tokenizer.ggml.tokens", ["a", "b", "\u00e9", "<s>"])
    w.add_float32("qwen3moe.attention.layer_norm_rms_epsilon", 1e-6)
    for i in range(2):
        for name, shape in (("attn_q", (64, 64)), ("ffn_norm", (33,)), ("ffn_gate_exps", (4, 32, 64))):
            x = r.normal(size=shape).astype(np.float32)
            if name == "ffn_gate_exps":
                q = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
                w.add_tensor(f"blk.{i}.{name}.weight", q, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            else:
                w.add_tensor(f"blk.{i}.{name}.weight", x.astype(np.float16) if name == "attn_q" else x)
    w.add_tensor("output_norm.weight", np.ones(33, np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write("whole.gguf")
write("part.gguf", split_max_tensors=3)
