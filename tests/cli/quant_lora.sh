#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --merge-lora: the product is added before quantising, on attention and
# on experts; adapters that cannot be merged are refused by name.
. "$T/tap.sh"
twin=$B/tests/tools/twin st=$B/tests/tools/st
k=$T/data/kjv-moe
q() { "$B/moe-quant" -q --force "$@"; }
config() { # config JSON-MEMBERS
    printf '{"peft_type":"LORA","r":4,"lora_alpha":8,"bias":"none"%s}\n' "$1" >ad/adapter_config.json
}
adapter() { # adapter MODULE TIMES MEMBERS
    rm -rf ad merged
    "$twin" lora "$k" ad merged "$1" 4 "$2" && mv ad/model.safetensors ad/adapter_model.safetensors
    rm -f ad/config.json
    config "$3"
}
bad() { # bad WHAT WORDS
    status "$1" 2 q --merge-lora ad "$k" x
    grep -q -- "$2" err
    ok "$1: told" $? err
}
e=model.layers.1.mlp.experts.3.up_proj a=model.layers.2.self_attn.q_proj

for m in $e $a; do
    adapter "$m" 2 ''
    status "--dequant keeps all, $m" 0 q --dequant --merge-lora ad "$k" x
    status "but what is added" 0 "$B/moe-quant" --diff --gate sqnr=75 merged x
    is "and nothing else" "$("$B/moe-quant" --diff "$k" x | grep -c '"sqnr_db":[0-9]')" 2
    q --merge-lora ad "$k" y && q merged z
    status "quantised as what is merged is" 0 "$B/moe-quant" --diff --gate sqnr=20 y z
done
adapter $e 4 ',"use_rslora":true'
q --dequant --merge-lora ad "$k" x
status "alpha over the root of the rank" 0 "$B/moe-quant" --diff --gate sqnr=75 merged x
for f in fp8-block nvfp4; do
    q -f $f --merge-lora ad "$k" y && q -f $f merged z
    status "$f of it" 0 "$B/moe-quant" --diff --gate sqnr=25 z y
done
status "--scan with it" 0 "$B/moe-quant" --scan --merge-lora ad "$k"
grep "\"$e\"" out >with
"$B/moe-quant" --scan merged | grep "\"$e\"" >want
cat with want | sed 's/.*"absmax":\([0-9.]*\).*/\1/' | paste -sd' ' |
    awk '{ d = $1 - $2; exit !(d * d < 4e-6) }'
ok "tells what the sum holds" $?
for j in 1 3; do q -j$j --merge-lora ad "$k" j$j; done
diff -r j1 j3 >changes
ok "the same with -j3" $? changes

config ',"use_dora":true'
bad 'DoRA' 'adapter_config.json: use_dora: is not merged'
config ',"fan_in_fan_out":true'
bad 'turned weights' 'fan_in_fan_out: is not merged'
config ',"modules_to_save":["lm_head"]'
bad 'whole modules' 'modules_to_save: is not merged'
config ',"alpha_pattern":{"q_proj":4}'
bad 'an alpha of its own' 'alpha_pattern: is not merged'
echo '{"peft_type":"IA3"}' >ad/adapter_config.json
bad 'another kind' 'peft_type IA3: only LORA'
echo '{' >ad/adapter_config.json
bad 'no JSON' 'not a JSON object'
config ''
cp ad/adapter_model.safetensors whole.safetensors
w() { "$st" rename whole.safetensors ad/adapter_model.safetensors "$@"; }
w base_model.model.$e.lora_A.weight ''
bad 'half a pair' 'lora_B.weight: its other half is missing'
w base_model.model.$e.lora_A.weight base_model.model.$e.lora_embedding_A
bad 'an embedding' 'neither lora_A nor lora_B'
w base_model.model.$e.lora_A.weight base_model.model.no.lora_A.weight \
    base_model.model.$e.lora_B.weight base_model.model.no.lora_B.weight
bad 'a module that is not there' 'no: the model has no such matrix'
d=model.layers.1.mlp.experts.3.down_proj
w base_model.model.$e.lora_A.weight base_model.model.$d.lora_A.weight \
    base_model.model.$e.lora_B.weight base_model.model.$d.lora_B.weight
bad 'another shape' 'does not go with a matrix of'
rm ad/adapter_model.safetensors
bad 'no weights' 'adapter_model.safetensors'
tap_end
