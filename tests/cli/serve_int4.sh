#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What moe-quant writes runs: golden logits of the INT4 models, the same bytes
# in both arithmetics for any threads, cut and instruction set; INT8; and how
# much the trained model loses.
. "$T/tap.sh"
. "$T/models.sh"
golden=$B/tests/tools/golden_logits
serve=$B/moe-serve
kjv=$T/data/kjv-moe

for m in mixtral qwen3_moe; do
    "$B/moe-quant" -q "$(model $m)" "$m" 2>err
    ok "$m: quantised" $? err
    "$golden" prompts "$T/data/models/$m/golden.json" >prompts
    "$serve" --logits "$m" <prompts >f32 &&
        "$golden" compare f32 "$T/data/quant/e2e/$m.safetensors" 1e-4 >out 2>&1
    ok "$m: $(cat out)" $?
    "$serve" --logits --arith fast "$m" <prompts >fast &&
        "$golden" compare fast "$T/data/quant/e2e/$m.safetensors" 0.3 >out 2>&1
    ok "$m, int8 inputs: $(cat out)" $?
    ! cmp -s f32 fast
    ok "$m: the arithmetics differ" $?
    for a in f32 fast; do
        "$serve" --logits --arith $a -j1 -b 5 "$m" <prompts | cmp - $a >out 2>&1
        ok "$m, $a: the same bytes in another cut" $? out
        head -2 prompts | "$serve" --logits --arith $a "$m" >short
        for cpu in ref avx2 avx512; do
            head -2 prompts | MOE_CPU=$cpu "$serve" --logits --arith $a "$m" | cmp - short >out 2>&1
            ok "$m, $a: the same bytes with MOE_CPU=$cpu" $? out
        done
    done
done

"$B/moe-quant" -q "$kjv" int4 2>err && "$B/moe-quant" -q -f int8 "$kjv" int8 2>>err
ok "kjv-moe: quantised" $? err
is "a text from INT4 begins alike" \
    "$(printf 'In the beginning God created' | "$serve" --once -N 3 --arith f32 int4)" ", and the"
is "and one from INT8" \
    "$(printf 'In the beginning God created' | "$serve" --once -N 3 int8)" ", and the"

# within NAME A B RATIO: A is at most RATIO times B, and differs from it.
within() {
    awk -v a="$2" -v b="$3" -v r="$4" 'BEGIN { exit !(a > 1 && a != b && a < b * r && b < a * r) }'
    ok "$1: $2 for $3" $?
}
ppl() {
    "$serve" --ppl -c 256 "$@" <text 2>&1 | sed 's/.*"ppl":\([0-9.]*\).*/\1/'
}
case $B in
*/release)
    head -c 12000 "$kjv/heldout.txt" >text
    bf16=$(ppl "$kjv") int4=$(ppl int4) fast=$(ppl --arith fast int4) int8=$(ppl int8)
    within "INT4 against BF16" "$int4" "$bf16" 1.03
    within "INT4, int8 inputs, against INT4" "$fast" "$int4" 1.003
    within "INT8 against BF16" "$int8" "$bf16" 1.003 ;;
*) skip "perplexities, in this slow build" ;;
esac
tap_end
