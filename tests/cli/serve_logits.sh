#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --logits: golden logits of every family and variant, greedy tokens, the same
# bytes for any threads, cut and instruction set, and lists that are refused.
. "$T/tap.sh"
. "$T/models.sh"
golden="$B/tests/tools/golden_logits"
serve="$B/moe-serve"

# check NAME MODEL GOLDEN: logits of the golden prompts within 1e-4.
check() {
    "$golden" prompts "$3.json" >prompts && "$serve" --logits "$2" <prompts >got &&
        "$golden" compare got "$3.safetensors" 1e-4 >out 2>&1
    ok "$1: $(cat out)" $?
}

kjv=$T/data/kjv-moe
check kjv-moe "$kjv" "$kjv/golden"
families="mixtral qwen2_moe qwen3_moe olmoe deepseek_v2 deepseek_v3 deepseek_v3_fp8 gpt_oss
    gpt_oss_mxfp4 granitemoe phimoe"
for m in $families; do
    check "$m" "$(model $m)" "$T/data/models/$m/golden"
done
for d in "$T"/data/variants/*/; do
    m=$(basename "$d")
    "$B/tests/tools/golden_model" "$d" "$m"
    check "$m" "$m" "$d/golden"
done

# Greedy tokens, told from the logits after each.
for m in $families; do
    "$golden" steps "$T/data/models/$m/golden.json" | "$serve" --logits "$(model $m)" >got
    "$golden" greedy got "$T/data/models/$m/golden.json" >out 2>&1
    ok "$m: greedy tokens: $(cat out)" $?
done

# One result.
"$golden" prompts "$kjv/golden.json" >prompts
"$serve" --logits -j1 "$kjv" <prompts >one
for how in "-j2" "-j3 -b 1" "-b 7" "-c 300"; do
    "$serve" --logits $how "$kjv" <prompts >two
    cmp one two >out 2>&1
    ok "$how: the same bytes" $? out
done
for m in deepseek_v3 gpt_oss phimoe; do
    "$golden" prompts "$T/data/models/$m/golden.json" >prompts
    "$serve" --logits -j1 "$(model $m)" <prompts >one
    for how in "-j2" "-j3 -b 1" "-b 7"; do
        "$serve" --logits $how "$(model $m)" <prompts | cmp - one >out 2>&1
        ok "$m, $how: the same bytes" $? out
    done
done
for m in mixtral_window "$(model deepseek_v2)" "$(model gpt_oss)" "$(model phimoe)"; do
    echo '5 17 99 3 42 8' >short
    "$serve" --logits "$m" <short >one
    for cpu in ref avx2 avx512; do
        MOE_CPU=$cpu "$serve" --logits "$m" <short | cmp - one >out 2>&1
        ok "${m##*/}, MOE_CPU=$cpu: the same bytes" $? out
    done
done

# A gate with noise: by its seed, and the same for any cut.
"$golden" prompts "$kjv/golden.json" >prompts
"$serve" --logits "$kjv" <prompts >plain
"$serve" --logits --gate-temp 1.5 --gate-seed 3 "$kjv" <prompts >one
"$serve" --logits --gate-temp 1.5 --gate-seed 3 -j3 -b 5 "$kjv" <prompts | cmp - one >out 2>&1
ok "noise: the same bytes in another cut" $? out
"$serve" --logits --gate-temp 1.5 --gate-seed 4 "$kjv" <prompts >two
! cmp -s one two && ! cmp -s one plain
ok "noise: another with another seed" $?

# refuse WHAT WORDS INPUT OPTION...: status 2, one line, nothing on stdout.
refuse() {
    what=$1 words=$2 input=$3
    shift 3
    printf "$input" | "$serve" --logits "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$words" err
    ok "refused: $what" $? err
}
refuse "an id past the vocabulary" "line 2: token 2048" '1 2\n3 2048\n' "$kjv"
refuse "an id past 32 bits" "line 1" '99999999999\n' "$kjv"
refuse "a word" "line 1: not a list" '1 two 3\n' "$kjv"
refuse "a negative number" "line 1: not a list" '1 -2\n' "$kjv"
refuse "an empty line" "line 2: no token ids" '1\n\n2\n' "$kjv"
refuse "nothing" "no token ids" '' "$kjv"
refuse "more than the context" "line 1: 4 tokens, the context is 3" '1 2 3 4\n' -c 3 "$kjv"
refuse "a context past the model's" "1024 positions" '1\n' -c 2000 "$kjv"
refuse "no threads at all" "threads" '1\n' -j -1 "$kjv"
refuse "no model" "which model" '1\n'
refuse "two models" "one model" '1\n' "$kjv" "$kjv"
refuse "no such model" "nowhere" '1\n' nowhere
refuse "a gate of no temperature" "--gate-temp" '1\n' --gate-temp -1 "$kjv"

# config KEY VALUE MODEL [WORDS]: the model with this key set is refused, naming it.
config() {
    rm -rf set && cp -r "$3" set && chmod -R u+w set
    awk -v k="\"$1\":" -v v="$2" 'NR == 1 { print; print k, v ","; next }
        index($0, k) { gone = /\[/ && !/\]/; next } gone { gone = !/\]/; next } { print }' \
        "$3/config.json" >set/config.json
    refuse "$1 = $2" "${4:-$1}" '1\n' set
}
deep=$(model deepseek_v3) oss=$(model gpt_oss) granite=$(model granitemoe) phi=$(model phimoe)
config topk_method '"greedy"' "$deep"
config scoring_func '"softmax"' "$deep"
config moe_layer_freq 2 "$deep"
config n_group 5 "$deep"
config topk_group 9 "$deep"
config kv_lora_rank 0 "$deep"
config kv_lora_rank 64 "$deep" kv_a_proj_with_mqa
config qk_rope_head_dim 31 "$deep"
config v_head_dim null "$deep"
config first_k_dense_replace -1 "$deep"
config routed_scaling_factor '"x"' "$deep"
config hidden_act '"gelu"' "$deep"
config layer_types '["full_attention"]' "$oss"
config layer_types '["full_attention", "linear_attention", "full_attention"]' "$oss"
config swiglu_limit -7 "$oss"
config sliding_window null "$oss"
config position_embedding_type '"nope"' "$granite"
config logits_scaling 0 "$granite"
config num_experts_per_tok 3 "$phi"
config model_type '"mamba"' "$phi"

status "a stream of weights" 2 "$serve" --logits - <"$kjv/model.safetensors"
grep -q 'stream' err
ok "says so" $? err
printf '7\n' | "$serve" --logits "$kjv" >/dev/full 2>err
[ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ]
ok "a full disk" $? err
tap_end
