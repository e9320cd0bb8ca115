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

# Single matrices: golden file, options, and the matrices in it.
e=model.layers.0.mlp.experts
one() { # one SOURCE GOLDEN "OPTIONS" NAMES: names that are not used are empty
    "$st" rename "$1" x.safetensors a "${4:+$e.0.gate_proj.weight}" \
        b "${5:+$e.0.up_proj.weight}" c "${6:+$e.0.down_proj.weight}"
    # shellcheck disable=SC2086
    "$B/moe-quant" -q --force $3 x.safetensors y.safetensors || return
    "$st" sums y.safetensors | sed "s/$e.0.gate_proj/a/; s/$e.0.up_proj/b/; s/$e.0.down_proj/c/" |
        sort >got
    "$st" sums "$T/data/quant/ct/$2.safetensors" |
        grep -E "^[${4:-z}${5:-z}${6:-z}]\.weight[_ ]" | grep -v weight_f16 >want
    diff want got >changes && [ -s want ]
}
check() { # check GOLDEN "OPTIONS" a b c
    one "$T/data/quant/src/weights.safetensors" "$@"
    ok "$1" $? changes
}
cast() { # cast TYPE GOLDEN "OPTIONS" a b c
    "$st" cast "$T/data/quant/src/weights.safetensors" cast.safetensors "$1"
    cast_type=$1
    shift
    one cast.safetensors "$@"
    ok "$1 from $cast_type" $? changes
}
check int4_sym_g128 '-f int4 -g 128' a '' c
check int4_sym_g64 '-f int4 -g 64' '' b ''
check int4_sym_g32 '-f int4 -g 32' '' b c
check int4_sym_channel '-f int4 -g channel' '' b ''
check int4_asym_g128 '-f int4 -g 128 --asym' a '' c
check int4_asym_g64 '-f int4 -g 64 --asym' '' b c
check int8_sym_g128_pack '-f int8 -g 128' a '' c
check int8_asym_channel_pack '-f int8 -g channel --asym' '' b ''
check int8_sym_channel_w8a8 '-f int8-w8a8' '' b c
check fp8_tensor '-f fp8-tensor' '' b ''
check fp8_tensor '-f fp8-tensor' '' '' c
check fp8_channel '-f fp8' '' b c
check fp8_block '-f fp8-block' a b c
check mxfp4 '-f mxfp4' a b c
check mxfp8 '-f mxfp8' '' '' c
check nvfp4 '-f nvfp4' '' '' c
check nvfp4 '-f nvfp4' '' b ''
cast F16 int4_sym_g128_f16 '-f int4 -g 128' a '' ''
cast F32 int4_sym_g128 '-f int4 -g 128' a '' c
cast F32 int8_sym_g128_pack '-f int8 -g 128' a '' c
cast F32 int4_asym_g64 '-f int4 -g 64 --asym' '' b c
cast F32 fp8_block '-f fp8-block' a b c
cast F32 mxfp4 '-f mxfp4' a b c

# Measuring goes another way to the same bytes.
for f in int4 int8 int8-w8a8 fp8 fp8-tensor fp8-block mxfp4 mxfp8 nvfp4; do
    "$B/moe-quant" -q --force -f $f x.safetensors y.safetensors
    "$B/moe-quant" -q --force -f $f --report r x.safetensors z.safetensors
    cmp -s y.safetensors z.safetensors
    ok "$f: a report changes nothing" $?
done

# DeepSeek's form: a beside itself turned round, as the reference made it.
"$st" golden_ds "$T/data/quant/src/weights.safetensors" ds.safetensors $e.0.up_proj.weight
"$B/moe-quant" -q --force -f fp8-deepseek ds.safetensors y.safetensors
"$st" sums y.safetensors | sed "s/$e.0.up_proj/d/" >got
"$st" sums "$T/data/quant/ds_fp8/fp8_block.safetensors" | grep '^d.weight[_ ]' >want
diff want got >changes && [ -s want ]
ok "ds_fp8" $? changes
tap_end
