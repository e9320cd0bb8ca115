#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plans beside EPLB's on the same counts (tests/long has all of them), the least possible where it
# is known, options, and what is refused.
. "$T/tap.sh"
. "$T/shard_suite.sh"
S=$B/moe-shard

rows '$1 ~ /x64$|olmoe|mixtral|twoblock|zero/' >out
grep -q ' 0 worse, 0 twice.*[0-9] better' out
ok "rows of EPLB: $(cat out)" $? worse.out
[ ! -s other.out ]
ok 'and the plans are those that are kept' $? other.out
exact '$1 ~ /mixtral|few|onehot/' >out
grep -q '^[1-9][0-9]* layers, 0 missed' out
ok "the least possible: $(cat out)" $?

# The same bytes for any number of threads; a plan is a plan again.
f=$(counts ln05_16x64)
"$S" plan -q -j1 -g 8 -s 72 -o one "$f" >worth && "$S" plan -q -j3 -g 8 -s 72 -o two "$f" >/dev/null
cmp -s one two
ok 'threads change nothing' $?
"$S" plan -q --from one --moves 0 -o three "$f" >again && cmp -s one three && cmp -s worth again
ok 'no moves: the same plan, worth the same' $?
"$S" plan -q -g 8 -s 72 -o - "$f" | cmp -s - one
ok 'a plan on standard output' $?

# worst: the largest max/mean of all files.
worst() { sed -n 's/.*worst layer \([0-9.]*\).*/\1/p' | sort -n | tail -1; }
at_most() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0.99 && a <= b) }'; ok "$1: $2 <= $3" $?; }
set -- "$L"/olmoe_arxiv.tsv "$L"/olmoe_book.tsv "$L"/olmoe_c4.tsv "$L"/olmoe_github.tsv "$L"/olmoe_tulu.tsv \
    "$L"/olmoe_wikipedia.tsv
at_most 'six domains, 16 spare slots' "$("$S" plan -q --robust -g 8 -s 80 "$@" | worst)" 1.10
at_most 'six domains, none' "$("$S" plan -q --robust -g 8 "$@" | worst)" 1.27
"$S" plan -q -g 8 -s 80 "$@" | worst >mean
"$S" plan -q --robust -g 8 -s 80 "$@" | worst >robust
[ "$(cat robust | tr -d .)" -lt "$(cat mean | tr -d .)" ]
ok "robust is better than planning for the mean: $(cat robust) against $(cat mean)" $?
"$S" plan -q --weights 1,0.000001 -g 8 "$1" "$2" | head -4 >one
"$S" plan -q -g 8 "$1" | sed '$d' | head -3 >two
is 'weights: all of it on the first' "$(awk '{ printf "%.3f ", $4 }' two)" "$(head -3 one | awk '{ printf "%.3f ", $4 }')"

# Pairs that stay on a device, and the load that may cost.
zstd -dq "$L/olmoe_github.pairs.tsv.zst" -o pairs
"$S" plan -q -g 8 -s 80 --pairs pairs --slack 0.1 "$L/olmoe_github.tsv" >out
at_most 'pairs: load' "$(worst <out)" 1.1001
kept=$(sed -n 's/.*pairs kept *\([0-9.]*\).*/\1/p' out | sort -n | head -1)
[ "${kept%.*}" -ge 25 ]
ok "pairs: $kept % stay, of 12.5 % by chance" $?

# A move budget: more moves, better.
counts drift0_61x256 >/dev/null && counts drift1_61x256 >/dev/null
"$S" plan -q -g 64 -s 320 -o old drift0_61x256.tsv >/dev/null
for m in 0 10 100; do "$S" plan -q --from old --moves $m drift1_61x256.tsv | sed -n 's/.*max\/mean \([0-9.]*\), w.*/\1/p'; done >out
sort -rn out | cmp -s - out && [ "$(uniq out | wc -l)" -eq 3 ]
ok "moves: $(tr '\n' ' ' <out)" $?

# Speeds: a device of half the speed gets about half.
"$S" plan -q -g 4 -s 64 --speed 1,1,1,0.5 "$f" >out
at_most 'unequal devices' "$(worst <out)" 1.15

