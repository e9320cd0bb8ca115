#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tags, retention and the collection of garbage: what is needed stays, also for
# a reader that began before; what is not goes.
. "$T/tap.sh"
C=$B/moe-ckpt
"$C" init S || exit 2
mkdir m
# Six saves; each has a new file of its own and one that all share.
head -c 300000 /dev/urandom >m/shared
for i in 1 2 3 4 5 6; do
    head -c 200000 /dev/urandom >m/own
    cp m/own "own.$i"
    "$C" save -q --id $((10 * i)) --time $((1000 * i)) -m loss=$((7 - i)) S m >id || exit 2
done
status "tag" 0 "$C" tag S@20 good
status "a tag that is taken" 2 "$C" tag S@30 good
status "a tag that is a number" 2 "$C" tag S@30 77
status "a tag that is latest" 2 "$C" tag S@30 latest
status "a tag that leads out" 2 "$C" tag S@30 ../x
status "list" 0 "$C" tag S
is "two names" "$(tr '\n' ' ' <out)" "good 20 latest 60 "
status "the latest stays" 2 "$C" drop S 60
status "what is tagged stays" 2 "$C" drop S 20
status "no such save" 2 "$C" drop S 99
status "neither numbers nor rules" 2 "$C" drop S
status "by number" 0 "$C" drop S 10
is "is told" "$(cat out)" "drop 10"
status "rules, dry" 0 "$C" drop -n --keep-last 2 --keep-every 40 S
is "with reasons" "$(tr '\n' ';' <out)" \
    "keep 20 (tag);drop 30;keep 40 (keep-every);keep 50 (keep-last);keep 60 (latest);"
is "nothing was done" "$("$C" log S | wc -l)" 5
status "best" 0 "$C" drop -n --keep-best loss S
is "the lowest, which is the latest here" "$(grep -c keep out)" 2
status "rules" 0 "$C" drop --keep-last 1 --keep-every 40 S
is "are followed" "$("$C" log S | cut -d' ' -f1 | tr '\n' ' ')" "60 40 20 "
status "gc, dry" 0 "$C" gc -n --waste 30 --json S
ok "counts" "$(grep -q '"removed":2,"copied":1' out; echo $?)" out
is "and removes nothing" "$(find S/packs -name '*.pack' | wc -l)" 6
status "gc" 0 "$C" gc --waste 30 S
status "is whole after" 0 "$C" fsck -q S
for i in 2 4 6; do
    "$C" cat "S@$((10 * i)):own" | cmp -s - "own.$i"
    ok "save $((10 * i)) is as it was" $?
done
ok "shared bytes, too" "$("$C" cat S@20:shared | cmp - m/shared >why; echo $?)" why
is "the trash is empty" "$(find S/trash -mindepth 1 | wc -l)" 0
status "gc again has nothing to do" 0 "$C" gc --json S
ok "so" "$(grep -q '"removed":0,"copied":0' out; echo $?)" out
status "a save goes on from there" 0 "$C" save -q S m
is "its number" "$(cat out)" 61

# A reader holds what it reads: its output is a pipe that is not emptied yet.
head -c 20000000 /dev/urandom >big
status "a big one" 0 "$C" save -q --name big S big
mkfifo pipe
"$C" cat S@62 >pipe 2>reader &
reader=$!
exec 3<pipe
head -c 1000000 <&3 >first
status "a later save" 0 "$C" save -q S m
status "the big one is dropped" 0 "$C" drop S 62
status "gc beside the reader" 0 "$C" gc --json S
ok "its bytes wait" "$(sed 's/.*waiting_bytes":\([0-9]*\).*/\1/' out | { read -r n &&
    [ "$n" -gt 19000000 ]; }; echo $?)" out
cat first - <&3 >all
exec 3<&-
wait $reader
ok "the reader ends well" $? reader
ok "and has read all" "$(cmp all big >why; echo $?)" why
status "gc after it" 0 "$C" gc S
is "the trash is empty" "$(find S/trash -mindepth 1 | wc -l)" 0
status "whole" 0 "$C" fsck -q S

# How old the newest is.
status "stat" 0 "$C" stat --json --prometheus prom S
ok "age of the newest" "$(grep -q '^moe_ckpt_recovery_point_age_seconds [0-9]' prom; echo $?)" prom
status "young enough" 0 "$C" stat --max-age 100000 S
"$C" init E && status "none is not" 1 "$C" stat --max-age 5 E
status "nothing to check is no success" 2 "$C" fsck E
tap_end
