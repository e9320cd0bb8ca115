#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-verify sum: operands, directories and what is in them, standard input,
# JSON, troubles.
. "$T/tap.sh"
V=$B/moe-verify
abc=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
none=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855

is "standard input" "$(printf abc | "$V" sum)" "$abc  -"
is "as -" "$(printf abc | "$V" sum -)" "$abc  -"
printf abc >a; : >b
is "in the order given" "$("$V" sum b a b)" "$none  b
$abc  a
$none  b"
is "from where standard input stands" "$( (dd bs=1 count=1 of=skip 2>err; "$V" sum) <a)" \
    "$(printf bc | sha256sum)"

mkdir -p d/z d/.git d/.cache d/.hidden
printf abc >d/x; printf 1 >d/z/y; printf 2 >d/z.a; printf 3 >d/.dot; : >d/.git/HEAD; : >d/.cache/c
printf 4 >d/.hidden/h
is "directories in order of name, .git and .cache left out" "$("$V" sum d | cut -c67-)" "d/.dot
d/.hidden/h
d/x
d/z/y
d/z.a"
is "one slash, whatever is given" "$("$V" sum d/z///)" "$(sha256sum d/z/y)"
is "several operands" "$("$V" sum a d/z a | cut -c67-)" "a
d/z/y
a"
mkfifo d/fifo
status "a pipe in a directory is left out" 0 timeout 10 "$V" sum d
is "with a word" "$(cat err)" "moe-verify: d/fifo: left out, not a regular file"
status "a pipe that is named is trouble" 2 timeout 10 "$V" sum d/fifo
is "and not waited for" "$(cat err)" "moe-verify: d/fifo: is not a regular file"
rm d/fifo

ln -s x d/inside
status "a link to a file of the directory is followed" 0 "$V" sum d
grep -q "^$abc  d/inside$" out
ok "and listed by its own name" $? out
ln -s ../a d/outside
status "one that leads out is trouble" 2 "$V" sum d
is "named" "$(cat err)" "moe-verify: d/outside: leads out of its directory"
grep -q "^$abc  d/x$" out
ok "the others are listed" $? out
rm d/outside; ln -s gone d/dangling
status "one that leads nowhere is trouble" 2 "$V" sum d
is "named as well" "$(cat err)" "moe-verify: d/dangling: a link that leads nowhere"
rm d/dangling; ln -s z d/zlink
status "a link to a directory is trouble" 2 "$V" sum d
is "and not entered" "$(cat err)" "moe-verify: d/zlink: a link to a directory"
ln -s a outer
is "a link that a person names is followed" "$("$V" sum outer)" "$abc  outer"

mkdir -p hub/snapshots/1 hub/blobs
printf abc >hub/blobs/$abc
ln -s ../../blobs/$abc hub/snapshots/1/model.safetensors
is "the layout of a Hugging Face cache" "$("$V" sum hub/snapshots/1)" \
    "$abc  hub/snapshots/1/model.safetensors"

status "a missing file is trouble" 2 "$V" sum a nothing b
is "named" "$(cat err)" "moe-verify: nothing: No such file or directory"
is "the others are listed" "$(cut -c67- out)" "a
b"
mkdir empty
status "an empty directory is trouble" 2 "$V" sum empty
is "named" "$(cat err)" "moe-verify: empty: no regular file beneath"
p=deep i=0
while [ $i -lt 70 ]; do p=$p/d i=$((i + 1)); done
mkdir -p $p
status "directories without end are trouble" 2 "$V" sum deep
grep -q "more than 64 directories deep" err
ok "named" $? err
[ "$(id -u)" -eq 0 ] && skip "root reads everything" || {
    : >secret; chmod 0 secret
    status "an unreadable file is trouble" 2 "$V" sum secret
}
"$V" sum a >/dev/full 2>err
is "a full disk is trouble" $? 2
is "with one line" "$(wc -l <err)" 1

is "JSON" "$("$V" sum --json a b)" "{\"file\":\"a\",\"bytes\":3,\"sha256\":\"$abc\"}
{\"file\":\"b\",\"bytes\":0,\"sha256\":\"$none\"}"
for wrong in '' 'summ' 'sum -t -z' 'sum --status' 'sum -j 0' 'check -t' 'sum --no-such'; do
    # shellcheck disable=SC2086 # words
    status "usage: moe-verify $wrong" 2 "$V" $wrong
    [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ]
    ok "one line on stderr" $? err
done
tap_end
