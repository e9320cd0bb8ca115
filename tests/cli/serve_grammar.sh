#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --once --grammar and --schema: outputs that meet it, whatever the choice of tokens; guesses;
# grammars that are refused.
. "$T/tap.sh"
serve=$B/moe-serve
kjv=$T/data/kjv-moe
printf 'In the beginning God created' >genesis

once() {
    "$serve" --once "$@" "$kjv" <genesis
}

cat >verses <<'EOF'
# One or two verses
root  ::= verse ("\n" verse)?
verse ::= [1-9] [0-9]? " " word (" " word){0,8} [.;]
word  ::= [A-Za-z]+
EOF
for seed in 1 2 3 4 5 6; do
    once -N 200 --temp 1 --seed $seed --grammar verses >out
    lines=$(grep -c '' out)
    [ "$lines" -ge 1 ] && [ "$lines" -le 2 ] &&
        ! grep -qvE '^[1-9][0-9]? [A-Za-z]+( [A-Za-z]+){0,8}[.;]$' out
    ok "verses, seed $seed" $? out
done
once -N 60 --temp 0.7 --grammar verses --speculate 0 >without
once -N 60 --temp 0.7 --grammar verses | cmp - without >diff.out 2>&1
ok "guesses change nothing" $? diff.out
echo 'root ::= ", and the " ("light" | "dark" | "waters")' >light
is "it ends where nothing follows" "$(once --grammar light | grep -cE '^, and the (light|dark|waters)$')" 1
echo 'root ::= "\u00e9" [\u4e00-\u9fff]{2}' >han
is "characters that no token has whole" "$(once --temp 2 --grammar han | wc -c)" 8
is "cut short by -N only" "$(once -N 2 --grammar light)" ", and"
echo 'root ::= [a-z ]* "."?' >open
once -N 8 --logit-bias 13=100 --grammar open >out
is "bias is behind the grammar" "$(cat out)" "."
is "probabilities are the model's" "$(once -N 1 --logprobs 1 --grammar han | sed 's/.*"top"//')" \
    "$(once -N 1 --logprobs 1 | sed 's/.*"top"//')"

refuse() {
    what=$1 words=$2
    once --grammar file >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$words" err
    ok "refused: $what" $? err
}
echo 'root ::= root "a" | "b"' >file
refuse "a rule that begins with itself" "file: grammar: a rule can begin with itself"
echo 'root ::= "a' >file
refuse "no grammar" "file:1:"
echo 'root ::= (([a-z]{1000}){1000}){1000}' >file
refuse "one that explodes" "more than"
rm file
refuse "no file" "file: No such file"

# Schemas.
cat >person <<'EOF'
{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
  "age": {"type": "integer", "minimum": 0, "maximum": 969},
  "tribe": {"enum": ["Levi", "Judah"]},
  "sons": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"}, "maxItems": 3}},
 "required": ["name", "age", "tribe", "sons"], "additionalProperties": false}
EOF
for seed in 1 2 3 4; do
    once -N 400 --temp 1 --seed $seed --schema person >out 2>err
    tr -d ' \n' <out | grep -qE '^\{"[^{}]*":[-0-9.eE+]+,"[^{}]*":"[^"]*","[^{}]*":\[[^]]*\]\}$'
    ok "a person, seed $seed" $? out
done
once -N 300 --temp 1 --schema person --speculate 0 >without
once -N 300 --temp 1 --schema person | cmp - without >diff.out 2>&1
ok "guesses change nothing in JSON" $? diff.out
echo '{"enum": ["the light"]}' >one
is "a constant" "$(once --schema one --logit-bias 85=-100)" '"the light"'
once --schema one --grammar light >out 2>err
[ $? -eq 2 ] && grep -q 'not both' err
ok "refused: both" $? err
echo '{"type": "array", "uniqueItems": true}' >file
once --schema file >out 2>err
[ $? -eq 2 ] && [ "$(cat err)" = "moe-serve: file: uniqueItems is not supported" ]
ok "refused: a keyword" $? err
tap_end
