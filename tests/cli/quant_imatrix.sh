#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --imatrix: both forms, experts each by their own, silent experts, and
# files that are wrong.
. "$T/tap.sh"
twin=$B/tests/tools/twin st=$B/tests/tools/st

"$st" synth m 1 3 256 256 plain
"$twin" imatrix i.dat dat 3 256
"$twin" imatrix i.gguf gguf 3 256
q() { "$B/moe-quant" -q --force "$@"; }
weighted() { sed -n "/$1/s/.*\"weighted_sqnr_db\":\([0-9.]*\).*/\1/p" "$2"; }

status "without a search it means mse" 0 q --imatrix i.dat --report r m a
q --imatrix i.gguf --search mse --report r2 m b
"$st" sums a >want
"$st" sums b >got
cmp -s want got && cmp -s r r2
ok "the two forms give one result" $?
is "2: the expert that saw nothing is named" "$(tail -1 r | sed 's/.*"dead":\[\([^]]*\)\].*/\1/')" \
    "$(printf '"model.layers.0.mlp.experts.1.%s_proj",' gate up down | sed 's/,$//')"
q --search mse m c
"$st" sums c | grep 'experts.1\.' >want
grep 'experts.1\.' got | cmp -s want -
ok "2: and quantised as without weights" $?
"$st" sums c | grep 'experts.0.*packed' >want
grep 'experts.0.*packed' got | cmp -s want -
[ $? -eq 1 ]
ok "others are not" $?
is "every other matrix is weighed" "$(grep -c '"importance":"used"' r)" 6

# The weighted error is what is made smaller: by more than 5 % against
# the same search without weights.
for p in gate up down; do
    "$twin" weigh m c $p >plain
    "$twin" weigh m a $p >own
    paste plain own | awk '{ exit !($2 <= 0.95 * $1) }'
    ok "$p: the weighted error falls by 5 %" $? plain
done

bad() { # bad WHAT WORDS FILE
    status "$1" 2 "$B/moe-quant" -q --imatrix "$3" m x
    grep -q -- "$2" err
    ok "$1: told" $? err
}
"$twin" imatrix nan.dat dat 3 256 nan
bad 'no number' 'ffn_gate_exps.weight: value 0 is negative or no number' nan.dat
"$twin" imatrix neg.gguf gguf 3 256 -1
bad 'negative' 'ffn_gate_exps.weight: value 0 is negative' neg.gguf
"$twin" imatrix two.dat dat 2 256
bad 'an expert too few' 'do not go with 256 columns and expert 2' two.dat
"$twin" imatrix wide.dat dat 3 250
bad 'other columns' 'do not go with 256 columns' wide.dat
head -c 1000 i.dat >cut.dat
bad 'cut' 'more values than it holds' cut.dat
head -c 1000 i.gguf >cut.gguf
bad 'a cut GGUF' 'cut.gguf' cut.gguf
: >empty
bad 'empty' 'it ends early' empty
bad 'a text' 'neither a GGUF file nor' "$T/data/README.md"
bad 'nothing there' 'nothing: No such file' nothing
tap_end
