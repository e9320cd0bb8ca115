# SPDX-License-Identifier: Apache-2.0
"""Write the folders beside this file with transformers: config.json, weights.json (the rule of
tests/tools/golden_model.c), golden.json (prompts) and golden.safetensors (logits, F32 arithmetic).

They cover what the golden models leave out: biases, dense layers, tied embeddings, weights of a
router that are not renormalised, sliding windows, scaled RoPE.
"""
import hashlib
import json
import os
import numpy as np
import torch
from transformers import AutoModelForCausalLM, MixtralConfig, Qwen3MoeConfig

G, SEED = 0x9E3779B97F4A7C15, 5
BASE = dict(vocab_size=128, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, head_dim=16, max_position_embeddings=256)
QWEN = dict(BASE, intermediate_size=96, moe_intermediate_size=32, num_experts=8)
VARIANTS = {
    "qwen3_moe_bias_dense": Qwen3MoeConfig(
        **QWEN, num_experts_per_tok=2, norm_topk_prob=False, attention_bias=True,
        mlp_only_layers=[1], tie_word_embeddings=True, rms_norm_eps=1e-5, rope_theta=5000.0,
        rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "qwen3_moe_window": Qwen3MoeConfig(
        **QWEN, num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=2,
        use_sliding_window=True, sliding_window=9,
        rope_scaling=dict(rope_type="linear", factor=2.0)),
    "mixtral_window": MixtralConfig(
        **BASE, intermediate_size=48, num_local_experts=5, num_experts_per_tok=2,
        sliding_window=33,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                          high_freq_factor=4.0, original_max_position_embeddings=64)),
}


def rule(t):
    """BF16 bits of tensor t."""
    key = 0xCBF29CE484222325
    for b in t["name"].encode():
        key = ((key ^ b) * 0x100000001B3) % 2**64
    with np.errstate(over="ignore"):
        n = np.arange(1, int(np.prod(t["shape"])) + 1, dtype=np.uint64)
        z = np.uint64((key + SEED * G) % 2**64) + n * np.uint64(G)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - np.float32(1)
    v = np.float32(t["mean"]) + np.float32(t["scale"]) * u
    b = v.view(np.uint32)
    return ((b + 0x7FFF + ((b >> 16) & 1)) >> 16).astype(np.uint16).reshape(t["shape"])


def spread(name):
    if "norm" in name:
        return 1.0, 0.2
    if "embed" in name or name.endswith(("mlp.gate.weight", "block_sparse_moe.gate.weight")):
        return 0.0, 0.6
    return 0.0, 0.3 if name.endswith("bias") else 0.2


def write(name, config, prompts):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    state, tensors = model.state_dict(), []
    for k, v in state.items():
        if k == "lm_head.weight" and config.tie_word_embeddings:
            continue
        t = dict(name=k, dtype="BF16", shape=list(v.shape))
        t["mean"], t["scale"] = spread(k)
        bits = rule(t)
        t["sha256"] = hashlib.sha256(bits.tobytes()).hexdigest()
        v.copy_(torch.from_numpy((bits.astype(np.uint32) << 16).view(np.float32).copy()))
        tensors.append(t)
    model.load_state_dict(state)
    model.tie_weights()
    lines = ",\n".join(json.dumps(t) for t in tensors)
    with open(name + "/weights.json", "w") as f:
        f.write('{"seed": %d, "files": [\n{"file": "model.safetensors", "tensors": [\n%s]}]}\n'
                % (SEED, lines))
    c = config.to_diff_dict()
    c.pop("_attn_implementation", None)
    c.update(architectures=[type(model).__name__], dtype="bfloat16")
    with open(name + "/config.json", "w") as f:
        f.write(json.dumps(c, indent=1, sort_keys=True) + "\n")
    with open(name + "/golden.json", "w") as f:
        f.write(json.dumps({"reference": "transformers 4.57.1", "prompts": prompts}) + "\n")
    head, data, at = {}, b"", 0
    for i, p in enumerate(prompts):
        with torch.no_grad():
            logits = model(torch.tensor([p])).logits[0].float().numpy()
        data += logits.tobytes()
        head["logits_%d" % i] = dict(dtype="F32", shape=list(logits.shape),
                                     data_offsets=[at, len(data)])
        at = len(data)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(name + "/golden.safetensors", "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


if __name__ == "__main__":
    rng = np.random.default_rng(11)
    for name, config in VARIANTS.items():
        os.makedirs(name, exist_ok=True)
        write(name, config, [[int(x) for x in rng.integers(0, 128, n)] for n in (1, 80)])
