#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant writes the bytes that compressed-tensors writes (with codes of F32
# arithmetic), and a configuration with the same members.
. "$T/tap.sh"
. "$T/models.sh"
st=$B/tests/tools/st

# Whole models: every tensor, and config.json.
for m in mixtral qwen3_moe; do
    status "$m" 0 "$B/moe-quant" -q "$(model $m)" $m
    "$st" golden "$T/data/quant/e2e/$m.json" >want
    "$st" sums $m >got
    diff want got >changes
    ok "$m: every tensor as the library writes it" $? changes
    "$st" config "$T/data/quant/e2e/$m.json" >want
    "$st" config $m/config.json >got
    diff want got >changes
    ok "$m: the configuration" $? changes
    for f in tokenizer.json tokenizer_config.json special_tokens_map.json chat_template.jinja; do
        cmp -s "$T/data/models/$m/$f" $m/$f || { echo "$f"; false; }
    done
    ok "$m: tokenizer and template are copied" $?
done

# Single matrices: golden file, format, group, and the matrices in it.
e=model.layers.0.mlp.experts
matrices() { # matrices GOLDEN FORMAT GROUP [CAST] -- a b c: the names used, or empty
    cp "$T/data/quant/src/weights.safetensors" src.safetensors
    if [ "$4" = F16 ] || [ "$4" = F32 ]; then
        "$st" cast src.safetensors cast.safetensors "$4" && mv cast.safetensors src.safetensors
    fi
    "$st" rename src.safetensors x.safetensors a "${5:+$e.0.gate_proj.weight}" \
        b "${6:+$e.0.up_proj.weight}" c "${7:+$e.0.down_proj.weight}"
    "$B/moe-quant" -q --force -f "$2" -g "$3" x.safetensors y.safetensors || return
    "$st" sums y.safetensors | sed "s/$e.0.gate_proj/a/; s/$e.0.up_proj/b/; s/$e.0.down_proj/c/" |
        sort >got
    "$st" sums "$T/data/quant/ct/$1.safetensors" | grep '\.weight_[pslh]' >want
    diff want got >changes && [ -s want ]
}
check() {
    matrices "$@"
    ok "$1 ${4#-}" $? changes
}
check int4_sym_g128 int4 128 - a '' c
check int4_sym_g64 int4 64 - '' b ''
check int4_sym_g32 int4 32 - '' b c
check int8_sym_g128_pack int8 128 - a '' c
check int4_sym_g128_f16 int4 128 F16 a '' ''
check int4_sym_g128 int4 128 F32 a '' c
check int8_sym_g128_pack int8 128 F32 a '' c
tap_end
