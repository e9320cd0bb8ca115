#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plans beside each other: the figures of plan itself, experts moved, what is refused.
. "$T/tap.sh"
. "$T/shard_suite.sh"
S=$B/moe-shard

for d in arxiv github; do
    cp "$L/olmoe_$d.tsv" $d
    "$S" plan -q -g 8 -s 80 -o $d.plan $d | sed -n 's/.*max\/mean \([0-9.]*\), worst layer \([0-9.]*\),.*/\1 \2/p'
done >own
"$S" compare -l arxiv -l github arxiv.plan github.plan >table
is 'heading' "$(head -1 table)" "$(printf 'plan\tarxiv\tgithub\tworst layer\tmoved')"
is 'each plan under its own load' "$(awk -F'\t' 'NR == 2 { print $2 } NR == 3 { print $3 }' table)" \
    "$(cut -d' ' -f1 own)"
awk -F'\t' 'NR == 2 { exit !($3 > 1.1 && $5 == 0) } NR == 3 { exit !($2 > 1.1 && $4 > $2 && $5 > 0) }' table
ok 'and under the other' $? table
"$S" plan -q --from arxiv.plan --moves 2 -o two.plan github >/dev/null
"$S" compare -l github arxiv.plan two.plan | awk -F'\t' 'END { exit !($4 > 0 && $4 <= 6) }'
ok '2 moves in each of 3 layers' $?
"$S" compare -l github - arxiv.plan <github.plan | cut -f2 | sed 1d | sort >out
"$S" compare -l github arxiv.plan github.plan | cut -f2 | sed 1d | sort | cmp -s - out
ok 'a plan on standard input' $?
"$S" compare --json -l arxiv -l github arxiv.plan github.plan >json
[ "$(wc -l <json)" -eq 4 ] && grep -q '"load":"github".*"moved":[1-9]' json
ok 'JSON Lines' $? json

# By hand: loads 3 1 1 1 on two devices; the second plan has 3 and 1 on one, and moved two experts.
printf '[[3, 1, 1, 1]]' >counts
plan() { printf '{"moe_plan": 1, "experts": 4, "devices": 2, "physical_to_logical_map": [[%s]]}' "$1"; }
plan '0, 1, 2, 3' >a; plan '0, 2, 1, 3' >b; plan '3, 2, 1, 0' >c
"$S" compare -l counts a b c | cut -f2,4 >out
printf 'counts\tmoved\n1.33333\t0\n1.33333\t2\n1.33333\t4\n' | cmp -s - out
ok 'by hand' $? out

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" compare "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
printf '[[1, 1]]' >narrow
printf '[[1, 1, 1, 1], [1, 1, 1, 1]]' >deep
refuse 'no load' '--load' a
refuse 'no plan' '--load' -l counts
refuse 'other experts' narrow -l narrow a
refuse 'a layer without a plan' 'layer 1' -l deep a
refuse 'a plan that is none' 'counts' -l counts counts
refuse 'standard input late' 'first plan' -l counts a -
tap_end
