#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --to packed: what it writes is in the packed layout, runs and gives the bytes of what it
# was made from; the same file from any number of threads; damage is refused by name.
. "$T/tap.sh"
. "$T/models.sh"
quant=$B/moe-quant serve=$B/moe-serve st=$B/tests/tools/st

for m in mixtral qwen3_moe; do
    "$quant" -q "$(model $m)" $m 2>err && "$quant" -q --to packed -j1 $m packed.$m 2>>err
    ok "$m: packed" $? err
    "$quant" -q --to packed -j3 $m again 2>err
    cmp packed.$m/model.safetensors again/model.safetensors >out 2>&1
    ok "$m: the same file from other threads" $? out
    rm -rf again
    "$B/tests/tools/golden_logits" prompts "$T/data/models/$m/golden.json" >prompts
    for a in f32 fast; do
        "$serve" --logits --arith $a $m <prompts >want
        "$serve" --logits --arith $a packed.$m <prompts 2>err | cmp - want >out 2>&1
        ok "$m, $a: the same logits" $? out
    done
    is "$m: the same text" "$(printf 'In the' | "$serve" --once -N 8 packed.$m)" \
        "$(printf 'In the' | "$serve" --once -N 8 $m)"
done

# What is quantised already as it was published: golden logits, and the same bytes packed.
for m in gpt_oss_mxfp4 deepseek_v3_fp8; do
    "$quant" -q --to packed "$(model $m)" packed.$m 2>err
    ok "$m: packed" $? err
    "$B/tests/tools/golden_logits" prompts "$T/data/models/$m/golden.json" >prompts
    "$serve" --logits packed.$m <prompts >f32 &&
        "$B/tests/tools/golden_logits" compare f32 "$T/data/models/$m/golden.safetensors" 1e-4 \
            >out 2>&1
    ok "$m: $(cat out)" $?
    "$serve" --logits "$(model $m)" <prompts | cmp - f32 >out 2>&1
    ok "$m: the same logits as before" $? out
done
is "stacks are gone" "$("$st" sums packed.gpt_oss_mxfp4 | grep -c _blocks)" 0
is "their biases are there" "$("$st" sums packed.gpt_oss_mxfp4 | grep -c down_proj_bias)" 3
is "single matrices too" "$("$st" sums packed.deepseek_v3_fp8 | grep -c '_proj[a-z_]*\.packed')" 21

for f in "int8" "int4 --asym" "mxfp4" "fp8 --shared keep"; do
    rm -rf q packed.q
    # shellcheck disable=SC2086  # options and their words
    "$quant" -q -f $f "$(model qwen3_moe)" q 2>err && "$quant" -q --to packed q packed.q 2>>err
    ok "$f: packed" $? err
    for a in f32 fast; do
        head -2 prompts | "$serve" --logits --arith $a q >want
        head -2 prompts | "$serve" --logits --arith $a packed.q | cmp - want >out 2>&1
        ok "$f, $a: the same logits" $? out
    done
done

# The codes of INT4 as GPTQ and AWQ store them: the same weights, so the same logits, which are
# within 1e-4 of those of compressed-tensors and transformers.
"$B/tests/tools/golden_logits" prompts "$T/data/models/qwen3_moe/golden.json" >prompts
for how in gptq awq; do
    "$B/tests/tools/ct_gptq" qwen3_moe $how $how 2>err
    ok "$how: written" $? err
    "$serve" --logits $how <prompts >f32 2>err &&
        "$B/tests/tools/golden_logits" compare f32 "$T/data/quant/e2e/qwen3_moe.safetensors" 1e-4 \
            >out 2>&1
    ok "$how: $(cat out)" $? err
    "$serve" --logits --arith fast qwen3_moe <prompts >want
    "$serve" --logits --arith fast $how <prompts | cmp - want >out 2>&1
    ok "$how, fast: the bytes of the INT4 model" $? out
    "$quant" -q --to packed $how packed.$how 2>err &&
        "$serve" --logits --arith fast packed.$how <prompts | cmp - want >out 2>&1
    ok "$how: packed" $? err
done

bytes=$("$st" sums packed.mixtral |
    awk '/^model.layers.0.block_sparse_moe.experts.0.packed.0 U8 / { print $3; exit }')
is "a record is whole pages" "$((bytes > 0 && bytes % 4096 == 0))" 1
is "no codes are left" "$("$st" sums packed.mixtral | grep -c weight_packed)" 0
status "the sum of what is read" 0 "$B/moe-verify" sum packed.mixtral

# damaged DIR WHAT WORD...: refused with status 2 and one line that has the words.
damaged() {
    d=$1 what=$2
    shift 2
    printf '1 2 3\n' | "$serve" --logits "$d" >out 2>err
    is "$what" "$?" 2
    for word; do
        grep -q -- "$word" err
        ok "$what: tells $word" $? err
    done
    is "$what: in one line" "$(wc -l <err)" 1
}
r=model.layers.1.block_sparse_moe.experts.2.packed.0
cp -r packed.mixtral bad && "$st" poke bad/model.safetensors $r 1000 7f
damaged bad "a changed byte" "$r" damaged
cp packed.mixtral/model.safetensors bad && truncate -s -4096 bad/model.safetensors
damaged bad "a cut file" model.safetensors
sed 's/"moe.packed.version":"1"/"moe.packed.version":"7"/' packed.mixtral/model.safetensors \
    >bad/model.safetensors
damaged bad "another version" moe.packed.version 7
sed 's/"moe.packed":"rows16"/"moe.packed":"rows32"/' packed.mixtral/model.safetensors \
    >bad/model.safetensors
damaged bad "another layout" rows32
sed 's/experts\.3\.packed\.0/experts.2.packed.0/' packed.mixtral/model.safetensors \
    >bad/model.safetensors
damaged bad "a record twice" experts.2
sed 's/layers\.1\(.*\)experts\.3\.packed\.0/layers.9\1experts.3.packed.0/' \
    packed.mixtral/model.safetensors >bad/model.safetensors
damaged bad "a record that is missing" experts

status "a model without codes" 2 "$quant" --to packed "$(model mixtral)" x
grep -q 'quantise it first' err
ok "says what to do" $? err
status "no directory" 2 "$quant" --to packed mixtral x.safetensors
status "with a format" 2 "$quant" --to packed -f int4 mixtral x
status "what is there" 2 "$quant" --to packed mixtral packed.mixtral
status "is replaced by force" 0 "$quant" -q --force --to packed mixtral packed.mixtral
[ ! -e x ] && [ ! -e x.safetensors ]
ok "nothing was left" $?
tap_end
