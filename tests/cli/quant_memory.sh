#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant's memory does not grow with the model: a stack of 96 MiB, any -j.
. "$T/tap.sh"
st=$B/tests/tools/st
"$st" synth big 1 8 2048 2048 stack
is "the input is larger" $(($(stat -c %s big/model.safetensors) / 1048576)) 192
for j in 1 4; do
    "$st" rss "$B/moe-quant" -q -j$j --force big dst 2>kib
    [ "$(tail -1 kib)" -lt 65536 ]
    ok "-j$j holds less than 64 MiB ($(tail -1 kib) KiB)" $?
done
"$st" rss "$B/moe-quant" -q -j2 --report r --force - dst.safetensors <big/model.safetensors 2>kib
is "a stack of unknown layout is refused from a stream" $? 2
tap_end
