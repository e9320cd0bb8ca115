#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What broke in public for others, and what happens here. The numbers are those of the notes on
# sharding; halves of fused matrices (10) are in tests/unit/cut.c, value by value.
. "$T/tap.sh"
. "$T/models.sh"
S=$B/moe-shard K=$T/data/kjv-moe st=$B/tests/tools/st

# 1: an expert twice on a device; more copies than devices.
printf '[[900, 1, 1, 1, 1, 1, 1, 1]]' >hot && "$S" plan -q -g 4 -s 16 -o hot.plan hot >out
slots=$(sed -n 's/.*"physical_to_logical_map":\[\[\([0-9,]*\)\].*/\1/p' hot.plan)
is '1: four copies of one expert on four devices' "$(echo "$slots" | tr , '\n' | grep -cx 0)" 4
grep -q ' 0 twice' out
ok '1: none twice on a device' $? out

# 2: balancedness is over the devices of each layer, then averaged.
printf '[[3, 1], [1, 1], [1, 3]]' >two && "$S" plan -q --json -g 2 two >out
is '2: three layers on two devices' "$(tail -1 out | sed 's/.*"balancedness":\([0-9.]\{7\}\).*/\1/')" 0.77777

# 3: counts of one rank alone.
awk 'BEGIN { for (x = 0; x < 64; x++) printf "0\t%d\t%d\n", x, (x >= 16 && x < 32) ? 1000 + x : 0 }' >one
"$S" plan -g 8 one >out 2>err
[ $? -eq 0 ] && grep -q 'one rank alone' err
ok '3: counts of one rank: a warning' $? err

# 5: an expert is all its tensors. 6: ranks keep the numbers of experts. 11: none is lost.
"$B/moe-quant" -q -f int4 -g 32 "$K" q4
for m in q4 "$(model gpt_oss_mxfp4)"; do
    rm -rf r && "$S" split -q --ep 4 "$m" r
    for k in 0 1 2 3; do
        "$st" sums "r/rank-0000$k" | cut -d' ' -f1 >"names.$k"
        sed -n 's/.*experts\.\([0-9]*\)\..*weight_packed$/\1/p' "names.$k" | sort >packed
        sed -n 's/.*experts\.\([0-9]*\)\..*weight_scale$/\1/p' "names.$k" | sort | cmp -s - packed || echo "$m $k" >>apart
    done
    "$st" sums "$m" | cut -d' ' -f1 | sort -u >want
    cat names.? | sort -u | cmp - want >log 2>&1
    ok "6, 11: all names are there, as they were: $(wc -l <want)" $? log
done
[ ! -e apart ]
ok '5: codes and scales of an expert go together' $? apart
rm -rf r && "$S" split -q --ep 4 q4 r && "$st" sums r/rank-00003 | grep -q 'experts\.15\.up_proj'
ok '6: the last rank has expert 15, not expert 3' $?

# 7: a cut within a group: refined, or refused with what is possible.
rm -rf r back && "$S" split -q --tp 8 q4 r && "$S" merge -q r back && diff -r back q4 >log
ok '7: INT4 in groups of 32 on 8 ranks, and back' $? log
m=$(model gpt_oss_mxfp4)
for n in 2 4 8 16 32 64; do
    "$S" split -n --tp $n "$m" >out 2>err || break
done
grep -q 'legal' err
ok "7: MXFP4 within a block: refused, with what is possible" $? err

# 9: fewer heads of keys than ranks: whole heads are copied, never cut.
dim=$(sed -n 's/.*"head_dim": *\([0-9]*\).*/\1/p' "$K/config.json")
rm -rf r && "$S" split -q --tp 8 "$K" r && "$st" sums r/rank-00003 >sums
is '9: a whole head on each rank' "$(awk '/layers.0.self_attn.k_proj.weight/ { print $3 }' sums | tr -d '[]' | cut -d, -f1)" "$dim"

# 12: an index and headers that do not agree.
"$S" split -q --max-size 4MB "$K" four
cp -r four gone && rm gone/model-00002-of-*.safetensors
cp -r four named && sed -i 's/"weight_map": *{/&"no.such.tensor":"model-00001-of-00004.safetensors",/' named/*.index.json
cp -r four less && sed -i 's/"model.norm.weight": *"[^"]*",\{0,1\}//; s/,}/}/' less/*.index.json
for d in gone named less; do
    "$S" split -n --ep 2 $d >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ]
    ok "12: $d: refused" $? err
done

# 14: a single file that says it is one of three; parts that do not agree.
cp "$T/data/shard/parts/part-00001-of-00003.gguf" single.gguf
"$S" split -n --max-size 1M single.gguf >out 2>err
[ $? -eq 2 ] && grep -q 'part of 3' err
ok '14: a file that says it is a part' $? err
mkdir mixed && cp "$T"/data/shard/parts/part-0000[12]-of-00003.gguf mixed
"$S" split -q --max-size 30k "$T/data/shard/parts/whole.gguf" twoparts
cp twoparts/whole-00002-of-*.gguf mixed/part-00003-of-00003.gguf
status '14: parts that do not agree' 2 "$S" merge mixed/part-00001-of-00003.gguf joined.gguf
[ ! -e joined.gguf ]
ok '14: nothing appears' $?

# 16: a machine that hides its buses: a description is taken, and each figure has its source.
D=$T/data/shard/topo
"$S" topo "$D/nccl_vm_flat.xml" >out && [ "$(grep -c '^link' out)" -gt 0 ] &&
    awk -F'\t' '/^link/ && $5 != "-" && $6 == "-" { bad = 1 } END { exit bad }' out
ok '16: no figure without its source' $? out
"$S" topo "$D/smi_8gpu_vm.txt" >vm && "$S" plan -q --topo vm --bandwidth NV=25G,PIX=20G,PXB=20G,PHB=12G,NODE=10G,SYS=8G hot >out 2>err
ok '16: and plans are made with what is given' $? err

# 17: too few tokens make experts look dead.
printf '[[3, 0, 2, 0]]' >few && "$S" plan -g 2 few >out 2>err && grep -q '1.25 tokens an expert' err
ok '17: a warning, with the tokens an expert' $? err
"$S" plan -q --json -g 2 --prior 10 few | tail -1 | grep -q '"max_over_mean":1[.,]'
ok '17: a prior' $?
printf '[[13, 10, 12, 10]]' >added.json && "$S" plan -q -g 2 -o added.plan added.json >out
"$S" plan -q -g 2 --prior 10 -o prior.plan few >out && [ "$(sed 's/"made_for":[^]]*\]//' added.plan)" = "$(sed 's/"made_for":[^]]*\]//' prior.plan)" ]
ok '17: which is the plan of counts with so many more' $?
tap_end
