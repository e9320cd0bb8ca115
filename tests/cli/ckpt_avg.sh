#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Means of models and of updates beside numpy, deltas clipped as PyTorch does it, noise, what it
# leaves of privacy, and what is refused.
. "$T/tap.sh"
C=$B/moe-ckpt D=$T/data/ckpt

# All but F64, which is compared as numbers: long double and double differ in the last bit.
sums() { "$B/tests/tools/st" sums "$1" | grep -v F64; }
numbers() { tail -c $((8 * $2)) "$1" | od -An -v -w8 -t f8; }
near() {    # near FILE WANT N: the last N doubles of each
    numbers "$1" "$3" >near.a
    numbers "$2" "$3" | paste near.a - | awk '{ d = $1 - $2; if (d < 0) d = -d
        m = $2 < 0 ? -$2 : $2; if (d > 1e-14 * (m + 0.01)) { bad = 1; print } }
        END { exit bad || NR == 0 }'
}
same() {    # same WHAT GOT WANT: tensors
    sums "$2" >got && sums "$3" | diff - got >diff.out && near "$2" "$3" 1 >>diff.out
    ok "$1" $? diff.out
}

"$C" avg -q -w 1,2,3,4,5 -o avg.safetensors "$D"/m[0-4].safetensors
same 'a weighted mean is numpy'"'s" avg.safetensors "$D/avg.safetensors"
MOE_CPU=ref "$C" avg -q -w 1,2,3,4,5 -o ref.safetensors "$D"/m[0-4].safetensors && cmp avg.safetensors ref.safetensors >diff.out
ok 'by the reference kernels, too' $? diff.out
"$C" avg -q -o one.safetensors "$D/m3.safetensors"
same 'of one model: the model' one.safetensors "$D/m3.safetensors"
"$C" avg -q -o - "$D/m1.safetensors" - <"$D/m2.safetensors" >pipe.safetensors
"$C" avg -q -o files.safetensors "$D/m1.safetensors" "$D/m2.safetensors"
same 'from standard input to standard output' pipe.safetensors files.safetensors
"$C" avg -q -b "$D/m0.safetensors" --clip "$(cat "$D/avg_base.clip")" -o base.safetensors "$D"/m[1-4].safetensors
same 'clipped updates of a base are numpy'"'s" base.safetensors "$D/avg_base.safetensors"
while read -r case n s w; do
    # shellcheck disable=SC2086 # options
    "$C" avg -q --clip $s $w -o fed$case.safetensors "$D"/fed"$case"_[0-9].safetensors &&
        near fed"$case".safetensors "$D/fed$case.safetensors" "$n" >diff.out
    ok "a federated mean: case $case" $? diff.out
done <<'EOF'
0 5 1.0
2 7 2.0 -w 1,2,3,10
4 3 1e9 -w 5,5
EOF
"$C" avg -q --clip 1 --total 6 -o half.safetensors "$D"/fed0_[0-9].safetensors
numbers half.safetensors 5 | awk '{ print 2 * $1 }' >got
numbers "$D/fed0.safetensors" 5 | paste got - | awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 }'
ok 'a total that is given' $? got

# Noise: on zeros it is all there is.
{
    printf '\120\0\0\0\0\0\0\0%-80s' '{"x":{"dtype":"F32","shape":[16384],"data_offsets":[0,65536]}}'
    head -c 65536 /dev/zero
} >zero.safetensors
"$C" avg -q --clip 0.5 --noise 3 -w 2,1 -o n1.safetensors zero.safetensors zero.safetensors &&
    "$C" avg -q --clip 0.5 --noise 3 -w 2,1 -o n2.safetensors zero.safetensors zero.safetensors
! cmp -s n1.safetensors n2.safetensors
ok 'noise is never the same' $?
tail -c 65536 n1.safetensors | od -An -v -w4 -t f4 |
    awk '{ s += $1; q += $1 * $1 } END { print s / NR, q / NR; exit !(s / NR < 0.04 && s / NR > -0.04 && q / NR > 0.94 && q / NR < 1.06) }' >got
ok 'its deviation is noise times clip times the largest weight, over the total' $? got
"$C" avg --noise 1.1 --sample-rate 0.01 --steps 10000 --delta 1e-5 >got
awk '{ d = $2 - EPS; exit !($1 == "epsilon" && d * d < 1e-12 && $6 == ORDER) }' EPS=5.654308000149489 ORDER=5 got
ok 'epsilon of a run' $? got

"$C" apply --json -q --clip-norm 0.25 -o applied.safetensors "$D/m0.safetensors" "$D/m1.safetensors" >got
same 'a delta, clipped as PyTorch does it' applied.safetensors "$D/apply.safetensors"
awk -F '[:,}]' '{ exit !($2 > 0.25 && $4 < 1) }' got
ok 'norm and factor' $? got
"$C" apply -q --clip-norm 100 -o a1.safetensors "$D/m0.safetensors" "$D/m1.safetensors" &&
    "$C" apply -q -o a2.safetensors - "$D/m1.safetensors" <"$D/m0.safetensors" && cmp a1.safetensors a2.safetensors >diff.out
