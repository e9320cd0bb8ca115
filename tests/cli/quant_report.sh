#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --report: a line for each tensor, figures that follow from the weights.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st

status "a report" 0 "$B/moe-quant" -q --report r "$(model mixtral)" dst
is "a line a tensor and a summary" "$(wc -l <r)" 97
is "experts" "$(grep -c '"role":"expert".*"scheme":"int4-g128".*"sqnr_db":' r)" 72
is "the rest" "$(grep -c '"scheme":"kept"' r)" 24
for j in 2 7; do
    "$B/moe-quant" -q --force --report r2 -j$j "$(model mixtral)" dst
    cmp -s r r2
    ok "the same with -j$j" $?
done
MOE_CPU=ref "$B/moe-quant" -q --force --report r2 "$(model mixtral)" dst
cmp -s r r2
ok "the same by the reference kernels" $?

# The sums of errors that numpy found for compressed-tensors' own output.
field() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2"; }
e=model.layers.0.mlp.experts.0
"$st" rename "$T/data/quant/src/weights.safetensors" x.safetensors a $e.gate_proj.weight b '' c ''
"$B/moe-quant" -q --force --report r x.safetensors y.safetensors
head -1 r >line
want=$(tr '{,' '\n\n' <"$T/data/quant/ct/int4_sym_g128.json" | awk -F': ' '/"sum_sq_error"/ { e = $2 }
    /"sum_sq"/ { s = $2; gsub(/[} ]/, "", s); printf "%.4f\n", 10 * log(s / e) / log(10); exit }')
got=$(field sqnr_db line | awk '{ printf "%.4f\n", $1 }')
is "the ratio of signal to error" "$got" "$want"
is "groups" "$(field groups line)" 256

# Zeros stay zeros, and are counted.
"$st" synth z 1 1 128 128 plain
head -c 32768 /dev/zero | od -An -v -tx1 | tr -d ' \n' >hex
"$st" poke z model.layers.0.mlp.experts.0.gate_proj.weight 0 "$(cat hex)"
"$B/moe-quant" -q --report r3 z zq
is "zero groups" "$(grep '0.gate_proj' r3 | sed -n 's/.*"zero_groups":\([0-9]*\).*/\1/p')" 128
printf '\210%.0s' $(seq 8192) | sha256sum | cut -d' ' -f1 >want
"$st" sums zq | awk '/gate_proj.weight_packed/ { print $NF }' >got
cmp -s want got
ok "have codes that mean zero" $?
tap_end
