#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --resume: a run that was killed goes on and writes the same bytes.
. "$T/tap.sh"
st=$B/tests/tools/st
q() { "$B/moe-quant" -q -f int8 --search mse "$@"; }

"$st" synth m 2 4 1024 1024 plain
q m whole

# Killed once there is a promise (the reference kernels give time for it).
MOE_CPU=ref "$B/moe-quant" -q -f int8 --search mse -j1 --resume m dst 2>err &
pid=$!
n=0
while ! grep -q promised dst.journal 2>/dev/null && [ $n -lt 300 ]; do sleep 0.02; n=$((n + 1)); done
kill -9 $pid
wait $pid 2>/dev/null
grep -q promised_items dst.journal && [ -d dst.part ] && [ ! -e dst ]
ok "15: after SIGKILL the part and its journal are there" $?
promised=$(grep -o '"promised_items":[0-9]*' dst.journal | tail -1 | cut -d: -f2)
is "with a digest a tensor" "$(grep -c '"sha256":"[0-9a-f]\{64\}"' dst.journal)" "$promised"

cp -r dst.part keep.part && cp dst.journal keep.journal
restore() { rm -rf dst.part dst.journal && cp -r keep.part dst.part && cp keep.journal dst.journal; }
status "15: another format is refused" 2 "$B/moe-quant" -q --resume m dst
grep -q 'dst.journal: of another input, policy or version' err
ok "15: and told" $? err
cp -r m m2
status "15: another input is refused" 2 q --resume m2 dst
status "15: with a report it is refused" 2 q --resume --report r m dst
status "15: to a file it is refused" 2 q --resume m dst.safetensors

status "15: the next run goes on" 0 "$B/moe-quant" -f int8 --search mse --resume m dst
grep -q "going on after $promised of" err
ok "15: after what was promised" $? err
diff -r whole dst >changes
ok "15: and writes what an unbroken run writes" $? changes
[ ! -e dst.part ] && [ ! -e dst.journal ]
ok "15: nothing else is left" $?
rm -rf dst

restore
printf '{"name":"half a li' >>dst.journal
status "15: a line that was cut is thrown away" 0 q --resume m dst
diff -r whole dst >changes
ok "15: the result is the same" $? changes
rm -rf dst
restore && truncate -s 1000 dst.part/model.safetensors
status "15: a part that has lost bytes is refused" 2 q --resume m dst
grep -q 'has lost bytes' err
ok "15: and told" $? err
restore && rm dst.journal
status "15: a part without a journal is refused" 2 q --resume m dst
restore && echo '{}' >dst.journal
status "15: what is no journal is refused" 2 q --resume m dst
grep -q 'not a journal' err
ok "15: and told" $? err
restore && rm -rf dst.part dst.journal

# A stop by a signal leaves it as well.
MOE_CPU=ref "$B/moe-quant" -q -f int8 --search mse -j1 --resume m dst 2>err &
pid=$!
n=0
while ! grep -q promised dst.journal 2>/dev/null && [ $n -lt 300 ]; do sleep 0.02; n=$((n + 1)); done
kill -15 $pid
wait $pid
is "SIGTERM ends it" $? 143
status "and it goes on" 0 q -j2 --resume m dst
diff -r whole dst >changes
ok "to the same bytes" $? changes
status "what is there is not overwritten" 2 q --resume m dst
status "but by --force" 0 q --resume --force m dst
diff -r whole dst >changes
ok "with the same bytes" $? changes
tap_end
