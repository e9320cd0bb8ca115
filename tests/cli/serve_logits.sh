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
for m in mixtral qwen3_moe; do
    check "$m" "$(model $m)" "$T/data/models/$m/golden"
done
for d in "$T"/data/variants/*/; do
    m=$(basename "$d")
    "$B/tests/tools/golden_model" "$d" "$m"
    check "$m" "$m" "$d/golden"
done

# Greedy tokens, told from the logits after each.
for m in mixtral qwen3_moe; do
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
"$golden" prompts "$T/data/variants/mixtral_window/golden.json" | head -1 >short
"$serve" --logits mixtral_window <short >one
for cpu in ref avx2 avx512; do
    MOE_CPU=$cpu "$serve" --logits mixtral_window <short >two
    cmp one two >out 2>&1
    ok "MOE_CPU=$cpu: the same bytes" $? out
done

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

status "a stream of weights" 2 "$serve" --logits - <"$kjv/model.safetensors"
grep -q 'stream' err
ok "says so" $? err
printf '7\n' | "$serve" --logits "$kjv" >/dev/full 2>err
[ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ]
ok "a full disk" $? err
tap_end
