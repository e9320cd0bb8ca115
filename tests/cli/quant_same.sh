#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One result of moe-quant: any number of threads, any processor tier, any form
# of input and output, stacked or single experts.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st
kjv=$T/data/kjv-moe

"$B/moe-quant" -q -j1 "$kjv" one
for j in 2 3 64; do
    "$B/moe-quant" -q -j$j "$kjv" many
    diff -r one many >changes
    ok "-j$j writes the same files" $? changes
    rm -rf many
done
for cpu in ref avx2 avx512; do
    for f in int4 int8; do
        MOE_CPU=$cpu "$B/moe-quant" -q --force -f $f "$kjv" $f
        "$st" sums $f | sha256sum >$f.$cpu
        cmp -s $f.ref $f.$cpu
        ok "$f: MOE_CPU=$cpu writes the same tensors" $?
    done
done

"$st" sums one >want
"$B/moe-quant" -q "$kjv" one.safetensors
"$st" sums one.safetensors >got
cmp -s want got
ok "one file holds the same tensors" $?
"$B/moe-quant" -q "$kjv" - >stream.safetensors
cmp -s one.safetensors stream.safetensors
ok "a stream is that file" $?
"$B/moe-quant" -q - - <"$kjv/model.safetensors" >bare.safetensors
"$st" sums bare.safetensors >got
cmp -s want got
ok "from a stream as well" $?
"$B/moe-quant" -q - config.safetensors <one.safetensors 2>err
is "a stream carries its configuration" $? 2
grep -q 'moe.config: quantization_config: a stream that is quantised already' err
ok "and is not quantised again" $? err
status "a stream without configuration makes no directory" 2 "$B/moe-quant" -q - dir \
    <"$kjv/model.safetensors"

"$st" fuse "$(model qwen3_moe)" fused
"$B/moe-quant" -q fused from-stack
"$st" sums from-stack >got
"$st" golden "$T/data/quant/e2e/qwen3_moe.json" >want
diff want got >changes
ok "stacks of experts give what single experts give" $? changes
"$B/moe-quant" -q -j3 "$(model mixtral)" m.safetensors
"$st" sums m.safetensors >got
"$st" golden "$T/data/quant/e2e/mixtral.json" >want
cmp -s want got
ok "three shards in, one file out" $?
tap_end
