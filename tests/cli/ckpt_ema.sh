#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Averages of models: beside numpy in long double, gone on with after each model, as a model
# again, and what is refused.
. "$T/tap.sh"
C=$B/moe-ckpt D=$T/data/ckpt

sums() { "$B/tests/tools/st" sums "$1"; }
# mk FILE HEADER BYTES: a safetensors file; BYTES as printf has them.
mk() {
    len=$(printf %s "$2" | wc -c)
    {
        # shellcheck disable=SC2059 # escapes
        printf "\\$(printf %03o "$((len % 256))")\\$(printf %03o "$((len / 256))")\0\0\0\0\0\0"
        # shellcheck disable=SC2059
        printf %s "$2" && printf "$3"
    } >"$1"
}

for bias in first zero warmup; do
    "$C" ema -q -d 0.9 --bias $bias $bias.safetensors "$D"/m[0-4].safetensors 2>err
    ok "$bias: five models at once" $? err
    rc=0
    for k in 0 1 2 3 4; do
        "$C" ema -q -d 0.9 --bias $bias one-$bias.safetensors "$D/m$k.safetensors" 2>err || rc=1
    done
    cmp $bias.safetensors one-$bias.safetensors >>err && [ $rc -eq 0 ]
    ok "$bias: one by one: the same bytes" $? err
    MOE_CPU=ref "$C" ema -q -d 0.9 --bias $bias ref-$bias.safetensors "$D"/m[0-4].safetensors &&
        cmp $bias.safetensors ref-$bias.safetensors >diff.out
    ok "$bias: by the reference kernels: the same bytes" $? diff.out
    # A state of F32 and a residual does not hold all of a double.
    "$C" ema -q -w out.safetensors --force $bias.safetensors && sums out.safetensors |
        grep -v '^d.f64 ' >got
    sums "$D/ema_$bias.safetensors" | grep -v '^d.f64 ' | diff - got >diff.out
    ok "$bias: the weights are numpy's" $? diff.out
    "$C" ema -q -w - -t f32 $bias.safetensors >out2.safetensors && sums out2.safetensors >got
    sums "$D/ema_${bias}_f32.safetensors" | diff - got >diff.out
    ok "$bias: as F32 to standard output, too" $? diff.out
done

cp -r "$T/data/kjv-moe" model
"$C" ema -q dir model && "$C" ema -q dir model model && "$C" ema --json -q dir >got 2>err
is 'a directory: the count' "$(cat got)" \
    '{"state":"dir","decay":0.9999,"bias":"first","count":2}'
"$C" ema -q -w back dir && sums back >got && sums model | diff - got >diff.out && cmp back/config.json model/config.json
ok 'a model that stays is its own average, with the files beside' $? diff.out
"$C" ema -q pipe.safetensors - <"$D/m0.safetensors" && "$C" ema -q p2.safetensors "$D/m0.safetensors" &&
    cmp pipe.safetensors p2.safetensors >diff.out
ok 'a model of standard input' $? diff.out
"$C" ema -q --keep int.safetensors "$D"/int[0-4].safetensors && "$C" ema -q -w iw.safetensors int.safetensors &&
    sums iw.safetensors | grep '^steps' >got && sums "$D/int4.safetensors" | grep '^steps' | diff - got >diff.out
ok 'integers are the last ones' $? diff.out

refuse() {  # refuse WHAT PATTERN STATE MODEL...: nothing is made or changed
    what=$1 pat=$2 state=$3
    shift 3
    rm -f before
    [ ! -f "$state" ] || cp "$state" before
    "$C" ema -q "$state" "$@" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err &&
        if [ -f before ]; then cmp before "$state"; else [ ! -e "$state" ]; fi
    ok "refused: $what" $? err
}
H='"dtype":"F32","shape":[1],"data_offsets":[0,4]'
mk nan.safetensors "{\"x\":{$H}}" '\0\0\300\177'
mk inf.safetensors "{\"x\":{$H}}" '\0\0\200\177'
mk one.safetensors "{\"x\":{$H}}" '\0\0\200\077'
mk other.safetensors "{\"y\":{$H}}" '\0\0\200\077'
mk two.safetensors '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' '\0\0\0\0\0\0\0\0'
mk shape.safetensors '{"x":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}' '\0\0\200\077'
mk more.safetensors "{\"x\":{$H},\"y\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}" '\0\0\0\0\0\0\0\0'
mk type.safetensors '{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}' '\200\077'
mk fp8.safetensors '{"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}' '\070'
mk empty.safetensors '{}' ''
mk huge.safetensors '{"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}' '\0\0\0\0\0\0\0\177'
mk lone.safetensors '{"__metadata__":{"moe.ema":"1","moe.ema.decay":"0.9","moe.ema.bias":"first","moe.ema.count":"1"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' '\0\0\0\0'
mk count.safetensors '{"__metadata__":{"moe.ema":"1","moe.ema.decay":"0.9","moe.ema.bias":"first","moe.ema.count":"-1"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' '\0\0\0\0'
mk version.safetensors '{"__metadata__":{"moe.ema":"2"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' '\0\0\0\0'
head -c 90 one.safetensors >cut.safetensors
"$C" ema -q s.safetensors one.safetensors
while read -r model pat; do
    refuse "$model in a new state" "$pat" new.safetensors "$model.safetensors"
    refuse "$model in a state" "$model.*" s.safetensors one.safetensors "$model.safetensors"
done <<'EOF'
nan tensor x: holds NaN
inf tensor x: holds NaN
fp8 tensor x: is quantised
empty no tensors
huge what no float holds
nowhere nowhere
s the state of an average
EOF
for m in other two shape more type; do
    refuse "$m, and the state differs" 'tensor [xy]: \|does not have it\|has tensors' s.safetensors $m.safetensors
    refuse "$m beside another" "tensor [xy]: " new.safetensors one.safetensors $m.safetensors
done
refuse 'a model in place of a state' 'not the state' one.safetensors one.safetensors
refuse 'a state without a residual' 'residual' lone.safetensors one.safetensors
refuse 'a count below 0' 'count' count.safetensors one.safetensors
refuse 'a version of later' 'version 2' version.safetensors one.safetensors
refuse 'another decay' 'decay 0.9999' s.safetensors -d 0.99 one.safetensors
refuse 'another bias' 'bias first' s.safetensors --bias zero one.safetensors
refuse 'a decay of 1' '--decay' new.safetensors -d 1 one.safetensors
refuse 'integers without --keep' 'no float type' new.safetensors "$D/int0.safetensors"
refuse 'no model' 'not there yet' new.safetensors
refuse 'standard input twice' 'one model' new.safetensors - -
refuse 'a GGUF file' 'GGUF' new.safetensors "$T/data/shard/parts/whole.gguf"
status 'a state to standard output' 2 "$C" ema - one.safetensors
status 'weights over what is there' 2 "$C" ema -w one.safetensors s.safetensors
status 'weights of a model' 2 "$C" ema -w new2.safetensors one.safetensors
exec 9<s.safetensors
flock -x 9
status 'refused: a state that another process works on' 2 "$C" ema -q s.safetensors one.safetensors
exec 9<&-
grep -q 'another process' err
ok 'which it says' $? err
tap_end
