#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What goes into a store comes out again, byte for byte: odd safetensors files,
# directories, GGUF files, streams; what is the same is stored once.
. "$T/tap.sh"
. "$T/models.sh"
C=$B/moe-ckpt
D=$T/data/safetensors
status "init" 0 "$C" init S
status "init twice" 2 "$C" init S
ok "is told" "$(grep -q 'is a store already' err; echo $?)" err
status "an empty store has no latest" 2 "$C" cat S
ok "is told" "$(grep -q 'holds no save' err; echo $?)" err

# Every file that is read comes back; every file that is not is refused, and leaves nothing.
good=0 refused=0 wrong=
sed 1d "$D/verdicts.tsv" >verdicts
while read -r f verdict _; do
    before=$(cat S/refs/latest 2>/dev/null)
    "$C" save -q --time 1 S "$D/$f" >id 2>err
    rc=$?
    case $verdict:$rc in
    valid:0 | either:0)
        good=$((good + 1))
        "$C" cat "S@$(cat id)" >back 2>err && cmp -s back "$D/$f" || wrong="$wrong $f"
        if "$B/moe-verify" sum -t "$D/$f" >list 2>err; then
            [ "$("$C" show -t "S@$(cat id)" | cut -f1,3)" = "$(cut -f1,3 list)" ] ||
                wrong="$wrong $f:show"
        fi ;;
    invalid:2 | either:2)
        refused=$((refused + 1))
        [ "$(wc -l <err)" -eq 1 ] && [ "$(cat S/refs/latest 2>/dev/null)" = "$before" ] ||
            wrong="$wrong $f" ;;
    *) wrong="$wrong $f=$rc" ;;
    esac
done <verdicts
[ $good -ge 20 ] && [ $refused -ge 55 ] && [ -z "$wrong" ]
ok "$good odd files come back, $refused malformed ones are refused, wrong:${wrong:- none}" $?
status "all of it is whole" 0 "$C" fsck -q S

# A directory of several files, twice, with one tensor changed.
made=$(model mixtral) || exit 2
cp -r "$made" m && rm -f m/.made-from
M=$PWD/m
status "init" 0 "$C" init R
status "a directory" 0 "$C" save -q -m step=10 -m loss=2.5 R "$M"
is "its number" "$(cat out)" 1
status "load" 0 "$C" load -q R@1 back1
ok "is the same" "$(diff -r "$M" back1 >why; echo $?)" why
status "load over it" 2 "$C" load -q R@1 back1
status "load over it by force" 0 "$C" load -q --force R@1 back1
before=$(du -sb R/packs | cut -f1)
status "again" 0 "$C" save -q --json R "$M"
ok "nothing is written" "$(grep -q '"written":0,' out; echo $?)" out
is "no pack has grown" "$(du -sb R/packs | cut -f1)" "$before"
cp -r "$M" changed
w=$(find changed -name '*.safetensors' | sort | head -1)
printf 'xyz' | dd of="$w" bs=1 seek=$(($(stat -c %s "$w") - 3)) conv=notrunc 2>why
status "one tensor is another" 0 "$C" save -q --json -t other R changed
ok "a little is written" "$(sed 's/.*"written":\([0-9]*\).*/\1/' out | { read -r n &&
    [ "$n" -gt 0 ] && [ "$n" -lt 200000 ]; }; echo $?)" out
