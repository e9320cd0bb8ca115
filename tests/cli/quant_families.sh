#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant: every family, its experts one by one or in stacks, gives the same
# tensors; every tensor of the input is accounted for; what is quantised already
# is decoded, or taken over where the grid is the same.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st twin=$B/tests/tools/twin

for m in mixtral phimoe olmoe qwen2_moe qwen3_moe deepseek_v2 deepseek_v3; do
    "$twin" fuse "$(model $m)" fused
    for f in int4 nvfp4; do
        "$B/moe-quant" -q -f $f "$(model $m)" one
        "$B/moe-quant" -q -f $f fused two
        "$st" sums one >want
        "$st" sums two >got
        diff want got >changes && [ "$(grep -c weight_packed got)" -gt 70 ]
        ok "6: $m, $f: stacked experts give what single ones give" $? changes
        rm -rf one two
    done
    rm -rf fused
done
for m in granitemoe gpt_oss; do
    "$twin" split "$(model $m)" single
    for f in int4 fp8-block; do
        "$B/moe-quant" -q -f $f "$(model $m)" one
        "$B/moe-quant" -q -f $f single two
        "$st" sums one >want
        "$st" sums two >got
        diff want got >changes && [ "$(grep -c 'weight_scale' got)" -eq 72 ]
        ok "6: $m, $f: its stacks give what single experts give" $? changes
        rm -rf one two
    done
    rm -rf single
done

# 11: every tensor is written anew, copied, or named as dropped.
for m in deepseek_v3 deepseek_v3_fp8 gpt_oss_mxfp4 qwen2_moe; do
    "$B/moe-quant" -q --report r "$(model $m)" x
    tail -1 r | sed 's/.*"tensors_in":\([0-9]*\),"tensors_written":\([0-9]*\),"tensors_copied":\([0-9]*\),"dropped":\[\(.*\)\],"sqnr.*/\1 \2 \3 \4/' >n
    read -r all written copied dropped <n
    is "11: $m: tensors are accounted for" "$all$dropped" "$((written + copied))"
    rm -rf x r
done
"$B/moe-quant" -q "$(model deepseek_v3)" x
"$st" sums x | sort >got
"$st" sums "$(model deepseek_v3)" | grep -E 'correction_bias|norm|mlp.gate|layers.3' >want
[ -s want ] && [ -z "$(sort want | comm -23 - got)" ]
ok "5, 11: routers, norms, correction biases and the MTP layer are byte for byte the same" $?
rm -rf x

# 12: parts in other files, and missing ones.
ds=$(model deepseek_v3_fp8)
status "12: FP8 is read" 0 "$B/moe-quant" -q -f int8 "$ds" x
rm -rf x
e=model.layers.1.mlp.experts.0.up_proj
cp -r "$ds" m && "$st" rename "$ds" m/w.safetensors $e.weight_scale_inv '' &&
    rm -f m/model*.safetensors* && mv m/w.safetensors m/model.safetensors
status "12: a scale that is missing" 2 "$B/moe-quant" -q m x
grep -q "$e.weight_scale_inv: the tensor is missing" err
ok "12: is told" $? err
"$st" rename "$ds" m/w.safetensors $e.weight '' && mv m/w.safetensors m/model.safetensors
status "12: codes that are missing" 2 "$B/moe-quant" -q m x
grep -q "$e.weight_scale_inv: a part of a quantised matrix" err
ok "12: are told" $? err
rm -rf m

# The same grid: taken over, bit for bit.
k=$T/data/kjv-moe
for o in '-f int4' '-f int4 --asym' '-f int8 -g channel' '-f int8-w8a8' '-f fp8' '-f fp8-tensor' \
    '-f fp8-block' '-f fp8-deepseek' '-f mxfp4' '-f mxfp8' '-f nvfp4' '-f int4 --search wide'; do
    # shellcheck disable=SC2086
    "$B/moe-quant" -q $o "$k" a && "$B/moe-quant" -q $o a b
    "$st" sums a >want
    "$st" sums b >got
    cmp -s want got
    ok "19: $o twice is $o once" $?
    rm -rf a b
done
"$B/moe-quant" -q -f mxfp4 --report r "$(model gpt_oss_mxfp4)" x 2>err
is "19: MXFP4 of gpt-oss is dealt anew" "$(grep -c redealt r)" 72
is "19: without error" "$(tail -1 r | grep -c '"sqnr_db":null')" 1

# And back.
"$B/moe-quant" -q -f mxfp4 "$k" a
status "--dequant" 0 "$B/moe-quant" -q --dequant a b
"$st" sums b | cut -d' ' -f1-3 >got
"$st" sums "$k" | cut -d' ' -f1-3 | cmp -s - got
ok "has the names and shapes of the source" $?
"$B/moe-quant" -q -f mxfp4 b c
is "what MXFP4 decodes to becomes MXFP4 without loss" "$("$twin" worse b a c 32 | cut -c1-5)" '0 of '
tap_end
