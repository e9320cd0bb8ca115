#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/plot-report draws a report of moe-quant; the pipe shape of the suite.
. "$T/tap.sh"
. "$T/models.sh"
k=$T/data/kjv-moe

# Streams on both ends.
"$B/moe-quant" -q -f int4 - - <"$k/model.safetensors" | "$B/moe-verify" sum - >sum 2>/dev/null
is "moe-quant - - | moe-verify sum -" "$(cut -c1-64 sum)" \
    "$("$B/moe-quant" -q -f int4 - - <"$k/model.safetensors" | sha256sum | cut -c1-64)"

printf 'nothing\n' >none
status "a report without figures" 2 "$ROOT/scripts/plot-report" none x.svg
status "a name that is no picture" 2 "$ROOT/scripts/plot-report" none x.pdf
if ! command -v gnuplot >/dev/null; then
    skip "no gnuplot"
    tap_end
    exit
fi
"$B/moe-quant" -q --report r "$(model qwen2_moe)" x
status "an SVG" 0 "$ROOT/scripts/plot-report" r x.svg
grep -q '<svg' x.svg && grep -q 'expert' x.svg && grep -q 'shared' x.svg
ok "names the roles" $?
"$B/moe-quant" --diff "$(model qwen2_moe)" x >d
status "a PNG of --diff" 0 "$ROOT/scripts/plot-report" d x.png
is "is one" "$(head -c 8 x.png | od -An -tx1 | tr -d ' \n')" 89504e470d0a1a0a
is "nothing else is left" "$(find . -name '*.tmp' | wc -l)" 0
tap_end
