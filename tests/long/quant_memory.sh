#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant holds at most 256 MiB for a stack of 1 GiB and any number of threads.
. "$T/tap.sh"
st=$B/tests/tools/st
"$st" synth big 1 8 8192 4096 stack
"$st" rss "$B/moe-quant" -q -j1 big one 2>kib
[ "$(tail -1 kib)" -lt 262144 ]
ok "-j1: $(tail -1 kib) KiB" $?
for j in 16 256; do
    "$st" rss "$B/moe-quant" -q -j$j --force --report r big many 2>kib
    [ "$(tail -1 kib)" -lt 262144 ]
    ok "-j$j with a report: $(tail -1 kib) KiB" $?
    diff -r one many
    ok "-j$j: the same bytes" $?
done
tap_end
