#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Scrubs: all is read, what differs is found and told again, hot parts come
# first, a short night stops in time, a killed one goes on, runs do not pile up.
. "$T/tap.sh"
V=$B/moe-verify
m=model.safetensors
cp "$T/data/kjv-moe/$m" . || exit 2
"$V" sum -t $m >list || exit 2
n=$(wc -l <list)
status "a scrub" 0 "$V" scrub -s state list
is "reads all" "$(cut -d' ' -f1-5 out)" "$n of $n parts read"
is "and remembers all" "$(wc -l <state)" $((n + 1))
status "quietly" 0 "$V" scrub -q list
is "nothing is said" "$(cat out err)" ""

# One bit.
cp "$m" good
printf '\377' | dd of="$m" bs=1 seek=200000 conv=notrunc 2>err
status "a changed byte" 1 "$V" scrub -q -s state --metrics prom list
is "one tensor has it" "$(grep -c ': FAILED (\(disk\|memory or disk\))$' out)" 1
is "metrics" "$(grep '^moe_scrub_differing' prom)" "moe_scrub_differing 1"
is "remembered" "$(grep -c '^[0-9]* 1 ' state)" 1
"$V" scrub --plugin -s state list >out
is "a plugin is critical" "$?" 2
ok "and says so" "$(grep -q '^SCRUB CRITICAL: .* | read=[0-9]*B differ=1 ' out; echo $?)" out
cp good "$m"
status "made good" 0 "$V" scrub --plugin -s state list
ok "a plugin's OK" "$(grep -q '^SCRUB OK: ' out; echo $?)" out
is "forgotten" "$(grep -c '^[0-9]* 1 ' state)" 0

# Hot parts first, in a night that is too short for more.
rm -f state
last=$(tail -n 1 list | cut -f3)
echo "$last" >hot
status "a second at 256 KiB/s" 0 "$V" scrub -b 1s -r 256Ki -s state --hot hot list
few=$(($(wc -l <state) - 1))
[ "$few" -ge 1 ] && [ "$few" -lt "$n" ]
ok "some were read: $few of $n" $? out
"$V" scrub -q -s state list
is "the next night goes on" "$(wc -l <state)" $((n + 1))

# Runs do not pile up; a killed one loses little.
rm -f state
"$V" scrub -q -r 4M -s state list &
pid=$!
i=0
while [ ! -s state ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
status "another run" 2 "$V" scrub -s state list
ok "says who" "$(grep -q 'another scrub is at work' err; echo $?)" err
kill -9 $pid
wait $pid 2>/dev/null
head -n 1 state | grep -qx 'moe-scrub 1'
ok "killed: the state is whole" $? state
status "and the next goes on" 0 "$V" scrub -q -s state list
is "to the end" "$(wc -l <state)" $((n + 1))

# Faults.
echo rubbish >bad
status "no state" 2 "$V" scrub -s bad list
printf 'moe-scrub 1\n12 3 00\n' >bad
status "no line of a state" 2 "$V" scrub -s bad list
: >empty
status "an empty list" 2 "$V" scrub empty
sed "s/$m/gone/" list >gone.list
status "files that are gone" 1 "$V" scrub -q gone.list
status "no list" 2 "$V" scrub
status "no time" 2 "$V" scrub -b 10 list
status "no rate" 2 "$V" scrub -r 10 list
tap_end
