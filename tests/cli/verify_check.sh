#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-verify check: verdicts, their status and words, several lists, options.
. "$T/tap.sh"
V=$B/moe-verify
for f in a b c; do echo $f >$f; done
sha256sum a b c >good
sed '2s/^./x/' good >badline; sed '2s/^[0-9a-f]\{2\}/00/' good >differs
{ cat good; sha256sum a | sed 's/a$/gone/'; } >missing

status "all as listed" 0 "$V" check good
is "says so" "$(cat out err)" "a: OK
b: OK
c: OK"
is "the list on standard input" "$("$V" check <good)" "$(cat out)"
status "quiet" 0 "$V" check --quiet good
is "says nothing" "$(cat out err)" ""
status "a file that differs: no" 1 "$V" check differs
is "its line" "$(cat out)" "a: OK
b: FAILED
c: OK"
is "summed up" "$(cat err)" "moe-verify: of 3 listed: 2 as listed, 1 differ, 0 missing, 0 unreadable; 0 bad lines"
status "quiet keeps what differs" 1 "$V" check -q differs
is "only that" "$(cat out)" "b: FAILED"
status "status only" 1 "$V" check --status differs
is "no word" "$(cat out err)" ""
status "a missing file: no" 1 "$V" check missing
is "its line" "$(tail -n 1 out)" "gone: FAILED open or read"
grep -q '^moe-verify: gone: No such file or directory$' err
ok "and why" $? err
status "missing files may be passed over" 0 "$V" check --ignore-missing missing
is "in silence" "$(cat out err)" "a: OK
b: OK
c: OK"
grep gone missing >onlygone
status "but nothing checked is trouble" 2 "$V" check --ignore-missing onlygone
is "named" "$(cat err)" "moe-verify: no file was checked"

status "a bad line is trouble" 2 "$V" check badline
head -n 1 err >first
is "with its number" "$(cat first)" "moe-verify: badline: line 2: no SHA-256 digest of 64 hexadecimal digits"
is "the others are checked" "$(cat out)" "a: OK
c: OK"
{ sed '2s/^./x/' differs; sha256sum b | sed 's/^../00/'; } >both
status "trouble wins over no" 2 "$V" check both
status "an empty list is trouble" 2 "$V" check /dev/null
status "also beside a good one" 2 "$V" check good /dev/null
status "a list that is not there" 2 "$V" check nolist good
is "the other list is checked" "$(wc -l <out)" 3
i=0
while [ $i -lt 30 ]; do echo junk; i=$((i + 1)); done >junk
status "a file that is no list" 2 "$V" check junk
is "does not fill the screen" "$(wc -l <err)" 12

mkdir dir; mkfifo fifo
for f in dir fifo; do
    sha256sum a | sed "s/a\$/$f/" >l
    status "$f is unreadable: trouble" 2 timeout 10 "$V" check l
    is "its line" "$(cat out)" "$f: FAILED open or read"
done
(cd dir && sha256sum <../a >l && "$V" check l <../a >../out 2>../err)
ok "the name - is standard input" $? err
"$V" check - <dir/l >out 2>err
is "unless the list is" $? 2
printf '\\%s  a\\nb\\\\\n' "$(sha256sum <a | cut -c1-64)" >l
status "hostile names" 1 "$V" check l
is "are shown as one line" "$(cat out)" 'a\x0ab\: FAILED open or read'

A=$(sha256sum <a | cut -c1-64)
is "JSON" "$(head -n 1 good | "$V" check --json)" \
    "{\"list\":\"-\",\"line\":1,\"file\":\"a\",\"verdict\":\"ok\",\"listed\":\"$A\",\"sha256\":\"$A\"}"
is "JSON of a missing file" "$("$V" check --json onlygone 2>err)" \
    "{\"list\":\"onlygone\",\"line\":1,\"file\":\"gone\",\"verdict\":\"missing\",\"listed\":\"$A\",\"sha256\":null}"
"$V" check good >/dev/full 2>err
is "a full disk is trouble" $? 2
tap_end
