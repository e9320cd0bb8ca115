#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --resume: killed at twenty points, in all three shapes of output (one
# pass, two passes, codes taken over), it ends with the bytes of an unbroken run.
. "$T/tap.sh"
st=$B/tests/tools/st
"$st" synth m 4 8 1024 512 plain

for f in 'int8 --search mse' nvfp4; do
    # shellcheck disable=SC2086
    "$B/moe-quant" -q -f $f m whole
    kills=0
    while [ $kills -lt 10 ]; do
        # shellcheck disable=SC2086
        MOE_CPU=ref "$B/moe-quant" -q -j$((1 + kills % 3)) -f $f --resume m dst 2>/dev/null &
        pid=$!
        sleep "0.$((1 + kills * 7 % 9))$((kills % 10))"
        kill -9 $pid 2>/dev/null
        # What is waited for has let go of its lock.
        wait $pid 2>/dev/null
        kills=$((kills + 1))
        [ ! -e dst ] || break
    done
    # shellcheck disable=SC2086
    [ -e dst ] || "$B/moe-quant" -q -f $f --resume m dst
    diff -r whole dst >changes
    ok "$f: the same bytes after $kills kills" $? changes
    [ ! -e dst.part ] && [ ! -e dst.journal ]
    ok "$f: nothing else is left" $?
    rm -rf whole dst dst.part dst.journal
done
tap_end
