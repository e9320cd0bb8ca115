#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models of every family cut for ranks and joined again, byte for byte; what is refused, named.
. "$T/tap.sh"
. "$T/models.sh"
S=$B/moe-shard
export LC_ALL=C

# The weights and what stands beside them, without what only the tests put there.
same() {
    diff -r -x .made-from -x 'golden*' -x weights.json -x reference.json -x heldout.txt "$1" "$2"
}

# back WHAT MODEL OPTIONS...: split, merge, compare.
back() {
    what=$1 m=$2
    shift 2
    rm -rf ranks back
    { "$S" split -q "$@" "$m" ranks && "$S" merge -q ranks back && same "$m" back; } >log 2>&1
    ok "$what: $*" $? log
}

for f in mixtral qwen2_moe qwen3_moe olmoe deepseek_v2 deepseek_v3 deepseek_v3_fp8 gpt_oss \
    gpt_oss_mxfp4 granitemoe phimoe; do
    m=$(model $f) || exit 1
    back $f "$m" --tp 2
    back $f "$m" --tp 2 --ep 2 --pp 2 --experts round-robin --layout files
done
K=$T/data/kjv-moe
back kjv "$K" --tp 4 --ep 2
"$B/moe-quant" -q -f int4 -g 32 "$K" q4
back 'INT4' q4 --tp 4 --ep 3 -j 1
cp ranks/rank-00005/model.safetensors five
back 'INT4 again' q4 --tp 4 --ep 3 -j 2
cmp -s five ranks/rank-00005/model.safetensors
ok 'the same bytes for any number of threads' $?

# Streams, from and to.
"$S" split -q --ep 4 - st <"$K/model.safetensors" 2>err
ok 'a stream is split' $? err
"$S" merge -q st - 2>err | cmp - "$K/model.safetensors"
ok 'and merged to one' $?

# Another grid, by way of none and straight.
"$S" split -q --tp 2 --ep 2 q4 a && "$S" reshard -q --pp 2 --ep 4 a b && "$S" merge -q b c && same q4 c >log
ok 'resharded and merged' $? log
"$S" split -q --pp 2 --ep 4 q4 d && diff -r b d >log
ok 'resharding is splitting' $? log
"$S" reshard -n --tp 2 --ep 2 a >out
is 'the same grid moves nothing' "$(awk '/^rank/ && $7 != 0' out | wc -l)" 0
is 'with a line a rank' "$(grep -c '^rank' out)" 4

# As a plan has them, copies too; experts apart and in stacks; and on to another grid.
counts() { awk -v l="$1" -v e="$2" 'BEGIN { for (i = 0; i < l; i++) for (x = 0; x < e; x++)
    printf "%d\t%d\t%d\n", i, x, 10 + (i * 7 + x * x * 13) % 50 }'; }
counts 4 16 >kjv.tsv && "$S" plan -q -g 4 -s 20 -o kjv.plan kjv.tsv >/dev/null
back 'a plan with copies' "$K" --plan kjv.plan --tp 2
is 'a plan: as many files as slots' "$(cat ranks/rank-0000[0246]/model.safetensors |
    grep -ao '"model.layers.2.mlp.experts.[0-9]*.up_proj.weight"' | wc -l)" 20
"$S" reshard -q --ep 3 ranks three && "$S" merge -q three again && same "$K" again >log
ok 'and resharded' $? log
m=$(model gpt_oss)
n=$(sed -n 's/.*"num_hidden_layers": *\([0-9]*\).*/\1/p' "$m/config.json")
x=$(sed -n 's/.*"num_local_experts": *\([0-9]*\).*/\1/p' "$m/config.json")
counts "$n" "$x" >gpt.tsv && "$S" plan -q -g 3 -s $((x + 3 - x % 3)) -o gpt.plan gpt.tsv >/dev/null
back 'a plan for stacks' "$m" --plan gpt.plan

# Exact sizes before.
"$S" split -n --json --tp 2 --ep 2 q4 >plan
is 'plan: exact sizes' "$(sed 's/.*"bytes": *\([0-9]*\).*/\1/' plan | tr '\n' ' ')" \
    "$(for r in 0 1 2 3; do stat -c %s a/rank-0000$r/model.safetensors; done | tr '\n' ' ')"

