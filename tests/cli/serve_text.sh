#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --tokenize and --detokenize: golden ids, text that comes back to the byte, and
# input that is refused.
. "$T/tap.sh"
serve=$B/moe-serve
kjv=$T/data/kjv-moe

tokens=$("$serve" --tokenize "$kjv" <"$kjv/heldout.txt")
is "tokens of the held-out text" "$(echo "$tokens" | wc -w)" 22687
is "its first tokens" "$(echo "$tokens" | cut -d' ' -f1-8)" "295 380 370 259 941 427 286 258"
echo "$tokens" | "$serve" --detokenize "$kjv" | cmp -s - "$kjv/heldout.txt"
ok "and back to the byte" $?
is "a prompt of the reference" "$(printf 'In the beginning God created' | "$serve" --tokenize "$kjv")" \
    "1145 258 1782 1239 386 279 555 282"
printf 'caf\303\251 \360\237\246\231\n\t\000x  y\r\n' >odd
"$serve" --tokenize "$kjv" <odd | "$serve" --detokenize "$kjv" >back
cmp odd back >out 2>&1
ok "characters of every length, NUL, blanks" $? out
printf '' >empty
status "nothing" 0 "$serve" --tokenize "$kjv" <empty
is "is an empty line" "$(wc -c <out)" 1
echo >line
status "no ids" 0 "$serve" --detokenize "$kjv" <line
is "are an empty text" "$(wc -c <out)" 0
is "lines and commas" "$(printf '1145\n258, 1782' | "$serve" --detokenize "$kjv")" "In the begin"

# refuse WHAT WORDS MODE INPUT: status 2, one line, nothing on stdout.
refuse() {
    printf "$4" | "$serve" "$3" "$kjv" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$2" err
    ok "refused: $1" $? err
}
refuse "text that is no UTF-8" stdin --tokenize 'a\377b'
refuse "a cut character" stdin --tokenize 'a\303'
refuse "a word among ids" "offset 2" --detokenize '1 x\n'
refuse "an id past the end" stdin --detokenize '1 999999\n'
refuse "an id past 32 bits" "not a token id" --detokenize '99999999999999999999\n'
mkdir bare
cp "$kjv/config.json" "$kjv/model.safetensors" bare
echo a | "$serve" --tokenize bare >out 2>err
[ $? -eq 2 ] && grep -q 'no tokenizer.json' err
ok "a model without a tokenizer" $? err
tap_end
