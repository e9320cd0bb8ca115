#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lists of other programs, and faulty ones, over a tree of hostile names: check
# gives the status of tests/data/lists/verdicts.tsv, with a line on stderr
# whenever it is not 0; sum and sha256sum read each other's lists.
. "$T/tap.sh"
L=$T/data/lists
"$B/tests/tools/list_tree" tree && cd tree || exit 2

tail -n +2 "$L/verdicts.tsv" >../verdicts
tab=$(printf '\t')
while IFS=$tab read -r list verdict want why; do
    case $list in sha256-zero.txt) z=-z ;; *) z= ;; esac
    "$B/moe-verify" check $z "$L/$list" >../out 2>../err
    is "$list ($verdict): $why" $? "$want"
    [ "$want" -eq 0 ] || [ -s ../err ]
    ok "$list: a word about it" $?
done <../verdicts

# What sha256sum writes for every name, byte for byte, and what check makes of it.
find . -type f ! -name '-*' -printf '%P\0' | sort -z >../names
{ cat ../names; printf './-dash\0./--tag\0'; } | xargs -0 sha256sum >../theirs
{ cat ../names; printf './-dash\0./--tag\0'; } | xargs -0 "$B/moe-verify" sum >../ours
cmp ../ours ../theirs >../out 2>&1
ok "sum writes what sha256sum writes" $? ../out
{ cat ../names; printf './-dash\0./--tag\0'; } | xargs -0 "$B/moe-verify" sum -j 1 | cmp - ../theirs
ok "whatever the threads" $?
xargs -0 sha256sum -z <../names >../theirs0
xargs -0 "$B/moe-verify" sum -z <../names | cmp - ../theirs0
ok "and with -z" $?
for form in '' --binary --tag; do
    # shellcheck disable=SC2086 # no word when empty
    xargs -0 sha256sum $form <../names | "$B/moe-verify" check --quiet >../out 2>../err
    ok "check reads sha256sum $form" $? ../err
done
"$B/moe-verify" check -z -q <../theirs0 >../out 2>../err
ok "and its -z" $? ../err

# A whole directory: sha256sum accepts our list.
cd .. && "$B/moe-verify" sum tree >ours 2>err
ok "sum of a directory" $? err
is "has a line for each file" "$(wc -l <ours)" "$(find tree -type f -print0 | tr -dc '\0' | wc -c)"
sha256sum -c --strict --quiet ours >out 2>err
ok "sha256sum -c --strict accepts it" $? err
status "check accepts it" 0 "$B/moe-verify" check ours
[ ! -s err ] && [ "$(grep -c ': OK$' out)" -eq "$(wc -l <ours)" ]
ok "with a line OK for each and nothing on stderr" $? out
LC_ALL=C grep -q "$(printf '[\001-\011\013-\037\177]')" out
is "no control character in check's output" $? 1
(cd tree && "$B/moe-verify" sum .) >dots
is "names under . begin so" "$(grep -vc '^\\\?[0-9a-f]*  \./' dots)" 0
tap_end
