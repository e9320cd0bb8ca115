#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant: the output is there whole or not at all.
. "$T/tap.sh"
st=$B/tests/tools/st
kjv=$T/data/kjv-moe

parts() { find . -maxdepth 1 -name '.*.part' | wc -l; }

mkdir dst && echo mine >dst/file
status "a directory that is there" 2 "$B/moe-quant" -q "$kjv" dst
is "is left alone" "$(cat dst/file)" mine
status "--force replaces it" 0 "$B/moe-quant" -q --force "$kjv" dst
[ ! -e dst/file ] && [ -s dst/model.safetensors ]
ok "whole" $?
"$st" sums dst >want
status "a file that is there" 2 "$B/moe-quant" -q "$kjv" dst/model.safetensors
status "a report that is there" 2 "$B/moe-quant" -q --report dst/config.json "$kjv" other
[ ! -e other ] && [ "$(parts)" -eq 0 ]
ok "leaves no model" $?

# A fault in the middle with --force: the old one stays.
cp -r "$kjv" m && "$st" poke m model.layers.3.mlp.experts.15.down_proj.weight 0 c07f
status "a NaN near the end" 2 "$B/moe-quant" -q --force m dst
"$st" sums dst >got
cmp -s want got
ok "the old model stays" $?
is "and nothing else" "$(parts)" 0

# Signals, while the input is waited for.
mkfifo pipe
for sig in 15 2 1; do
    { head -c 5000000 "$kjv/model.safetensors"; exec sleep 20; } >pipe &
    feed=$!
    # A shell without job control starts its children with INT ignored.
    env --default-signal=INT "$B/moe-quant" -q - sig.safetensors <pipe 2>err &
    pid=$!
    n=0
    while [ "$(parts)" -eq 0 ] && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
    kill -$sig $pid 2>/dev/null
    wait $pid
    rc=$?
    kill $feed 2>/dev/null
    wait $feed 2>/dev/null
    is "signal $sig ends it as it should" $rc $((128 + sig))
    [ ! -e sig.safetensors ] && [ "$(parts)" -eq 0 ]
    ok "signal $sig leaves nothing" $?
done

{ head -c 5000000 "$kjv/model.safetensors"; exec sleep 20; } >pipe &
feed=$!
"$B/moe-quant" -q - kill.safetensors <pipe 2>err &
pid=$!
n=0
while [ "$(parts)" -eq 0 ] && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
kill -9 $pid
wait $pid 2>/dev/null
kill $feed 2>/dev/null
[ ! -e kill.safetensors ]
ok "after SIGKILL nothing is under the name" $?
is "but a part is left" "$(parts)" 1
status "the next run" 0 "$B/moe-quant" -q "$kjv" kill.safetensors
is "takes it away" "$(parts)" 0

# No room.
status "a full device" 2 sh -c "'$B/moe-quant' -q '$kjv' - >/dev/full"
grep -q 'No space left' err
ok "is told" $? err
mkdir small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=2m none small 2>/dev/null; then
    status "a disk too small" 2 "$B/moe-quant" -q "$kjv" small/dst
    grep -q 'small/.*No space left' err
    ok "is told with the name" $? err
    is "and left empty" "$(ls -A small | wc -l)" 0
    umount small
else
    skip "no disk can be mounted"
fi
tap_end
