#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --ppl: the reference's perplexity of the held-out text within 0.1 %, the same
# bytes for any threads and cut, texts that are refused.
. "$T/tap.sh"
serve=$B/moe-serve
kjv=$T/data/kjv-moe

field() {
    sed -n "s/.*\"$1\":\([0-9.e+-]*\).*/\1/p" "$2"
}
# check CONTEXT SCORED NLL PPL, as in reference.json.
check() {
    "$serve" --ppl -c "$1" "$kjv" <"$kjv/heldout.txt" >got
    is "context $1: tokens" "$(field tokens got)" "$2"
    is "context $1: context" "$(field context got)" "$1"
    awk -v n="$(field nll got)" -v p="$(field ppl got)" -v wn="$3" -v wp="$4" 'BEGIN {
        dn = n / wn - 1; dp = p / wp - 1
        exit !(dn < 0.001 && dn > -0.001 && dp < 0.001 && dp > -0.001) }'
    ok "context $1: nll and perplexity" $? got
}
reference() {
    tr -d ' \n' <"$kjv/reference.json" | sed 's/.*"perplexity":\[//; s/\].*//; s/},{/\n/g' |
        sed 's/[{}]//g; s/"[a-z]*"://g; s/,/ /g'
    echo
}
reference >ref
is "three contexts" "$(grep -c . ref)" 3
# The whole text takes seconds: one context here, the others in tests/long.
grep '^256 ' ref >row
read -r context scored nll ppl <row
case $B in
*/release) check "$context" "$scored" "$nll" "$ppl" ;;
*) skip "the whole text, in this slow build" ;;
esac

head -c 1000 "$kjv/heldout.txt" >text
"$serve" --ppl -c 100 -j1 "$kjv" <text >one
for how in "-j2" "-b 33" "-b 1000"; do
    is "$how: the same" "$("$serve" --ppl -c 100 $how "$kjv" <text)" "$(cat one)"
done
is "the arithmetic is named" "$("$serve" --ppl --arith fast "$kjv" <text | sed 's/.*"arith"://')" '"fast"}'
is "the model's context" "$("$serve" --ppl "$kjv" <text | sed 's/.*"context":\([0-9]*\).*/\1/')" 1024

printf ', and' | "$serve" --ppl "$kjv" >one
is "two tokens, one scored" "$(field tokens one)" 1
refuse() {
    printf "$2" | "$serve" --ppl "$kjv" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q stdin err
    ok "refused: $1" $? err
}
refuse "no text" ''
refuse "one token" ','
refuse "no UTF-8" 'the \377'
tap_end
