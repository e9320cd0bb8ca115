#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant -n: what it says is what is written, to the byte; and groups.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st

sizes() { # sizes DIR: "BYTES NAME" of its files, sorted
    (cd "$1" && for f in *; do echo "$(stat -c %s "$f") $f"; done) | sort
}
for m in mixtral qwen3_moe deepseek_v2 phimoe qwen2_moe olmoe; do
    p=$(model $m)
    "$B/moe-quant" -n "$p" out >plan
    [ ! -e out ]
    ok "$m: -n writes nothing" $?
    "$B/moe-quant" -q "$p" out
    sed -n 's/^ *\([0-9]\{1,\}\) \(.*\..*\)$/\1 \2/p' plan | sort >want
    sizes out >got
    diff want got >changes
    ok "$m: the files and their sizes" $? changes
    is "$m: their sum" "$(awk '/ in all$/ { print $1 }' plan)" \
        "$(awk '{ s += $1 } END { print s }' got)"
    "$B/moe-quant" -n --json "$p" out2 |
        sed -n 's/^{"file":"\(.*\)","bytes":\([0-9]*\)}$/\2 \1/p' | sort >got
    cmp -s want got
    ok "$m: the same in JSON" $?
    rm -rf out
done
"$B/moe-quant" -n "$T/data/kjv-moe" x.safetensors >plan
"$B/moe-quant" -q "$T/data/kjv-moe" x.safetensors
is "one file" "$(awk '$2 == "x.safetensors" { print $1 }' plan)" "$(stat -c %s x.safetensors)"
"$B/moe-quant" -n -f int8 "$T/data/kjv-moe" x >plan
grep -q '^expert  *int8-g128  *192 ' plan
ok "the table names role, scheme and number" $? plan

# 192 columns: 128 does not divide them, 64 does, for the whole layer.
"$st" synth odd 2 4 256 192 plain
"$B/moe-quant" -n odd x >plan
grep -q '^layers 0 to 1: groups of 64' plan
ok "a layer falls to groups of 64 together" $? plan
"$B/moe-quant" -q odd x
is "all its scales" "$("$st" sums x | grep -c 'up_proj.weight_scale BF16 192,4 ')" 8
grep -q '"group_size": 64' x/config.json
ok "and its configuration" $?
status "a group that was asked for does not fall" 2 "$B/moe-quant" -q -g 128 odd y
grep -q '192 columns are no multiple of the group of 128; 64 would fit' err
ok "the words say what would fit" $? err
rm -rf odd; "$st" synth odd 1 4 256 80 plain
status "no group divides" 2 "$B/moe-quant" -q odd y
grep -q 'down_proj.weight: 80 columns are no multiple of any group' err
ok "the words name the tensor" $? err
[ ! -e y ]
ok "nothing was written" $?
tap_end
