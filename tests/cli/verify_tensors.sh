#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Digests of tensors: those that the golden data has, for safetensors files,
# directories, streams and GGUF; check of their lists.
. "$T/tap.sh"
. "$T/models.sh"
V=$B/moe-verify
tab=$(printf '\t')

# "sha256 TAB tensor TAB dtype TAB shape" of weights.json, sorted.
golden() {
    sed -nE 's/.*"name": "([^"]*)", "dtype": "([^"]*)", "shape": (\[[^]]*\]).*"sha256": "([0-9a-f]{64})".*/\4\t\1\t\2\t\3/p' \
        "$1" | sed 's/, /,/g' | sort
}
for m in mixtral qwen3_moe gpt_oss_mxfp4 deepseek_v3_fp8; do
    d=$(model $m) && ln -s "$d" $m || exit 2
    status "$m" 0 "$V" sum --tensors $m
    cut -f1,3- out | sort >ours
    golden "$T/data/models/$m/weights.json" >theirs
    cmp ours theirs >why 2>&1
    ok "$m: digests, types and shapes of the golden data" $? why
    cp out $m.list
    status "$m: check" 0 "$V" check -q $m.list
    is "$m: says nothing" "$(cat out err)" ""
done
is "one line" "$(head -n 1 mixtral.list | tr '\t' ' ')" \
    "521096d1f0851e9d9a2a064b4da3933a222bd021a569296fc0c2bb78eabc5985 mixtral/model-00001-of-00003.safetensors model.embed_tokens.weight BF16 [640,128]"
for f in mixtral/*.safetensors; do "$V" sum --tensors "$f"; done | cmp - mixtral.list
ok "file by file it is the same" $?
"$V" sum -t -j 1 mixtral | cmp - mixtral.list
ok "and with one thread" $?
first=mixtral/model-00001-of-00003.safetensors
"$V" sum -t - <$first | sed "s|$tab-$tab|$tab$first$tab|" | cmp - "$(grep "$tab$first$tab" mixtral.list >l; echo l)"
ok "a stream has the same" $?
head -c 100000 $first | "$V" sum -t - >out 2>err
is "a stream that ends early is trouble" $? 2
ok "with the tensor's name" "$(grep -q '^moe-verify: .*model\.' err; echo $?)" err
sha256sum -c l >out 2>&1
is "sha256sum does not take tensors for files" $? 1

cp "$T/data/quant/gguf_file/qwen3_moe-cut-q8_0.gguf" m.gguf
status "GGUF" 0 "$V" sum --tensors m.gguf
cp out gguf.list
sed -nE 's/^ \["([^"]*)", "([^"]*)", (\[[^]]*\]), .*"([0-9a-f]{64})"\].*/\4\t\1\t\2\t\3/p' \
    "$T/data/quant/gguf_file/qwen3_moe-cut-q8_0.json" | sed 's/, /,/g' >theirs
cut -f1,3- gguf.list | cmp - theirs >why 2>&1
ok "GGUF: digests, types and shapes of the golden data" $? why
status "GGUF: check" 0 "$V" check gguf.list
is "a line of it" "$(sed -n 1p out)" "m.gguf: $(sed -n 1p gguf.list | cut -f3): OK"

# One bit of one tensor; a tensor of another type; one that is not there.
cp $first w.safetensors
"$V" sum -t w.safetensors >w.list
printf '\377' | dd of=w.safetensors bs=1 seek=50000 conv=notrunc 2>err
status "a changed byte: no" 1 "$V" check -q w.list
is "one tensor has it" "$(cat out)" "w.safetensors: model.embed_tokens.weight: FAILED"
cp $first w.safetensors
sed "s/${tab}BF16${tab}\[640,128\]/${tab}F16${tab}[640,128]/" w.list >l
status "another type: no" 1 "$V" check -q l
is "and which" "$(head -n 1 err)" \
    "moe-verify: w.safetensors: model.embed_tokens.weight: is BF16 [640,128], listed as F16 [640,128]"
sed 's/\[640,128\]/[128,640]/' w.list >l
status "another shape: no" 1 "$V" check -q l
sed '1s/embed_tokens/embed_nothing/' w.list >l
status "a tensor that is not there: no" 1 "$V" check -q l
is "named" "$(cat out)" "w.safetensors: model.embed_nothing.weight: FAILED open or read"
status "passed over when asked to" 0 "$V" check -q --ignore-missing l
mv w.safetensors gone
status "a file that is not there: no" 1 "$V" check -q w.list
is "each of its lines" "$(wc -l <out)" "$(wc -l <w.list)"
head -c 1000 gone >w.safetensors
status "a file that is cut: trouble" 2 "$V" check -q w.list
: >w.safetensors
status "an empty file: trouble" 2 "$V" check -q w.list
status "and in sum" 2 "$V" sum -t w.safetensors
echo '{' >w.safetensors
status "no model at all" 2 "$V" sum -t w.safetensors
mkdir bare
status "a directory without weights" 2 "$V" sum -t bare

# Files and tensors in one list; a name that needs escapes.
cp $first "odd${tab}na\\me"
{ cat gguf.list; sha256sum m.gguf; "$V" sum -t "odd${tab}na\\me"; } >l
status "files and tensors in one list" 0 "$V" check -q l
is "all of them" "$("$V" check l | wc -l)" "$(wc -l <l)"
is "the name is escaped" "$(sed -n '$p' l | cut -f2)" 'odd\tna\\me'
is "JSON" "$("$V" sum -t --json m.gguf | head -n 1 | cut -d, -f1-3)" \
    "{\"file\":\"m.gguf\",\"tensor\":\"$(sed -n 1p gguf.list | cut -f3)\",\"dtype\":\"$(sed -n 1p gguf.list | cut -f4)\""
tap_end