ok 'a delta below the norm is whole' $? diff.out
cp -r "$T/data/kjv-moe" base
"$C" apply -q -o sum base base &&
    cmp sum/config.json base/config.json >diff.out
ok 'a directory with the files beside' $? diff.out

# mk FILE TYPE SHAPE BYTES NAME
mk() {
    printf '\120\0\0\0\0\0\0\0%-80s' "{\"$5\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[0,$(printf %b "$4" | wc -c)]}}"
    printf %b "$4"
}
mk f F32 1 '\0000\0000\0200\0077' x >f.safetensors
mk f F32 1 '\0000\0000\0300\0177' x >nan.safetensors
mk f F32 1 '\0377\0377\0177\0177' x >max.safetensors
mk f F32 1 '\0000\0000\0200\0077' y >y.safetensors
mk f F32 '1,1' '\0000\0000\0200\0077' x >shape.safetensors
mk f BF16 1 '\0200\0077' x >bf16.safetensors
mk f F8_E4M3 1 '\0070' x >fp8.safetensors
mk f I8 1 '\0001' x >int.safetensors
mk f I8 1 '\0002' x >int2.safetensors
printf '\2\0\0\0\0\0\0\0{}' >empty.safetensors
refuse() {  # refuse WHAT PATTERN ARGUMENTS...
    what=$1 pat=$2
    shift 2
    "$C" "$@" <f.safetensors >out 2>err
    [ $? -eq 2 ] && [ ! -e new.safetensors ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
while IFS='|' read -r what pat args; do
    # shellcheck disable=SC2086 # words
    refuse "$what" "$pat" $args
done <<'EOF'
avg: names differ|missing|avg -o new.safetensors f.safetensors y.safetensors
avg: shapes differ|shape|avg -o new.safetensors f.safetensors shape.safetensors
avg: types differ|BF16|avg -o new.safetensors f.safetensors bf16.safetensors
avg: NaN|NaN|avg -o new.safetensors f.safetensors nan.safetensors
avg: NaN, clipped|NaN|avg --clip 1 -o new.safetensors f.safetensors nan.safetensors
avg: NaN in the base|NaN|avg -b nan.safetensors -o new.safetensors f.safetensors
avg: FP8|quantised|avg -o new.safetensors fp8.safetensors
avg: integers differ|no float|avg -o new.safetensors int.safetensors int2.safetensors
avg: too large|too large|avg --total 0.5 -o new.safetensors max.safetensors
avg: no tensors|no tensors|avg -o new.safetensors empty.safetensors
avg: no models|wants|avg -o new.safetensors
avg: no output|wants|avg f.safetensors
avg: a weight too few|not one for each|avg -w 1 -o new.safetensors f.safetensors f.safetensors
avg: a weight too many|not one for each|avg -w 1,2 -o new.safetensors f.safetensors
avg: a weight below 0|--weights|avg -w -1 -o new.safetensors f.safetensors
avg: a weight that is none|--weights|avg -w 1,,2 -o new.safetensors f.safetensors f.safetensors
avg: weights of 0|all are 0|avg -w 0 -o new.safetensors f.safetensors
avg: noise alone|--clip|avg --noise 1 -o new.safetensors f.safetensors
avg: what is read twice from a pipe|read twice|avg --clip 1 -o new.safetensors -
avg: epsilon without a delta|--delta|avg --noise 1 --sample-rate 1 --steps 1
avg: epsilon without noise|noise|avg --noise 0 --sample-rate 1 --steps 1 --delta 0.1
avg: epsilon with models|without models|avg --clip 1 --noise 1 --steps 1 -o new.safetensors f.safetensors
apply: a name of its own|does not have it|apply -o new.safetensors f.safetensors y.safetensors
apply: another shape|shape|apply -o new.safetensors f.safetensors shape.safetensors
apply: integers|add up|apply -o new.safetensors int.safetensors int.safetensors
apply: NaN|NaN|apply -o new.safetensors f.safetensors nan.safetensors
apply: NaN in the model|NaN|apply -o new.safetensors nan.safetensors f.safetensors
apply: too large|too large|apply -o new.safetensors max.safetensors max.safetensors
apply: an empty delta|no tensors|apply -o new.safetensors f.safetensors empty.safetensors
apply: a norm below 0|--clip-norm|apply --clip-norm -1 -o new.safetensors f.safetensors f.safetensors
apply: a delta from a pipe|read twice|apply -o new.safetensors f.safetensors -
apply: one operand|wants|apply -o new.safetensors f.safetensors
EOF
refuse 'over what is there' 'exists\|is there' avg -o f.safetensors y.safetensors
"$C" avg -q -o ints.safetensors int.safetensors int.safetensors
is 'integers that agree' "$(sums ints.safetensors)" "$(sums int.safetensors)"
tap_end
