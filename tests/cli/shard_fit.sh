#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fits beside numpy's and scipy's, times of collectives and nodes of tokens beside the formulas
# worked out there, and what is refused.
. "$T/tap.sh"
S=$B/moe-shard C=$T/data/shard/cost

# Two columns of numbers that are the same but for so much; "-" and null: none.
same() { awk -v tol="$1" '
    { if ($1 == $2) next; d = $1 - $2; if (d < 0) d = -d; m = $2 < 0 ? -$2 : $2
      if ($1 !~ /^[-0-9.e+]+$/ || d > tol * m) { bad = 1; print "# got " $1 ", want " $2 } }
    END { exit bad || NR == 0 }'; }
# numbers KEY...: the values of these keys, a line each, of the JSON object on standard input.
numbers() { sed 's/^{//; s/}$//; s/"//g' | tr , '\n' | awk -F: -v keys="$*" '{ v[$1] = $2 }
    END { n = split(keys, k, " "); for (i = 1; i <= n; i++) print v[k[i]] }'; }

while IFS="$(printf '\t')" read -r name model want; do
    keys='alpha slope se_alpha se_slope'
    [ "$model" != contention ] || keys='base k se_base se_k linear_base linear_k'
    # shellcheck disable=SC2086 # --relative, keys
    "$S" fit -m $model "$C/$name.points" >out 2>err
    rc=$?
    if [ "$want" = refuse ]; then
        [ $rc -eq 2 ] && grep -q 'told apart' err
        ok "fit: $name: refused" $? err
        continue
    fi
    # Errors of an exact fit are rounding alone: only their being small is of note.
    # shellcheck disable=SC2086
    numbers $keys <out | paste - /dev/null >got
    printf '%s\n' "$want" | tr '\t' '\n' | paste got - | awk -v exact="${name##*exact*}" '
        { if (exact == "" && (NR == 3 || NR == 4)) print ($1 < 1e-3) + 0, 1; else print $1, $2 }' |
        same 1e-5 >diff.out
    ok "fit: $name $model" $? diff.out
done <"$C/fits.tsv"

while read -r n bytes alpha bw want; do
    "$S" fit -n "$n" --bytes "$bytes" --latency "$alpha" --bandwidth "${bw%.0}" |
        numbers ring_all_reduce tree_all_reduce ring_all_gather all_to_all >got
    printf '%s\n' "$want" | tr '\t' '\n' | paste -d' ' got - | same 1e-10
done <"$C/formulas.tsv" >diff.out
[ ! -s diff.out ]
ok "collectives: $(wc -l <"$C/formulas.tsv") cases" $? diff.out
while read -r experts k nodes want; do
    "$S" fit --experts "$experts" --top-k "$k" --nodes "$nodes" | numbers distinct remote >got
    printf '%s\n' "$want" | tr '\t' '\n' | paste -d' ' got - | same 1e-10
done <"$C/nodes.tsv" >diff.out
[ ! -s diff.out ]
ok "nodes of a token: $(wc -l <"$C/nodes.tsv") cases" $? diff.out

# Lines of a benchmark, and a prediction from what was fitted.
printf '{"bench":"x","bytes":1000,"ns":2000}\n{"bench":"x","bytes":3000,"ns":4000}\n{"other":1}\n' >json
"$S" fit -m alpha-beta -n 2 --bytes 1000 json | numbers alpha bandwidth ring_all_gather |
    tr '\n' ' ' >got
printf '1e-06 1000000000 1.5e-06' | tr ' ' '\n' >want
tr ' ' '\n' <got | head -3 | paste -d' ' - want | same 1e-9 >diff.out
ok 'points of a benchmark' $? diff.out

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" fit "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
printf '1\tnan\n' >nan; printf '1\t-2\n' >neg; printf '1 2\n' >blank; : >none; printf '1\t0\n' >zero
printf '{"bytes":\n' >cut.json
for k in nan neg blank none zero cut.json; do refuse "$k" "$k" -m alpha-beta "$k"; done
refuse 'no file' nowhere -m alpha-beta nowhere
refuse 'no model' '--model' "$C/exact0.points"
refuse 'nothing to do' '--ranks'
refuse 'no latency' '--latency' -n 2 --bytes 1
refuse 'more chosen than there are' '--experts' --experts 4 --top-k 5 --nodes 2
refuse 'nodes that do not divide' '--experts' --experts 4 --top-k 2 --nodes 3
tap_end
