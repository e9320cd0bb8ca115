#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One result, in every format that kernels multiply packed: the same bytes on disk or packed in
# memory, by any threads, cut and instruction set, in both arithmetics.
. "$T/tap.sh"
. "$T/models.sh"
quant=$B/moe-quant serve=$B/moe-serve
"$B/tests/tools/golden_logits" prompts "$T/data/models/qwen3_moe/golden.json" | head -2 >prompts

# ways NAME DIR
ways() {
    rm -rf packed
    "$quant" -q --to packed "$2" packed 2>err
    ok "$1: packed" $? err
    for a in f32 fast; do
        "$serve" --logits --arith $a -j1 -b 512 "$2" <prompts >want
        bad=0 n=0
        for d in "$2" packed; do
            for how in "-j1 -b1" "-j3 -b7" "-j2 -b200"; do
                for cpu in ref avx2 avx512; do
                    n=$((n + 1))
                    # shellcheck disable=SC2086  # two options
                    MOE_CPU=$cpu "$serve" --logits --arith $a $how "$d" <prompts |
                        cmp -s - want || { bad=$((bad + 1)); echo "# $d $how $cpu differs"; }
                done
            done
        done
        is "$1, $a: $n ways, the same bytes" $bad 0
    done
}
for f in "int4 -g 32" "int4 --asym" "int4 --asym -g channel" "int8" "int8 --asym" int8-w8a8 \
    fp8 fp8-tensor fp8-block fp8-deepseek mxfp4 mxfp8; do
    rm -rf q
    # shellcheck disable=SC2086  # options and their words
    "$quant" -q -f $f "$(model qwen3_moe)" q 2>err || { ok "$f: quantised" 1 err; continue; }
    ways "$f" q
done
ways "gpt-oss" "$(model gpt_oss_mxfp4)"
ways "DeepSeek FP8" "$(model deepseek_v3_fp8)"
tap_end
