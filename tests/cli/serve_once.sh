#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --once: the reference's continuation, sampling by seed, the end of a text, the
# chat template, prompts that are refused.
. "$T/tap.sh"
serve=$B/moe-serve
kjv=$T/data/kjv-moe
genesis='In the beginning God created'

is "greedy, as the reference" "$(printf '%s' "$genesis" | "$serve" --once -N 32 "$kjv")" \
    ", and the glory of his throne, and the glory of his kingdom.
And he was in the midst of the throne, and in the throne of his"
is "f32 says the same here" "$(printf '%s' "$genesis" | "$serve" --once -N 32 --arith f32 "$kjv")" \
    "$(printf '%s' "$genesis" | "$serve" --once -N 32 --arith fast "$kjv")"

draw() {
    printf '%s' "$genesis" | "$serve" --once -N 40 --temp 1.0 --top-k 60 --top-p 0.95 --min-p 0.01 "$@" "$kjv"
}
draw --seed 7 >one
is "one seed, one text" "$(draw --seed 7 -j1)" "$(cat one)"
is "in any cut of the prompt" "$(draw --seed 7 -b 1)" "$(cat one)"
draw --seed 8 >two
! cmp -s one two
ok "another seed, another text" $?
is "temperature 0 is top-k 1" "$(printf '%s' "$genesis" | "$serve" --once -N 20 --temp 2 --top-k 1 --seed 5 "$kjv")" \
    "$(printf '%s' "$genesis" | "$serve" --once -N 20 "$kjv")"

# The end of a text: any token may be named.
cp -r "$kjv" stop
is "the eleventh token" "$(printf '%s' "$genesis" | "$serve" --once -N 11 stop | "$serve" --tokenize stop | wc -w)" 11
sed 's/"eos_token_id": *[0-9]*/"eos_token_id": [13, 2045]/' "$kjv/generation_config.json" >stop/generation_config.json
is "generation_config.json ends it" "$(printf '%s' "$genesis" | "$serve" --once stop)" \
    ", and the glory of his throne, and the glory of his kingdom"
rm stop/generation_config.json
sed 's/"eos_token_id": *[0-9]*/"eos_token_id": 11/' "$kjv/config.json" >stop/config.json
printf '%s' "$genesis" >genesis
status "config.json, without it" 0 "$serve" --once stop <genesis
is "ends it at once" "$(wc -c <out)" 0
is "the end of the context" "$(printf '%s' "$genesis" | "$serve" --once -c 12 "$kjv")" ", and the glory"

status "a closed standard input" 2 sh -c '"$1" --once "$2" <&-' sh "$serve" "$kjv"
is "is none" "$(cat err)" "moe-serve: stdin: Bad file descriptor"

# --chat.
printf 'Who is he?' | "$serve" --once --chat -N 12 "$kjv" >got 2>err
ok "--chat answers" $? err
printf '{{ messages[0].role }}: {{ messages[0].content }}|{{ add_generation_prompt }}' >stop/chat_template.jinja
cp "$kjv/config.json" stop
printf 'abc' | "$serve" --once --chat -N 8 stop >one
printf 'user: abc|True' | "$serve" --once -N 8 stop >two
cmp one two >out 2>&1
ok "--chat is the prompt in the template" $? out
printf '{{ messages[0].content }}' >stop/chat_template.jinja
four='<|im_end|><|im_end|><|im_end|><|im_end|>'
printf '%s' "$four" | "$serve" --once -c 8 -N 1 stop >out 2>err
ok "special tokens count in a plain prompt: four of them fit in a context of 8" $? err
printf '%s' "$four" >four
status "in a user's words they are text, and longer" 2 "$serve" --once --chat -c 8 -N 1 stop <four
printf '{{ raise_exception("only two") }}' >stop/chat_template.jinja
status "a template that refuses" 2 "$serve" --once --chat stop <"$T/tap.sh"
grep -q 'only two' err
ok "in its own words" $? err
printf '{%% if %%}' >stop/chat_template.jinja
status "a template that is none" 2 "$serve" --once --chat stop <"$T/tap.sh"
rm stop/chat_template.jinja
sed 's/"chat_template": *"\([^"\\]\|\\.\)*",*//' "$kjv/tokenizer_config.json" >stop/tokenizer_config.json
status "no template" 2 "$serve" --once --chat stop <"$T/tap.sh"

# refuse WHAT WORDS INPUT OPTION...: status 2, one line, nothing on stdout.
refuse() {
    what=$1 words=$2 input=$3
    shift 3
    printf "$input" | "$serve" --once "$@" "$kjv" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$words" err
    ok "refused: $what" $? err
}
refuse "no prompt" "the prompt is empty" ''
refuse "no UTF-8" "stdin" 'a\377'
refuse "longer than the context" "a prompt of 8 tokens leaves no room in a context of 8" "$genesis" -c 8
refuse "temperature below 0" "--temp" x --temp -1
refuse "temperature NaN" "--temp" x --temp nan
refuse "top-p 0" "--top-p" x --top-p 0
refuse "min-p above 1" "--min-p" x --min-p 1.5
refuse "no tokens" "--tokens" x -N 0
refuse "another arithmetic" "f16" x --arith f16
refuse "two modes" "ppl" x --ppl
printf x | "$serve" --once "$kjv" >/dev/full 2>err
[ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ]
ok "a full disk" $? err
status "no mode" 2 "$serve" "$kjv"
tap_end
