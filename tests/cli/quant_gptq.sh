#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant that runs the model: importance matrices of our own, --kl, and what is refused
# (tests/long has what GPTQ is worth).
. "$T/tap.sh"
K=$T/data/kjv-moe Q=$B/moe-quant
q() { "$Q" -q --force -f int4 --tokens 600 "$@"; }
head -c 4000 "$K/heldout.txt" >one
tail -c 1500 "$K/heldout.txt" >two

"$Q" -q -f int4 "$K" near
# An importance matrix: as many sums as the model has matrices, read back.
q --imatrix-out i.gguf --calibrate one "$K" plain && diff -r plain near >log
ok 'writing an importance matrix changes nothing else' $? log
"$B/tests/tools/gguf_dump" i.gguf >dump
is 'sums and counts' "$(grep -c 'in_sum2' dump) $(grep -c '\.counts' dump)" '32 32'
q --imatrix i.gguf --report r "$K" weighed
is 'all experts are weighed' "$(grep -c '"importance":"used"' r)" 192

# A model and itself; perplexity as moe-serve has it.
"$Q" -q --kl two "$K" "$K" >out
awk -v k="$(sed 's/.*"kl":\([0-9.e-]*\),.*/\1/' out)" 'BEGIN { exit !(k >= 0 && k < 1e-12) }' && grep -q '"same_top":1}' out
ok 'a model and itself' $? out
"$B/moe-serve" --ppl -c 512 "$K" <two | sed 's/.*"ppl":\([0-9]*\.[0-9]\{6\}\).*/\1/' >want
is 'perplexity' "$(sed 's/.*"ppl_a":\([0-9]*\.[0-9]\{6\}\).*/\1/' out)" "$(cat want)"

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$Q" -q "$@" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err && [ ! -e new ]
    ok "refused: $what" $? err
}
refuse 'a method without a text' 'goes with' --method gptq "$K" new
refuse 'a text without a method' 'goes with' --calibrate one "$K" new
refuse 'with --resume' 'resume' --resume --method gptq --calibrate one "$K" new
refuse 'too little memory' '--memory' --memory 1000 --method gptq --calibrate one "$K" new
printf 'short' >few
refuse 'too short a text' 'tokens' --method gptq --calibrate few "$K" new
refuse 'no text' 'nowhere' --method gptq --calibrate nowhere "$K" new
refuse 'no whole numbers' 'whole numbers' -f fp8 --method gptq --calibrate one "$K" new
mkdir bare && cp "$K/config.json" "$K/model.safetensors" bare
refuse 'no tokenizer' 'tokenizer.json' --method gptq --calibrate one bare new
q --method gptq --calibrate one "$K" gptq && "$B/tests/tools/st" sums near >near.sums
"$B/tests/tools/st" sums gptq | grep -c -xFf - near.sums >alike
[ "$(cat alike)" -gt 200 ] && [ "$(cat alike)" -lt "$(wc -l <near.sums)" ]
ok 'other codes, the same scales' $? alike
tap_end
