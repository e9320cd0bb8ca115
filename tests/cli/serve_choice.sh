#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --once: penalties, bias, ends, logarithms, guesses.
. "$T/tap.sh"
serve=$B/moe-serve
kjv=$T/data/kjv-moe
genesis='In the beginning God created'
printf '%s' "$genesis" >genesis

once() {
    "$serve" --once "$@" "$kjv" <genesis
}
once -N 40 >plain

is "a stop text" "$(once -N 40 --stop ' of his')" ", and the glory"
is "within a token" "$(once -N 40 --stop 'lory')" ", and the g"
is "over a newline" "$(once -N 40 --stop 'm.
And he')" ", and the glory of his throne, and the glory of his kingdo"
is "the first to be complete" "$(once -N 40 --stop throne --stop 'his throne,')" ", and the glory of his "
is "the longest of two" "$(once -N 40 --stop throne --stop 'his throne')" ", and the glory of "
once -N 40 --stop 'in the throneX' | cmp - plain >out 2>&1
ok "one that never comes" $? out
is "a stop id" "$(once -N 40 --stop-id 13)" ", and the glory of his throne, and the glory of his kingdom"
is "of several" "$(once -N 40 --stop-id 13 --stop-id 969)" ", and the"

is "bias forbids" "$(once -N 1 --logit-bias 11=-100)" " the"
is "bias forces" "$(once -N 4 --logit-bias 969=100)" " glory glory glory glory"
is "but not against a penalty" "$(once -N 2 --logit-bias 969=100 --frequency 100)" " glory,"
once -N 120 --frequency 1.5 >varied
is "a penalty of what is often" "$(tr -s ' ,.:;' '\n' <varied | sort | uniq -c | sort -rn | head -1 | awk '{ print ($1 <= 6) }')" 1
once -N 40 --repetition 1.3 >repetition
once -N 40 --presence 1 >presence
! cmp -s repetition plain && ! cmp -s presence plain && ! cmp -s repetition presence
ok "penalties differ" $?

once -N 3 --logprobs 2 >lines
is "a line a token" "$(wc -l <lines)" 3
is "its logarithm among the likeliest" "$(head -1 lines | sed 's/.*"top":\[{\("id":11,"token":",","logprob":-1\.31[0-9]*\)},{"id":258,.*/\1/')" \
    "$(head -1 lines | sed 's/{\(.*\),"top.*/\1/')"
once -N 3 --logprobs 0 --logit-bias 11=-100 >lines
is "of the model itself" "$(head -1 lines)" '{"id":258,"token":" the","logprob":-2.120502690975888,"top":[]}'

# Guesses change nothing, wherever the text ends.
for n in 40 97 300; do
    once -N $n -c 512 --speculate 0 >without
    for k in 1 8 16; do
        once -N $n -c 512 --speculate $k | cmp - without >out 2>&1
        ok "$n tokens with guesses of $k" $? out
    done
done
once -N 200 --temp 0.7 --seed 3 --frequency 0.1 --speculate 0 >without
once -N 200 --temp 0.7 --seed 3 --frequency 0.1 | cmp - without >out 2>&1
ok "drawn, with guesses" $? out
once -N 300 -c 512 --speculate 0 --stop ', and the earth, and the earth,' >without
once -N 300 -c 512 --stop ', and the earth, and the earth,' | cmp - without >out 2>&1
ok "up to a stop text" $? out

# refuse WHAT WORDS OPTION...: status 2, one line, nothing on stdout.
refuse() {
    what=$1 words=$2
    shift 2
    once "$@" >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -- "$words" err
    ok "refused: $what" $? err
}
refuse "bias without a value" "not ID=B" --logit-bias 11
refuse "bias of no token" "not in the vocabulary" --logit-bias 2048=1
refuse "bias that is no number" "logit-bias" --logit-bias 1=x
refuse "an end that is no token" "not in the vocabulary" --stop-id 2048
refuse "an empty stop text" "stop" --stop ''
refuse "21 likeliest" "logprobs" --logprobs 21
refuse "repetition 0" "repetition" --repetition 0
refuse "guesses of 17" "speculate" --speculate 17
tap_end
