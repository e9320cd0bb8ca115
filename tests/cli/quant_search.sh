#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --search: better by as much as is claimed, and never worse.
. "$T/tap.sh"
st=$B/tests/tools/st twin=$B/tests/tools/twin
conf='{"model_type":"qwen3_moe","hidden_size":1024,"num_hidden_layers":1,"vocab_size":64,
"num_attention_heads":1,"num_experts":1,"num_experts_per_tok":1,"moe_intermediate_size":512}'

db() { # db OPTIONS: of the random matrix
    # shellcheck disable=SC2086
    "$B/moe-quant" -q --force $1 --report - w.safetensors x.safetensors | head -1 |
        sed 's/.*"sqnr_db":\([0-9.]*\).*/\1/'
}
least() { # least WHAT OPTIONS MORE THAN-DB
    least_db=$(db "$2")
    awk -v a="$least_db" -v b="$4" -v m="$3" 'BEGIN { exit !(a >= b + m) }'
    ok "$1: $least_db dB, $4 without" $?
}
for k in gauss student outliers; do
    "$st" random w.safetensors $k
    rtn=$(db '')
    least "$k, mse" '--search mse' 0.7 "$rtn"
    least "$k, wide" '--search wide' 0.7 "$rtn"
    least "$k, mse, both signs" '--search mse --scale-sign both' 1.1 "$rtn"
    least "$k, both signs over one" '--search mse --scale-sign both' 0.35 "$(db '--search mse')"
    least "$k, zero points" '--asym --search mse' 0.4 "$(db --asym)"
    least "$k, mxfp4" '-f mxfp4 --search mse' 0.05 "$(db '-f mxfp4')"
    least "$k, nvfp4" '-f nvfp4 --search mse' 1 "$(db '-f nvfp4')"
done

# Group by group.
mkdir w && echo "$conf" >w/config.json
"$st" random w/model.safetensors student
sed -i 's/"num_experts":1/"num_experts":0/; s/"num_experts_per_tok":1/"num_experts_per_tok":0/' w/config.json
for o in '-f int4' '-f int4 --scale-sign both' '-f int4 --asym' '-f int8' '-f mxfp4' '-f nvfp4'; do
    for s in mse wide; do
        g=128
        case $o in *mxfp4*) g=32 ;; *nvfp4*) g=16 ;; esac
        # shellcheck disable=SC2086
        "$B/moe-quant" -q --force $o w a && "$B/moe-quant" -q --force $o --search $s w b
        is "$o, $s: groups that are worse" "$("$twin" worse w a b $g)" "0 of $((524288 / g))"
    done
done

# One result.
for cpu in ref avx2 avx512; do
    for o in '-f int4 --search wide --scale-sign both' '-f int4 --asym --search mse' \
        '-f mxfp4 --search mse' '-f nvfp4 --search mse'; do
        # shellcheck disable=SC2086
        MOE_CPU=$cpu "$B/moe-quant" -q --force -j2 $o w a
        "$st" sums a
    done >sums.$cpu
    cmp -s sums.ref sums.$cpu
    ok "MOE_CPU=$cpu finds the same scales" $?
done
tap_end
