#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GGUF files that llama.cpp's converter would make, tensor by tensor the digests it gives: they
# run, and have the logits of the models that they were made of.
. "$T/tap.sh"
. "$T/models.sh"
serve=$B/moe-serve golden=$B/tests/tools/golden_logits

for s in mixtral-bf16 qwen3_moe-f16 granitemoe-bf16 deepseek_v2-bf16 deepseek_v3-bf16 \
    gpt_oss-bf16 gpt_oss_mxfp4-bf16; do
    m=${s%-*}
    "$B/tests/tools/gguf_model" "$T/data/quant/gguf_file/$s.json" "$(model $m)" m.gguf 2>err
    ok "$s: the digests of llama.cpp" $? err
    "$golden" prompts "$T/data/models/$m/golden.json" >prompts
    "$serve" --logits m.gguf <prompts >f32 2>err &&
        "$golden" compare f32 "$T/data/models/$m/golden.safetensors" 1e-4 >out 2>&1
    ok "$s: $(cat out)" $? err
done

# Q8_0 is packed; its values are those of the same matrices decoded.
"$B/tests/tools/gguf_model" "$T/data/quant/gguf_file/qwen3_moe-q8_0.json" "$(model qwen3_moe)" \
    q.gguf 2>err
ok "Q8_0: the digests of llama.cpp" $? err
"$golden" prompts "$T/data/models/qwen3_moe/golden.json" >prompts
"$serve" --logits q.gguf <prompts >want &&
    "$golden" compare want "$T/data/models/qwen3_moe/golden.safetensors" 0.2 >out 2>&1
ok "Q8_0: $(cat out)" $?
for cpu in ref avx2 avx512; do
    MOE_CPU=$cpu "$serve" --logits -j3 -b7 q.gguf <prompts | cmp - want >out 2>&1
    ok "Q8_0, $cpu: the same bytes in another cut" $? out
done

# The tokenizer and the template in the metadata: those of the model the file was cut from.
cut=$T/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf
head -c 3000 "$T/data/kjv-moe/heldout.txt" >text
printf '<|im_start|>user 123 d\303\251j\303\240\t  vu<|im_end|>\n' >>text
"$serve" --tokenize "$(model qwen3_moe)" <text >want
"$serve" --tokenize "$cut" <text | cmp - want >out 2>&1
ok "the same ids from metadata" $? out
"$serve" --detokenize "$cut" <want | cmp - text >out 2>&1
ok "and the same text" $? out
status "a text from a GGUF file" 0 sh -c "printf 'In the' | '$serve' --once -N 4 '$cut'"
status "with its chat template" 0 sh -c "printf 'In the' | '$serve' --once --chat -N 4 '$cut'"
status "no tokenizer in a file" 2 sh -c "printf 'In' | '$serve' --tokenize q.gguf"
grep -q 'tokenizer.ggml' err
ok "it is named" $? err

# refused WHAT WORD FILE: status 2 and one line that has the word.
refused() {
    printf '1 2\n' | "$serve" --logits "$3" >out 2>err
    is "$1" "$?" 2
    grep -q -- "$2" err && [ "$(wc -l <err)" -eq 1 ]
    ok "$1: told" $? err
}
sed 's/qwen3moe/qwen9moe/g' q.gguf >bad.gguf
refused "another architecture" qwen9moe bad.gguf
sed 's/blk\.1\.ffn_up_exps/blk.1.ffn_xx_exps/' q.gguf >bad.gguf
refused "a tensor that is missing" blk.1.ffn_up_exps bad.gguf
head -c 500000 q.gguf >bad.gguf
refused "a cut file" bad.gguf bad.gguf
tap_end
