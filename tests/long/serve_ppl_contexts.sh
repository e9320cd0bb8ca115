#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --ppl of the whole held-out text at every context of reference.json, within 0.1 %.
. "$T/tap.sh"
kjv=$T/data/kjv-moe

tr -d ' \n' <"$kjv/reference.json" | sed 's/.*"perplexity":\[//; s/\].*//; s/},{/\n/g' |
    sed 's/[{}]//g; s/"[a-z]*"://g; s/,/ /g' >ref
echo >>ref
while read -r context scored nll ppl; do
    [ -n "$context" ] || continue
    "$B/moe-serve" --ppl -c "$context" "$kjv" <"$kjv/heldout.txt" >got
    tr -d '{}"' <got | tr ',:' '  ' | awk -v n="$scored" -v wn="$nll" -v wp="$ppl" '{
        dn = $4 / wn - 1; dp = $6 / wp - 1
        exit !($2 == n && dn < 0.001 && dn > -0.001 && dp < 0.001 && dp > -0.001) }'
    ok "context $context" $? got
done <ref
is "three contexts" "$(grep -c . ref)" 3
tap_end