status "load by a tag" 0 "$C" load -q R@other back3
ok "is the same" "$(diff -r changed back3 >why; echo $?)" why
status "the first is as it was" 0 "$C" load -q R@1 back1b
ok "is the same" "$(diff -r "$M" back1b >why; echo $?)" why
status "diff of the same" 0 "$C" diff R@1 R@2
is "says nothing" "$(cat out)" ""
status "diff" 1 "$C" diff R@1 R@3
t=$("$C" show -t R@3 | grep "$(printf '\t')${w#*/}" | tail -1 | cut -f2,3 | sed 's/\t/: /')
is "names the tensor" "$(cat out)" "$t: differs"
status "diff of a stream" 1 "$C" diff -q R@1 S
status "log" 0 "$C" log R
is "three saves" "$(cut -d' ' -f1 out | tr '\n' ' ')" "3 2 1 "
ok "with names and pairs" "$(grep -q '^3 .*(latest).*(other)' out && grep -q '^1 .*step=10.*loss=2.5' out; echo $?)" out
"$B/moe-verify" sum -t "$M" | sed "s|$M/||" | sort >want
(cd back1 && "$C" show -t ../R@1 | "$B/moe-verify" check -q) >out 2>err
ok "show lists what moe-verify checks" $? err
ok "the digests are moe-verify's" "$("$C" show -t R@1 | cut -f1 | sort >a; cut -f1 want | sort | cmp -s - a; echo $?)" a

# One tensor, one file, one stream.
t=$("$C" show -t R@1 | tail -1 | cut -f3)
sum=$("$C" show -t R@1 | tail -1 | cut -f1)
is "one tensor" "$("$C" get --raw "R@1:$t" | sha256sum | cut -d' ' -f1)" "$sum"
is "as safetensors" "$("$C" get "R@1:$t" | "$B/moe-verify" sum -t - | cut -f1,3)" "$sum$(printf '\t')$t"
status "no such tensor" 2 "$C" get R@1:none
ok "one file" "$("$C" cat R@1:config.json | cmp - "$M/config.json" >why; echo $?)" why
"$C" cat R@1 >stream
ok "a stream of all tensors" "$("$B/moe-verify" sum -t stream | cut -f1,3 | sort >a
    "$B/moe-verify" sum -t "$M" | cut -f1,3 | sort | cmp -s - a; echo $?)" a
"$B/moe-quant" -q "$M" want-q.safetensors && "$C" cat R@1 | "$B/moe-quant" -q - q.safetensors
ok "moe-quant reads it" $?
status "a stream is saved" 0 "$C" save -q R - <stream
ok "and comes back" "$("$C" cat R@4 | cmp - stream >why; echo $?)" why
head -c 100000 stream >short
status "a stream that is cut" 2 "$C" save -q R - <short
{ cat stream; echo; } >longer
status "a stream that goes on" 2 "$C" save -q R - <longer
ok "is told" "$(grep -q 'bytes after its last tensor' err; echo $?)" err

# Opaque files: empty, just a chunk, and more; standard input of unknown length.
mkdir odd odd/sub && : >odd/empty && head -c 1048576 stream >odd/one.gguf
head -c 1048577 stream >odd/two.bin && echo x >odd/sub/x && echo no >odd/.hidden
status "opaque files" 0 "$C" save -q R odd
status "load" 0 "$C" load -q R odd-back
rm odd/.hidden
ok "are the same" "$(diff -r odd odd-back >why; echo $?)" why
status "any bytes" 0 "$C" save -q --name any.bin R - <odd/two.bin
ok "come back" "$("$C" cat R | cmp - odd/two.bin >why; echo $?)" why
status "no bytes" 0 "$C" save -q --name none R - </dev/null
is "come back" "$("$C" cat R | wc -c)" 0
status "a tag that is taken" 2 "$C" save -q -t other R odd
status "an id that is taken" 2 "$C" save -q --id 2 R odd
status "an id of one's own" 0 "$C" save -q --id 70 R odd
is "is printed" "$(cat out)" 70
status "whole" 0 "$C" fsck R
status "whole, fast" 0 "$C" fsck --fast R
mkdir -p deep/a/b && echo x >deep/a/b/x
status "too deep" 2 "$C" save -q R deep
mkfifo odd/pipe
status "a pipe" 2 "$C" save -q R odd
is "threads make no difference" "$(rm -rf A Z; for s in A Z; do "$C" init $s; done
    "$C" save -q -j1 --time 5 A "$M"; "$C" save -q -j4 --time 5 Z "$M"; diff -r A Z && echo same)" "1
1
same"
tap_end
