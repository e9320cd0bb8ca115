#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --budget, --bpw: a policy that fits, and gets better with room.
. "$T/tap.sh"
. "$T/models.sh"
k=$T/data/kjv-moe
q() { "$B/moe-quant" -q --force "$@"; }
total() { "$B/moe-quant" -n --policy p.yaml "$1" x | awk '/ in all$/ { print $1 }'; }

last=0
for b in 5600000 6500000 8000000 12000000; do
    status "--budget $b" 0 "$B/moe-quant" -q --budget $b "$k"
    cp out p.yaml
    size=$(total "$k")
    [ "$size" -le $b ] && [ "$size" -ge "$last" ]
    ok "makes $size bytes" $?
    last=$size
done
"$B/moe-quant" -q --budget 20MB "$k" >p.yaml
is "with room for all of it, all is kept" "$(grep -c format: p.yaml)" "$(grep -c 'format: keep' p.yaml)"
status "less than the smallest" 2 "$B/moe-quant" -q --budget 1MB "$k"
grep -q 'the smallest it can be is about' err
ok "tells it" $? err

db=0
for w in 4.6 5.5 7; do
    "$B/moe-quant" -q --bpw $w "$k" >p.yaml
    is "--bpw $w gives no more" "$(awk -v w=$w '/^# / { print ($2 <= w) }' p.yaml)" 1
    q --policy p.yaml "$k" x
    "$B/moe-quant" --diff "$k" x | tail -1 >line
    new=$(sed 's/.*"sqnr_db":\([0-9.]*\).*/\1/' line)
    awk -v a="$db" -v b="$new" 'BEGIN { exit !(b > a) }'
    ok "--bpw $w: $new dB, more than $db" $?
    db=$new
done
for j in 1 3; do "$B/moe-quant" -q -j$j --bpw 5 "$(model deepseek_v3)" >p.$j; done
cmp -s p.1 p.3
ok "the same policy for any -j" $?
status "of a model with latent attention" 0 q --policy p.1 "$(model deepseek_v3)" y
status "of what is quantised already" 0 "$B/moe-quant" -q --bpw 5 "$(model deepseek_v3_fp8)"
status "both" 2 "$B/moe-quant" --bpw 5 --budget 1GB "$k"
status "a size that is none" 2 "$B/moe-quant" --budget 1XB "$k"
tap_end
