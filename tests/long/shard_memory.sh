#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-shard cuts, joins and packs a model of 200 MB in less than 64 MiB of memory.
. "$T/tap.sh"
S=$B/moe-shard st=$B/tests/tools/st
"$st" synth m 1 8 2048 2048 plain
most() {    # most WHAT OPTIONS...
    what=$1
    shift
    "$st" rss "$S" "$@" 2>err || { cat err; exit 1; }
    kib=$(tail -1 err)
    [ "$kib" -gt 1000 ] && [ "$kib" -lt 65536 ]
    ok "$what: $kib KiB" $? err
}
most split split -q --tp 2 --ep 4 m ranks
most reshard reshard -q --ep 2 ranks halves
most merge merge -q halves back
cmp m/model.safetensors back/model.safetensors
ok 'the same bytes' $?
most 'files of a size' split -q --max-size 50MB m small
tap_end
