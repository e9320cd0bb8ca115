#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The gate of a metric: yes, each no, and what is refused.
. "$T/tap.sh"
C=$B/moe-ckpt S=$T/data/ckpt/steady.csv

gate() {    # gate WHAT STATUS PATTERN OPTIONS...
    what=$1 want=$2 pat=$3
    shift 3
    "$C" promote "$@" >out 2>err
    [ $? -eq "$want" ] && cat out err | grep -q -e "$pat"
    ok "$what" $? err
}
gate 'steady' 0 '^yes: jitter 0.00153621, 440 samples, 72 h' --metric 'train, loss' "$S"
gate 'as JSON' 0 '"promote":true,"why":null,"jitter":0.00153621162' --json --metric 'train, loss' "$S"
gate 'from standard input' 0 '^yes' --metric 'train, loss' - <"$S"
gate 'too much jitter' 1 'jitter is too large' -x 0.0015 --metric 'train, loss' "$S"
gate 'too short' 1 'shorter' --window 82h --metric 'train, loss' "$S"
gate 'too few' 1 'few samples' --samples 441 --metric 'train, loss' "$S"
gate 'a gap' 1 'without a sample' --max-gap 10m --metric 'train, loss' "$S"
gate 'why, as JSON' 1 '"promote":false,"why":"too few' --json --samples 441 --metric 'train, loss' "$S"
"$C" promote -q --samples 441 --metric 'train, loss' "$S" >out 2>&1
[ $? -eq 1 ] && [ ! -s out ]
ok 'in silence' $? out
sed '300s/,[^,]*$/,nan/' "$S" >nan.csv
gate 'NaN' 1 'no number' --metric 'train, loss' nan.csv
sed '1s/.*/step,time,loss/; 2,$s/,[^,]*$/,2/' "$S" | cut -d, -f2,3 >flat.csv
gate 'a jitter of 0 is below all but 0' 0 '^yes' flat.csv
gate 'and not below 0' 1 'too large' -x 0 flat.csv
printf 'time,loss\n1,2\n2,3\n3,x\n' >bad.csv
gate 'a bad row' 2 '^moe-ckpt: bad.csv:4: the value is no number$' bad.csv
gate 'no column' 2 'no column loss' "$S"
gate 'an empty file' 2 'no header' /dev/null
gate 'no file' 2 'nowhere' nowhere
gate 'a window that is none' 2 '--window' --window h flat.csv
gate 'one sample asked for' 2 '--samples' --samples 1 flat.csv
gate 'no operand' 2 'wants one'
tap_end
