#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --method gptq: less far from the model than rounding to the nearest, on a text it was
# not calibrated with; the same bytes in any number of passes and threads.
. "$T/tap.sh"
K=$T/data/kjv-moe Q=$B/moe-quant
q() { "$Q" -q --force -f int4 "$@"; }
head -c 24000 "$K/heldout.txt" >one
tail -c 24000 "$K/heldout.txt" >two
kl() { "$Q" -q --kl two "$K" "$1" | sed 's/.*"kl":\([0-9.e-]*\),.*/\1/'; }

q "$K" near && q --method gptq --calibrate one "$K" gptq
a=$(kl near) b=$(kl gptq)
awk -v a="$a" -v b="$b" 'BEGIN { exit !(b > 0 && b <= 0.9 * a) }'
ok "KL to the model: $b, of $a when rounded to the nearest" $?
q --search wide --scale-sign both --method gptq --calibrate one "$K" both
c=$(kl both)
awk -v a="$a" -v c="$c" 'BEGIN { exit !(c > 0 && c <= 0.8 * a) }'
ok "with a search: $c" $?
"$B/tests/tools/st" sums near | grep weight_scale >near.scales
"$B/tests/tools/st" sums gptq | grep weight_scale | cmp -s - near.scales
ok 'scales are those of rounding to the nearest' $?
"$B/tests/tools/st" sums near | grep weight_packed >near.codes
"$B/tests/tools/st" sums gptq | grep weight_packed | cmp -s - near.codes
[ $? -eq 1 ]
ok 'codes are not' $?
q -j1 --method gptq --calibrate one "$K" again && diff -r gptq again >log
ok 'one thread: the same bytes' $? log
q --memory 3MB --method gptq --calibrate one "$K" again && diff -r gptq again >log
ok 'several passes: the same bytes' $? log
q --tokens 300 --method gptq --calibrate one --imatrix-out i.gguf "$K" again 2>err
"$Q" --force -f int4 --tokens 300 --method gptq --calibrate one "$K" again 2>err
grep -q 'experts.[0-9]*.*: fewer than 64 tokens' err
ok 'rare experts are named' $? err
"$Q" -q --force -f int8 --asym --method gptq --calibrate one "$K" again &&
    printf 'In the' | "$B/moe-serve" --once -N 2 --temp 0 again >out && [ -s out ]
ok 'INT8 with zero points' $? out

tap_end
