#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Twenty scrubs killed at odd moments: what is remembered is whole each time and
# never less than before, and in the end all has been read.
. "$T/tap.sh"
V=$B/moe-verify
cp "$T/data/kjv-moe/model.safetensors" . || exit 2
"$V" sum -t model.safetensors >list || exit 2
n=$(wc -l <list)
before=0 whole=0
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    "$V" scrub -q -r 3M -s state list &
    pid=$!
    sleep "0.$(((i * 37 + 11) % 90 + 10))"
    kill -9 $pid
    wait $pid 2>/dev/null
    [ -f state ] || continue
    now=$(wc -l <state)
    [ "$(head -n 1 state)" = "moe-scrub 1" ] && [ "$now" -ge "$before" ] &&
        ! grep -vqx 'moe-scrub 1\|[0-9]* 0 [0-9a-f]\{32\}' state || whole=1
    before=$now
done
ok "whole after each kill, and never less" $whole state
[ "$before" -gt 1 ]
ok "something was remembered: $before lines" $?
status "the next goes on to the end" 0 "$V" scrub -q -s state list
is "all is remembered" "$(wc -l <state)" $((n + 1))
is "nothing is left over" "$(find . -name '.state*' | wc -l)" 0
tap_end