# The model runs after.
printf 'In the beginning' | "$B/moe-serve" --once -N 4 --temp 0 q4 >one
printf 'In the beginning' | "$B/moe-serve" --once -N 4 --temp 0 c >two
cmp -s one two
ok 'what was merged runs as before' $?

# What cannot be.
refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" split "$@" >out 2>err
    is "$what: status 2" $? 2
    { [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err; }
    ok "$what: said" $? err
    [ ! -e x ]
    ok "$what: nothing written" $?
}
refuse 'no ranks' 'nothing to cut' "$K" x
refuse 'ranks that do not divide' 'dealt to 3 ranks; legal: 1 2 4' --tp 3 "$K" x
refuse 'more ranks than heads' '8 heads or groups.*64 ranks; legal: 1 2 4 8' --tp 64 "$K" x
refuse 'more groups than experts' 'fewer than 17' --ep 17 "$K" x
counts 3 16 >short.tsv && "$S" plan -q -g 4 -o short.plan short.tsv >/dev/null
refuse 'a plan without a layer' 'layer 3 is not in it' --plan short.plan "$K" x
counts 4 8 >few.tsv && "$S" plan -q -g 4 -o few.plan few.tsv >/dev/null
refuse 'a plan of other experts' '8 experts on 4 devices' --plan few.plan "$K" x
refuse 'a plan for other ranks' 'devices, and not' --plan kjv.plan --ep 2 "$K" x
refuse 'more stages than layers' 'fewer than' --pp 99 "$K" x
refuse 'zero ranks' '--tp' --tp 0 "$K" x
refuse 'no model' 'none' --tp 2 none x
refuse 'tensor ranks of a bare file' 'config.json' --tp 2 "$K/model.safetensors" x
mkdir full && touch full/x
"$S" split --tp 2 "$K" full >out 2>err
is 'a full directory: status 2' $? 2

# What was changed since.
flip() { printf "\\$(printf %o $(($(od -An -tu1 -j "$2" -N 1 "$1") ^ 4)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>dd.err; }
broken() {  # broken WHAT STATUS PATTERN
    "$S" merge bad y >out 2>err
    is "$1: status $2" $? "$2"
    { [ "$(wc -l <err)" -eq 1 ] && grep -q "$3" err; }
    ok "$1: said" $? err
    [ ! -e y ]
    ok "$1: nothing written" $?
    rm -rf bad && cp -r a bad
}
cp -r a bad
n=$(stat -c %s a/rank-00003/model.safetensors)
flip bad/rank-00003/model.safetensors $((n - 4000))
broken 'a bit of one of two copies' 1 'copies on the ranks differ'
rm -rf bad && "$S" split -q --ep 4 q4 d2 && cp -r d2 bad
n=$(stat -c %s bad/rank-00003/model.safetensors)
flip bad/rank-00003/model.safetensors $((n - n / 3))
broken 'a bit of a part' 1 'not the tensor that was split'
flip bad/rank-00001/model.safetensors 30
broken 'a bit of a header' 2 'header is not that of rank 1'
rm bad/rank-00002/model.safetensors
broken 'a rank is missing' 2 'rank-00002'
head -c 5000 a/rank-00002/model.safetensors >bad/rank-00002/model.safetensors
broken 'a rank is cut short' 2 'not of'
cp a/rank-00000/model.safetensors bad/rank-00001/model.safetensors
broken 'a rank twice' 2 'rank 1'
sed -i 's/"tp":2/"tp":4/; s/"tp": 2/"tp": 4/' bad/moe-cut.json
broken 'another grid' 2 'rank'
sed -i 's/"moe_cut":1/"moe_cut":9/; s/"moe_cut": 1/"moe_cut": 9/' bad/moe-cut.json
broken 'another version' 2 'version 9'
head -c 100 a/moe-cut.json >bad/moe-cut.json
broken 'a record cut short' 2 'moe-cut.json'
ln -sf /etc/passwd bad/source/model.safetensors.head
broken 'a link out of the directory' 2 'head'
rm bad/moe-cut.json
broken 'no record' 2 'moe-cut.json'
tap_end
