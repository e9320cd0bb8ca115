#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One result: logits of three families do not hang on threads, the cut of a prompt into steps or
# the instruction set, in both arithmetics, of plain weights, of INT4 ones and of those packed.
. "$T/tap.sh"
. "$T/models.sh"
serve=$B/moe-serve
for m in deepseek_v3 gpt_oss qwen3_moe; do
    p=$(model $m) || exit 1
    "$B/tests/tools/golden_logits" prompts "$T/data/models/$m/golden.json" >prompts
    cp -r "$p" plain.$m
    # (gpt-oss keeps its experts in stacks, which INT4 ones are not: those do not run.)
    [ $m = gpt_oss ] || "$B/moe-quant" -q "$p" int4.$m || exit 1
    [ ! -d int4.$m ] || "$B/moe-quant" -q --to packed int4.$m packed.$m || exit 1
    for w in plain int4 packed; do
        [ -d $w.$m ] || continue
        for a in f32 fast; do
            "$serve" --logits --arith $a -j1 -b 512 $w.$m <prompts >want
            [ $w != int4 ] || cp want int4.$a
            if [ $w = packed ]; then
                cmp want int4.$a >out 2>&1
                ok "$m, $w, $a: the bytes of what it was made from" $? out
            fi
            n=0 bad=0
            [ -s want ] || bad=1
            for j in 1 2 3 5; do
                for b in 1 2 7 32 200; do
                    n=$((n + 1))
                    "$serve" --logits --arith $a -j$j -b$b $w.$m <prompts | cmp -s - want ||
                        { bad=$((bad + 1)); echo "# -j$j -b$b differs"; }
                done
            done
            for cpu in ref avx2 avx512; do
                n=$((n + 1))
                MOE_CPU=$cpu "$serve" --logits --arith $a $w.$m <prompts | cmp -s - want ||
                    { bad=$((bad + 1)); echo "# MOE_CPU=$cpu differs"; }
            done
            is "$m, $w, $a: $n ways, the same bytes" $bad 0
        done
    done
    rm -rf plain.$m int4.$m packed.$m
done
tap_end
