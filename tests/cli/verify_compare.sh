#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists of several nodes: all alike, one odd, two against two, other files,
# missing and extra tensors.
. "$T/tap.sh"
V=$B/moe-verify
tab=$(printf '\t')
"$V" sum -t "$T/data/kjv-moe" | sed "s|$T/data/||" >a || exit 2
n=$(wc -l <a)
cp a b && cp a c
bad=$(sed -n 7p a | cut -f3)
sed '7s/^..../0000/' a >odd
[ "$(sed -n 7p a | cut -c1-4)" != 0000 ] || sed '7s/^..../1111/' a >odd
status "alike" 0 "$V" compare a b c
is "all the same" "$(cut -f3- out | sort -u)" "0${tab}same"
status "quietly" 0 "$V" compare -q a b c
is "nothing is said" "$(cat out err)" ""
status "one odd of four" 1 "$V" compare one=a two=b odd three=c
is "named" "$(grep "${tab}differs" out | cut -f1,3)" "odd${tab}1"
is "with its tensor" "$(tail -n 1 out)" "odd: $bad: differs"
is "and no other" "$(grep -c "${tab}same\$" out)" 3
cp odd odd2
status "two against two" 1 "$V" compare a odd b odd2
is "undecided" "$(cut -f4 out | grep -c undecided)" 4
status "one against one" 1 "$V" compare a odd
is "undecided" "$(cut -f4 out | grep -c undecided)" 2
sed "s|${tab}kjv-moe/model|${tab}elsewhere/part|" a | sort >moved
status "other files" 0 "$V" compare a b moved
is "same weights" "$(tail -n 1 out | cut -f1,3,4)" "moved${tab}0${tab}same weights, different container"
sed '3d' a >less
status "a tensor less" 1 "$V" compare a b less
is "which" "$(tail -n 1 out)" "less: $(sed -n 3p a | cut -f3): missing"
status "a tensor more" 1 "$V" compare less odd a less=less less2=less
ok "which" "$(grep -qx "a: $(sed -n 3p a | cut -f3): extra" out; echo $?)" out
status "JSON" 1 "$V" compare --json a b odd
is "a line a node" "$(grep -c '^{"node":"[^"]*","weights":"[0-9a-f]\{64\}","parts":'"$n"',"delta":[01],"verdict":"[a-z]*"}$' out)" 3
i=0
set --
while [ $i -lt 63 ]; do set -- "$@" "n$i=a"; i=$((i + 1)); done
status "64 nodes" 1 "$V" compare -q "$@" last=odd
is "one named" "$(cut -f1 out | head -n 1)" last
sha256sum a b >files
sha256sum a odd | sed 's/  odd/  b/' >files2
status "lists of files" 1 "$V" compare x=files y=files z=files2
is "which" "$(tail -n 1 out)" "z: b: differs"
status "files and tensors" 2 "$V" compare a files
status "one list" 2 "$V" compare a
cat a a >twice
status "a tensor twice" 2 "$V" compare a twice
: >empty
status "an empty list" 2 "$V" compare a empty
tap_end
