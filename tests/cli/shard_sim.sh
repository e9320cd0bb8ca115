#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bytes and loads of traces played over plans, number for number those of a simulation in numpy;
# time, and what is refused.
. "$T/tap.sh"
S=$B/moe-shard D=$T/data/shard/sim

while IFS="$(printf '\t')" read -r i trace out back name; do
    for way in direct rail; do
        [ $way = direct ] && set -- || set -- --rail
        "$S" sim --json --dispatch-bytes "$out" --combine-bytes "$back" -p "$D/$i.plan" "$@" \
            "$D/$trace" | grep '"layer"' | cmp - "$D/$i.$way" >diff.out 2>&1
        ok "$name, $way" $? diff.out
    done
done <"$D/cases"

# Dealt out in turn: what the plan that says so does; steps add up to the whole.
"$S" sim -p "$D/0.plan" --matrix one "$D/small.tsv" >out
"$S" sim --naive 8 -g 8 --nodes 2 --matrix two "$D/small.tsv" | cmp -s - out && cmp -s one two
ok 'naive' $?
is 'matrix: devices' "$(awk 'NF == 8' one | wc -l)" 8
"$S" sim -p "$D/0.plan" --step 1 --matrix steps "$D/small.tsv" >out
cmp -s steps one && grep -q '^[1-9][0-9]* steps' out
ok 'steps of one token: the same bytes' $?

# One token of one layer, on device 0 of two, its expert on device 1: 10 us there, its work, 20 us
# back, and the latency of both.
printf 'layer\ttoken\texperts\n0\t0\t1\n0\t1\t1\n' >trace
"$S" sim --naive 2 -g 2 --dispatch-bytes 1000 --combine-bytes 2000 --node-bandwidth 100000000 \
    --latency 0.000001 --token-time 0.000003 --json trace | tail -1 >out
grep -q '"makespan_s":3.8e-05,' out && grep -q '"p99_s":3.8e-05,' out
ok 'time of a step' $? out
"$S" sim --naive 2 -g 2 --nodes 2 --dispatch-bytes 1000 --combine-bytes 2000 \
    --link-bandwidth 100000000 --json trace | grep -q '"makespan_s":3e-05,'
ok 'time between nodes' $?

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" sim "$@" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
printf '0\t0\t1\n' >bare; printf 'layer\ttoken\texperts\n0\t0\t1,1\n' >twice
printf 'layer\ttoken\texperts\n0\t0\t\n' >nobody; printf 'layer\ttoken\texperts\n0\t0\tx\n' >word
: >none
printf 'layer\ttoken\texperts\n0\t0\t8\n' >far
for k in bare twice nobody word none far; do refuse $k . -p "$D/0.plan" $k; done
refuse 'no plan' '--plan' "$D/small.tsv"
refuse 'a plan that is none' 'trace' -p trace "$D/small.tsv"
refuse 'devices that nodes do not divide' '--naive' --naive 8 -g 8 --nodes 3 "$D/small.tsv"
refuse 'no file' nowhere -p "$D/0.plan" nowhere
refuse 'a matrix that is there' 'one' -p "$D/0.plan" --matrix one "$D/small.tsv"
tap_end
