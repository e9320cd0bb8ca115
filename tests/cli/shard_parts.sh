#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of a size: GGUF parts as the gguf package makes them, and back; safetensors with an index,
# and back; what is refused.
. "$T/tap.sh"
S=$B/moe-shard D=$T/data/shard/parts K=$T/data/kjv-moe

"$S" split -q --max-tensors 3 "$D/whole.gguf" three
is 'GGUF: three parts' "$(ls three | tr '\n' ' ')" \
    'whole-00001-of-00003.gguf whole-00002-of-00003.gguf whole-00003-of-00003.gguf '
for k in 2 3; do
    cmp "three/whole-0000$k-of-00003.gguf" "$D/part-0000$k-of-00003.gguf" >log 2>&1
    ok "GGUF: part $k as the gguf package writes it" $? log
done
"$S" merge three/whole-00001-of-00003.gguf - 2>err | cmp - "$D/whole.gguf" >log 2>&1 && [ ! -s err ]
ok 'GGUF: and back, proved' $? log
"$S" merge "$D/part-00001-of-00003.gguf" back.gguf 2>err && cmp back.gguf "$D/whole.gguf" >log 2>&1
ok "GGUF: the package's parts to the package's whole" $? log
grep -q 'not proved' err
ok 'GGUF: which has no digest to prove it' $? err
"$S" split -q --max-size 9k "$D/whole.gguf" small
for f in small/*; do
    [ "$(stat -c %s "$f")" -gt 13000 ] && echo "$f"
done >large
[ "$(ls small | wc -l)" -eq 4 ] && [ ! -s large ] &&
    "$S" merge -q "$(ls small/*-00001-*)" - | cmp - "$D/whole.gguf" >log 2>&1
ok 'GGUF: by size, and back' $? log
"$S" split -n --json --max-size 9k "$D/whole.gguf" >plan
is 'GGUF: exact sizes before' "$(sed 's/.*"bytes":\([0-9]*\).*/\1/' plan | tr '\n' ' ')" \
    "$(stat -c %s small/* | tr '\n' ' ')"

"$S" split -q --max-size 4MB "$K" four
[ "$(ls four/*.safetensors | wc -l)" -eq 4 ] && [ -f four/tokenizer.json ] &&
    [ -z "$(find four -name '*.safetensors' -size +4010k)" ]
ok 'files of at most 4 MB, and what stood beside them' $?
"$S" split -q --max-size 1GB four one
"$B/moe-verify" sum -t one/model.safetensors >got
"$B/moe-verify" sum -t "$K/model.safetensors"  >want
sort want | cut -f1 >want.sums && sort got | cut -f1 | cmp -s - want.sums
ok 'and back: every tensor' $?
printf 'In the beginning' | "$B/moe-serve" --once -N 4 --temp 0 four >one.text
printf 'In the beginning' | "$B/moe-serve" --once -N 4 --temp 0 "$K" | cmp -s - one.text
ok 'the model runs from them' $?
"$S" split -n --max-size 4MB "$K" | awk '{ print $2 }' >plan
is 'exact sizes before' "$(tr '\n' ' ' <plan)" "$(stat -c %s four/model-*.safetensors four/*.index.json | tr '\n' ' ')"
cat "$K/model.safetensors" | "$S" split -q --max-size 4MB - piped && cmp piped/model-00002-of-00004.safetensors \
    four/model-00002-of-00004.safetensors
ok 'from a stream' $?

# A file for each of four unequal links: in proportion, nothing lost, nothing twice.
"$S" split -n --json --links 25G,25G,12.5G,3.1G "$K" >out
apart=$(sed -n 's/.*"imbalance":\([0-9.e-]*\).*/\1/p' out)
awk -v v="$apart" 'BEGIN { exit !(v > 0 && v < 0.02) }'
ok "links: $apart apart, of 0.02 at most" $?
sum() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" out | awk '{ n += $1 } END { print n }'; }
data=$("$B/moe-verify" sum -t "$K/model.safetensors" | awk -F'\t' '{ gsub(/[][]/, "", $5); n = 1
    c = split($5, d, ","); for (i = 1; i <= c; i++) n *= d[i]; all += 2 * n } END { print all }')
is 'links: shares are the whole' "$(sum share)" "$data"
is 'links: and so is the data' "$(sum data)" "$data"
"$S" split -q --links 25G,25G,12.5G,3.1G "$K" by.link
"$B/moe-verify" sum -t by.link/*.safetensors | cut -f1 | sort | cmp -s - want.sums
ok 'links: every tensor once' $?
printf 'In the beginning' | "$B/moe-serve" --once -N 4 --temp 0 by.link | cmp -s - one.text
ok 'links: the model runs' $?

refuse() {  # refuse WHAT PATTERN COMMAND...
    what=$1 pat=$2
    shift 2
    "$S" "$@" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err && [ ! -e new ]
    ok "refused: $what" $? err
}
refuse 'ranks and sizes' 'without ranks' split --tp 2 --max-size 1M "$K" new
refuse 'a part as a whole' 'part of 3' split --max-size 1M three/whole-00001-of-00003.gguf new
refuse 'links of a stream' 'stream' split --links 1,2 - new <"$K/model.safetensors"
refuse 'links of no speed' '--links' split --links 1,,2 "$K" new
refuse 'links of a GGUF' '--max-size' split --links 1,2 "$D/whole.gguf" new
refuse 'links and sizes' 'together' split --links 1,2 --max-size 1G "$K" new
refuse 'a GGUF for ranks' '--max-size' split --ep 2 "$D/whole.gguf" new
refuse 'tensors a file of safetensors' 'for GGUF' split --max-tensors 2 "$K" new
refuse 'a whole as a part' 'how many parts' merge "$D/whole.gguf" new
refuse 'not the first part' 'first part ends in' merge three/whole-00002-of-00003.gguf new
cp -r three gone && rm gone/whole-00003-of-00003.gguf
refuse 'a part that is missing' '00003-of-00003' merge gone/whole-00001-of-00003.gguf new
cp -r three twice && cp twice/whole-00002-of-00003.gguf twice/whole-00003-of-00003.gguf
refuse 'a part in place of another' 'not part 3 of 3' merge twice/whole-00001-of-00003.gguf new
cp -r three short && cp small/whole-00001-of-00004.gguf short/whole-00001-of-00003.gguf
refuse 'parts of another split' 'first part ends in' merge short/whole-00001-of-00003.gguf new
cp -r three flip && printf '\377' | dd of=flip/whole-00002-of-00003.gguf bs=1 seek=9000 conv=notrunc 2>log
"$S" merge flip/whole-00001-of-00003.gguf new 2>err
is 'a flipped byte: no' $? 1
[ "$(wc -l <err)" -eq 1 ] && [ ! -e new ]
ok 'a flipped byte: one line, and nothing appears' $? err
tap_end
