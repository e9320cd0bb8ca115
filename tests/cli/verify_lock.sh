#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Locks: what is pinned in which group, and what is said of each kind of drift.
. "$T/tap.sh"
V=$B/moe-verify
cp -r "$T/data/kjv-moe" m || exit 2
echo rows >data.txt
echo 'ctx: 4096' >serve.yaml
printf 'libc6\t2.36-9\nlibssl3 3.0.17-1\n' >packages
echo 'NVRM version: 1.2.3' >driver
status "a lock" 0 "$V" lock --packages packages --driver driver m data=data.txt engine=serve.yaml
cp out lock
is "groups" "$(sed -n 's/^{"group":"\([a-z]*\)".*/\1/p' lock | sort -u | tr '\n' ' ')" \
    "data driver engine packages tokenizer weights "
is "weights have sha256sum's digest" \
    "$(sed -n 's/.*"weights","name":"model.safetensors","value":"\([^"]*\)".*/\1/p' lock)" \
    "$(sha256sum m/model.safetensors | cut -d' ' -f1)"
status "holds" 0 "$V" lock check --packages packages --driver driver lock m
is "says nothing" "$(cat out err)" ""
cp packages p2 && sed -i 's/2.36-9/2.36-10/' p2 && echo 'new 1' >>p2
status "packages drift" 1 "$V" lock check --packages p2 --driver driver lock m
is "named" "$(cat out)" "packages: libc6: differs
packages: new: new"
status "without a list" 0 "$V" lock check --driver driver lock m
ok "packages are told of" "$(grep -q 'without --packages' err; echo $?)" err
echo 'NVRM version: 1.2.4' >d2
status "another driver" 1 "$V" lock check --packages packages --driver d2 lock m
is "named" "$(cat out)" "driver: version: differs"
cp -r m m2
printf 'x' | dd of=m2/model.safetensors bs=1 seek=100000 conv=notrunc 2>why
echo '{}' >m2/added_tokens.json
rm m2/config.json
echo more >>data.txt
rm serve.yaml
status "files drift" 1 "$V" lock check --packages packages --driver driver lock m2
is "named, with groups" "$(cat out)" "weights: model.safetensors: differs
tokenizer: added_tokens.json: new
engine: config.json: missing
engine: serve.yaml: missing
data: data.txt: differs"
sed '3d' lock >bad
status "a line less" 2 "$V" lock check bad m
sed 's/"weights"/"wights"/' lock >bad
status "no group" 2 "$V" lock check bad m
: >bad
status "an empty lock" 2 "$V" lock check bad m
status "no directory" 2 "$V" lock data.txt
status "no such group" 2 "$V" lock m x=data.txt
status "no such file" 2 "$V" lock m data=gone
echo word >p3
status "no packages" 2 "$V" lock --packages p3 m
mkdir empty
status "an empty directory" 2 "$V" lock empty
tap_end
