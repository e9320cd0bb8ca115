# SPDX-License-Identifier: Apache-2.0
"""What moe-quant writes is loaded by transformers with compressed-tensors, and computes what it should."""
import json
import os
import subprocess

os.environ["TQDM_DISABLE"] = "1"    # before the libraries look

import torch
import transformers
from safetensors.torch import load_file

B, T = os.environ["B"], os.environ["T"]
transformers.utils.logging.set_verbosity_error()
n = 0


def ok(yes, what):
    global n
    n += 1
    print(f"{'' if yes else 'not '}ok {n} - {what}", flush=True)


def quant(src, dst, *options):
    subprocess.run([f"{B}/moe-quant", "-q", *options, src, dst], check=True)


def load(path):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def logits(model, prompt):
    with torch.no_grad():
        return model(torch.tensor([prompt]), use_cache=False).logits[0].float()


def perplexity(model, ids, context=128, windows=12):
    nll, scored = 0.0, 0
    for w in range(windows):
        part = ids[w * context:(w + 1) * context]
        p = torch.log_softmax(logits(model, part)[:-1].double(), -1)
        nll -= p[torch.arange(len(part) - 1), torch.tensor(part[1:])].sum().item()
        scored += len(part) - 1
    return float(torch.exp(torch.tensor(nll / scored)))


def experts(model):
    return [m for name, m in model.named_modules()
            if ".experts." in name and name.rsplit(".", 1)[-1] in
            ("w1", "w2", "w3", "gate_proj", "up_proj", "down_proj")]


for family in ("mixtral", "qwen3_moe"):
    subprocess.run([f"{B}/tests/tools/golden_model", f"{T}/data/models/{family}", family], check=True)
    quant(family, f"{family}-int4")
    model = load(f"{family}-int4")
    ok(len(experts(model)) in (72, 144) and all(hasattr(m, "quantization_scheme") for m in experts(model)),
       f"{family}: every expert has a scheme")
    want = load_file(f"{T}/data/quant/e2e/{family}.safetensors")
    prompts = json.load(open(f"{T}/data/models/{family}/golden.json"))["prompts"]
    for i, prompt in enumerate(prompts[:len(want)]):
        got = logits(model, prompt)[-len(want[f"logits_{i}"]):]
        d = (got - want[f"logits_{i}"]).abs().max().item()
        ok(d < 1e-4, f"{family}: logits of prompt {i} differ by at most {d:.2g}")

kjv = f"{T}/data/kjv-moe"
tokens = transformers.AutoTokenizer.from_pretrained(kjv)
ids = tokens(open(f"{kjv}/heldout.txt").read())["input_ids"]
base = perplexity(load(kjv), ids)
for name, limit, options in (("int4", 1.03, []), ("int4-g32", 1.03, ["-g", "32"]), ("int8", 1.002, ["-f", "int8"])):
    quant(kjv, name, *options)
    model = load(name)
    ok(all(hasattr(m, "quantization_scheme") for m in experts(model)) and len(experts(model)) == 192,
       f"kjv-moe {name}: every expert has a scheme")
    ratio = perplexity(model, ids) / base
    ok(ratio < limit, f"kjv-moe {name}: perplexity is {ratio:.4f} of {base:.3f}")

subprocess.run([f"{B}/moe-quant", "-q", kjv, "one.safetensors"], check=True)
ok(set(load_file("one.safetensors")) == set(load_file("int4/model.safetensors")),
   "a single file is read by safetensors")
print(f"1..{n}")
