#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random grids, one after another: whatever a set is resharded through, merging gives the model.
. "$T/tap.sh"
. "$T/models.sh"
S=$B/moe-shard
RANDOM=7
pick() { local a=("$@"); echo "${a[RANDOM % $#]}"; }
n=0 bad=0
end=$((SECONDS + 400))
K=$T/data/kjv-moe
"$B/moe-quant" -q -f int4 "$K" int4 && "$B/moe-quant" -q -f int8 "$K" int8
models=(int4 int8)
for f in mixtral qwen3_moe deepseek_v3_fp8 gpt_oss_mxfp4 granitemoe phimoe; do
    models+=("$(model $f)") || exit 1
done
while [ $n -lt 1000 ] && [ $SECONDS -lt $end ]; do
    m=$(pick "${models[@]}")
    grid() {
        echo "--tp $(pick 1 2 4) --ep $(pick 1 2 3 4) --pp $(pick 1 2)" \
            "--experts $(pick linear round-robin) --layout $(pick dirs files)"
    }
    rm -rf a b c
    g=$(grid) h=$(grid)
    # shellcheck disable=SC2086 # the options are words
    "$S" split -q $g "$m" a 2>err || { grep -qE 'nothing to cut|fewer than' err && continue; }
    # shellcheck disable=SC2086
    "$S" reshard -q $h a b 2>>err || { grep -qE 'nothing to cut|fewer than' err && continue; }
    n=$((n + 1))
    if ! "$S" merge -q b c 2>>err ||
        ! diff -r -x .made-from -x weights.json -x 'golden*' "$m" c >>err; then
        bad=$((bad + 1))
        echo "# $m: $g, $h: $(cat err)"
    fi
done
echo "# $n ways"
[ $n -ge 100 ] && [ $bad -eq 0 ]
ok 'split, resharded, merged: the same bytes' $?
tap_end
