#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --diff, --scan, --check: models looked at and compared.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st twin=$B/tests/tools/twin
k=$T/data/kjv-moe
q() { "$B/moe-quant" -q --force "$@"; }
field() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }

# A report's figures come out of the two models as well.
for o in '-f int4 --search mse' '-f fp8-block' '-f nvfp4' '-f int8 --asym'; do
    # shellcheck disable=SC2086
    q $o --report r "$k" a
    status "--diff, $o" 0 "$B/moe-quant" --diff "$k" a
    e=model.layers.2.mlp.experts.7.up_proj
    is "the ratio of the report" \
        "$(grep "\"$e\"" out | field sqnr_db | awk '{ printf "%.6f", $1 }')" \
        "$(grep "\"name\":\"$e\"" r | head -1 | field sqnr_db | awk '{ printf "%.6f", $1 }')"
done
is "a line a tensor of the source, and a summary" "$(wc -l <out)" 231
status "--diff of a model with itself" 0 "$B/moe-quant" --diff a a
is "finds nothing" "$(tail -1 out | cut -c1-38)" '{"summary":true,"differ":0,"faults":0,'
"$twin" fuse "$(model qwen3_moe)" fused
status "--diff of a model and its fused twin" 0 "$B/moe-quant" --diff "$(model qwen3_moe)" fused
is "finds nothing either" "$(tail -1 out | cut -c1-38)" '{"summary":true,"differ":0,"faults":0,'
status "--diff --gate" 1 "$B/moe-quant" --diff --gate sqnr=60 "$k" a
"$st" rename "$k" less.safetensors model.norm.weight ''
status "--diff where one lacks a tensor" 1 "$B/moe-quant" --diff "$k" less.safetensors
grep -q '"name":"model.norm","role":"norm","fault":"not in both' out
ok "names it" $? out
status "--diff of one" 2 "$B/moe-quant" --diff a

# The gate of a run.
status "--gate that holds" 0 q --gate sqnr=15 "$k" g
rm -rf g
status "--gate that does not" 1 q --gate sqnr=30 --report r "$k" g
grep -q 'gate: model.layers.*dB, under 30: no model is written' err && [ ! -e g ] && [ -s r ]
ok "writes no model, but the report" $? err
is "with the worst ten" "$(tail -1 r | sed 's/.*"worst"//' | grep -o '"name"' | wc -l)" 10
status "--gate without a measure" 2 q --gate 30 "$k" g

# What values there are.
status "--scan" 0 "$B/moe-quant" --scan "$k"
is "a verdict a role" "$(grep -c '"verdict":"fits"' out)" 5
status "--scan --limit" 1 "$B/moe-quant" --scan --limit 0.4 "$k"
grep -q '"verdict":"over","role":"expert","limit":0.4' out
ok "tells the role that is over" $? out
cp -r "$k" m && "$st" poke m model.norm.weight 0 c07f807f
status "--scan of a NaN" 1 "$B/moe-quant" --scan m
grep -q '"name":"model.norm.weight".*"nan":1,"inf":1' out
ok "counts it" $? out
head -1 out >line
is "exponents add up to what is not zero" "$(sed 's/.*exponents":{\(.*\)}}/\1/' line | tr ',' '\n' |
    awk -F: '{ s += $2 } END { print s }')" "$(($(field values <line) - $(field zeros <line)))"

# Every byte.
status "--check" 0 "$B/moe-quant" --check a
status "--check of a NaN" 1 "$B/moe-quant" --check m
grep -q 'model.norm.weight: 2 values are NaN or infinite' out
ok "names the tensor" $? out
q "$k" c
"$st" poke c model.layers.3.mlp.experts.15.down_proj.weight_scale 0 c07f
status "--check of a NaN among scales" 2 "$B/moe-quant" --check c
grep -q 'model.layers.3.mlp.experts.15.down_proj' err
ok "names the matrix" $? err
truncate -s -1 c/model.safetensors
status "--check of a cut file" 2 "$B/moe-quant" --check c

# 13: values that are none.
"$B/moe-quant" -q m x 2>err
cp -r "$k" n && "$st" poke n model.layers.0.mlp.experts.0.up_proj.weight 0 c07f807f80ff
status "13: NaN and infinity stop a run" 2 q n x
grep -q 'up_proj.weight: 3 values are NaN or infinite, the first at \[0, 0\]' err
ok "13: with tensor, index and count" $? err
for f in int4 fp8-block fp8-tensor mxfp4 nvfp4; do
    status "13: $f, --nan zero" 0 q -f $f --nan zero --report r n x
    is "13: $f: counted" "$(grep -o '"nan_zeroed":[0-9]*' r | tail -1)" '"nan_zeroed":3'
    status "13: $f: what came out is finite" 0 "$B/moe-quant" --check x
done

# 3, 4: zeros, and one value among them.
"$st" synth z 1 1 128 128 plain
head -c 32768 /dev/zero | od -An -v -tx1 | tr -d ' \n' >hex
for p in gate up down; do
    "$st" poke z model.layers.0.mlp.experts.0.${p}_proj.weight 0 "$(cat hex)"
done
"$st" poke z model.layers.0.mlp.experts.0.gate_proj.weight 0 803f
for f in int4 'int4 --asym' int8 int8-w8a8 fp8 fp8-tensor fp8-block fp8-deepseek mxfp4 mxfp8 nvfp4; do
    # shellcheck disable=SC2086
    q -f $f --report r z x
    "$B/moe-quant" --check x >out && "$B/moe-quant" --diff z x >d &&
        grep '0.up_proj' d | grep -q '"sqnr_db":null'
    ok "3: $f: zeros stay zeros, and no scale is NaN" $? out
done
"$st" poke z model.layers.0.mlp.experts.0.gate_proj.weight 512 7f7f7f7f7f7fff7e
for f in int4 'int4 --asym' int8 fp8 fp8-tensor fp8-block mxfp4 mxfp8 nvfp4; do
    # shellcheck disable=SC2086
    q -f $f z x && "$B/moe-quant" --check x >out
    ok "4: $f: the largest numbers saturate" $? out
done
tap_end
