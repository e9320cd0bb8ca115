#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant refuses: one line with file and tensor, status 2, nothing written.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st

bad() { # bad WHAT WORDS COMMAND...
    bad_what=$1 bad_words=$2
    shift 2
    "$@" >out 2>err
    is "$bad_what" $? 2
    grep -q -- "$bad_words" err
    ok "$bad_what: told" $? err
    is "$bad_what: in one line" "$(wc -l <err)" 1
    [ ! -e dst ] && [ -z "$(find . -maxdepth 1 -name '.*.part')" ]
    ok "$bad_what: nothing is left" $?
}
q() { "$B/moe-quant" -q "$@" dst; }
fresh() { rm -rf m && cp -r "$(model "${1:-qwen3_moe}")" m; }
e=model.layers.1.mlp.experts.7.up_proj.weight

# Files.
for f in bad_overlap bad_hole bad_duplicate bad_offset_huge bad_0_bytes bad_length_100m bad_cut_1; do
    bad $f "$f.safetensors: " q "$T/data/safetensors/$f.safetensors"
done
mkfifo pipe
bad 'a FIFO nobody writes to' 'pipe: not a regular file' timeout 10 "$B/moe-quant" -q pipe dst
fresh && truncate -s -1 m/model.safetensors
bad truncated 'm/model.safetensors: ' q m
fresh && : >m/model.safetensors
bad 'a file of 0 bytes' 'm/model.safetensors: not safetensors: only 0 bytes' q m
fresh && rm m/model.safetensors
bad 'no weights' 'm: no weights' q m
bad 'nothing there' 'nothing: No such file' q nothing
bad 'a GGUF file' 'only safetensors' q "$T/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf"

# Index.
fresh mixtral && sed -i 's/model-00002-of/..\/model-00002-of/' m/model.safetensors.index.json
bad 'an index that escapes' '\.\./model-00002-of-00003.safetensors' q m
fresh mixtral && sed -i 's/"model-00002-of/"\/model-00002-of/' m/model.safetensors.index.json
bad 'an absolute name' "'/model-00002-of-00003.safetensors'" q m
fresh mixtral && mv m/model-00002-of-00003.safetensors . &&
    ln -s ../model-00002-of-00003.safetensors m/
bad 'a link that leads out' 'm/model-00002-of-00003.safetensors' q m
rm model-00002-of-00003.safetensors
fresh mixtral && rm m/model-00002-of-00003.safetensors
bad 'a missing shard' 'model-00002-of-00003.safetensors' q m
fresh mixtral && sed -i 's/"model.norm.weight"/"model.norm.other"/' m/model.safetensors.index.json
bad 'an index of other tensors' 'tensor model.norm' q m

# Configuration.
fresh && sed -i 's/"hidden_size": 128/"hidden_size": "128"/' m/config.json
bad 'a wrong type' 'm/config.json: hidden_size: ' q m
fresh && sed -i 's/"num_experts": 16/"num_experts": -1/' m/config.json
bad 'a wrong range' 'm/config.json: num_experts: ' q m
fresh && echo '{' >m/config.json
bad 'no JSON' 'm/config.json:' q m
fresh && sed -i 's/"num_experts": 16/"num_experts": 17/' m/config.json
bad 'an expert too few' 'm: layer 0: 48 matrices of experts, want 51' q m

# Weights.
fresh && "$st" poke m $e 15490 c07f
bad 'a NaN' "m: tensor $e: 1 values are NaN or infinite, the first at \[60, 65\]" q m
bad 'a NaN, with threads' "m: tensor $e: 1 values are NaN or infinite, the first at \[60, 65\]" \
    q -j3 m
"$st" poke m $e 15494 807f807f
"$st" poke m $e 32766 80ff
bad 'more' "m: tensor $e: 4 values are NaN or infinite, the first at \[60, 65\]" q m
bad 'more, of a stream' "stdin: tensor $e: 4 values are NaN or infinite, the first at \[60, 65\]" \
    sh -c "'$B/moe-quant' -q - dst.safetensors <m/model.safetensors"
"$st" fuse m fused
bad 'in a stack' "fused: tensor model.layers.1.mlp.experts.gate_up_proj: 4 values are NaN or \
infinite, the first at \[60, 65\] of model.layers.1.mlp.experts.7.up_proj" q fused

# Models.
fresh deepseek_v3_fp8 && sed -i 's/"quantization_config"/"other_config"/' m/config.json
bad 'FP8 not told' 'its F8_E4M3 does not go with quantization_config' q m
"$B/moe-quant" -q "$(model qwen3_moe)" packed.safetensors
"$st" rename packed.safetensors p.safetensors x y
bad 'packed, not told' 'its weight_packed does not go with quantization_config' q p.safetensors
rm packed.safetensors p.safetensors
fresh && "$st" rename m dst2 x y && "$st" fuse m fused &&
    sed -i 's/"qwen3_moe"/"another"/' fused/config.json
bad 'a stack of an unknown family' 'the layout of its family is not known' q fused
"$st" rename "$T/data/kjv-moe" odd model.embed_tokens.weight model.something.weight
bad 'a large tensor of an unknown name' 'model.something.weight: nothing is known of this name' \
    q odd
"$st" rename "$(model qwen3_moe)" dense.safetensors x y
bad 'no experts' 'no routed experts' sh -c "'$st' rename '$T/data/quant/src/weights.safetensors' \
    n.safetensors a model.norm.weight b '' c lm_head.weight && '$B/moe-quant' -q n.safetensors dst"

# Usage.
bad 'no operands' 'SRC and DST' "$B/moe-quant"
bad 'one operand' 'SRC and DST' "$B/moe-quant" a
bad 'a format' 'int5' q -f int5 a
bad 'a group' '48' q -g 48 a
bad 'threads' 'threads' q -j 0 a
bad 'JSON without a plan' '--json goes with -n' q --json a
bad 'two things on stdout' 'cannot both go to stdout' "$B/moe-quant" --report - a -
tap_end