# Bytes that may move: as many slots; memory that holds fewer; slots by hand.
"$S" plan -q --from old --move-budget 610M --expert-bytes 1M -o new drift1_61x256.tsv >/dev/null
"$S" plan -q --from old --moves 10 drift1_61x256.tsv -o ten >/dev/null && cmp -s new ten
ok '610 slots that may move: 10 a layer' $?
M=$T/data/shard/mesh
sed 's/^\(device\tgpu0\tgpu\t0\t\)[0-9]*/\1320000/' "$M/mesh.topo" >small.topo
"$S" plan -q --topo small.topo -s 88 --expert-bytes 2000 -o small.plan "$M/counts.tsv" >/dev/null
is 'a device with room for five' "$(sed 's/.*"room":\[\([0-9,]*\).*/\1/' small.plan | head -1)" 5,12,12,12,12,12,12,11
"$S" plan -q -g 4 --room 10,20,20,20 "$f" | tail -1 >out
at_most 'slots by hand' "$(worst <out)" 2
# Copies near those that want them: with copies for both boards, fewer bytes between them.
sed 's/\tNV1\t/\tNV4\t/' "$M/mesh.topo" |
    awk -F'\t' -v OFS='\t' '/^link/ && ($2 < "gpu4") != ($3 < "gpu4") { $4 = "SYS"; $5 = "5G" } { print }' >boards
beyond() { sed -n 's/^port [^ ]* *bytes *\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }
"$S" plan -q --topo boards -s 72 -o near.plan "$M/counts.tsv" | beyond >near
"$S" plan -q -g 8 -s 72 -o far.plan "$M/counts.tsv" >/dev/null
"$S" sim -p far.plan --topo boards --draw 1 --combine-bytes 0 "$M/counts.tsv" | beyond >far
"$S" sim -p near.plan --topo boards --draw 1 --combine-bytes 0 "$M/counts.tsv" | beyond >near
[ "$(cat near)" -gt 0 ] && [ $(($(cat near) * 10)) -lt $(($(cat far) * 8)) ]
ok "copies on both boards: $(cat near) bytes between them, not $(cat far)" $?

# Other forms of counts.
printf 'layer\ttoken\texperts\n0\t0\t1,2\n0\t1\t2,3\n1\t0\t0,3\n' >trace
printf '[[0, 1, 2, 1], [1, 0, 0, 1]]' >json
printf '{"logical_count": [[[0, 1, 1, 1], [1, 0, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1]]]}' >steps
printf 'layer\texpert\tcount\n0\t1\t1\n0\t2\t2\n0\t3\t1\n1\t0\t1\n1\t3\t1\n' >tsv
for k in tsv trace json steps; do "$S" plan -q -g 2 $k | sed 's/^[a-z]*:/x:/' >out.$k; cmp -s out.$k out.tsv; ok "counts as $k" $?; done

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" plan "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
printf '0\t0\tnan\n' >nan; printf '0\t0\t-1\n' >neg; printf '0\t0\t1\n0\t0\t2\n' >twice; : >none
printf '0\t0\n' >short; printf '0 0 1\n' >blanks; printf '[[1, 2], [3]]' >ragged; printf '{"x": 1}' >other
printf '[[1, "a"]]' >word; printf '0\t99999999\t1\n' >far
for k in nan neg twice none short blanks ragged other word far; do refuse $k $k -g 1 $k; done
refuse 'no file' 'nowhere' -g 1 nowhere
refuse 'no devices' 'devices' "$f"
refuse 'slots that do not divide' 'multiple' -g 7 "$f"
refuse 'fewer slots than experts' '16 slots' -g 8 -s 16 "$f"
refuse 'more slots than can be' 'slots' -g 2 -s 4096 "$f"
refuse 'groups that do not divide' 'divide' -g 8 --groups 5 --nodes 2 "$f"
refuse 'other layers' 'other layers' -g 8 "$f" "$L/olmoe_c4.tsv"
refuse 'speeds too few' '--speed' -g 8 --speed 1,2 "$f"
refuse 'a plan of another model' 'other layers' --from old "$f"
refuse 'rooms that are not whole' '--room' -g 4 --room 10,20,20.5,20 "$f"
refuse 'too little memory' 'memory holds' --topo small.topo --expert-bytes 1G "$M/counts.tsv"
refuse 'bytes to move of no size' '--expert-bytes' --from old --move-budget 1G drift1_61x256.tsv
refuse 'a topology of others' 'accelerators' -g 4 --topo small.topo "$M/counts.tsv"
printf '{"moe_plan": 1}' >half
refuse 'half a plan' 'half' --from half "$f"
sed 's/"physical_to_logical_map":\[\[[0-9]*/"physical_to_logical_map":[[999/' old >wrong
refuse 'an expert that is none' 'physical_to_logical_map' --from wrong drift0_61x256.tsv
tap_end
