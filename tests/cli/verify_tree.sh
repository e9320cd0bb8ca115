#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trees and proofs: the root is Python's, whatever the files and threads; one
# tensor is proved from its bytes; a changed byte, another root, a cut or forged
# proof are not. fs-verity's digest is fsverity's.
. "$T/tap.sh"
. "$T/models.sh"
V=$B/moe-verify
d=$(model mixtral) && cp -r "$d" m || exit 2
status "a tree" 0 "$V" tree m
cp out tree
root=$(sed -n '1s/.*"root":"\([0-9a-f]*\)".*/\1/p' tree)
is "a line for each tensor" "$(wc -l <tree)" "$(($("$V" sum -t m | wc -l) + 1))"
"$V" tree -j 1 m | cmp - tree
ok "whatever the threads" $?
if command -v python3 >why; then
    python3 - m >theirs <<'PY'
import glob, hashlib, json, struct, sys
def h(b): return hashlib.sha256(b).digest()
def mth(l):
    if not l: return h(b"")
    if len(l) == 1: return l[0]
    k = 1
    while 2 * k < len(l): k *= 2
    return h(b"\1" + mth(l[:k]) + mth(l[k:]))
rows = []
for f in glob.glob(sys.argv[1] + "/*.safetensors"):
    b = open(f, "rb").read()
    n = struct.unpack("<Q", b[:8])[0]
    for name, t in json.loads(b[8:8 + n]).items():
        if name == "__metadata__": continue
        x, y = t["data_offsets"]
        d = b[8 + n + x:8 + n + y]
        r = mth([h(b"\0" + d[i:i + (1 << 20)]) for i in range(0, len(d), 1 << 20)])
        shape = "[" + ",".join(map(str, t["shape"])) + "]"
        rows.append((name.encode(), b"\0".join([name.encode(), t["dtype"].encode(), shape.encode(),
            str(len(d)).encode(), r])))
print(mth([h(b"\0" + r) for _, r in sorted(rows)]).hex())
PY
    is "the root is Python's" "$root" "$(cat theirs)"
else
    skip "no python3"
fi
t=model.layers.0.block_sparse_moe.experts.1.w1.weight
grep -q "\"$t\"" tree || t=$(sed -n '5s/.*"tensor":"\([^"]*\)".*/\1/p' tree)
status "a proof" 0 "$V" prove tree "$t"
cp out proof
[ "$(wc -c <proof)" -le 1024 ]
ok "of 1 KiB at most" $?
status "holds" 0 "$V" prove --root "$root" proof m
is "says so" "$(cat out)" "$t: OK"
f=$(sed 's/.*"file":"\([^"]*\)".*/\1/' proof)
status "of the file too" 0 "$V" prove --root "$root" proof "m/$f"
status "not for another root" 1 "$V" prove --root "$(echo "$root" | tr 0-9a-f 1-9a-f0)" proof m
is "says so" "$(cat out)" "$t: FAILED"
sed 's/"index":\([0-9]*\)/"index":0/' proof >forged
status "not for another place" 1 "$V" prove --root "$root" forged m
sed 's/"path":"..../"path":"AAAA/' proof >forged
status "not with another path" 1 "$V" prove --root "$root" forged m
sed 's/"path":"[^"]*"/"path":""/' proof >forged
status "not without one" 1 "$V" prove --root "$root" forged m
sed 's/"file":"[^"]*"/"file":"..\/m\/x"/' proof >forged
status "not from outside" 2 "$V" prove --root "$root" forged m
sed 's/"path":"/"path":"*/' proof >forged
status "no path" 2 "$V" prove --root "$root" forged m
head -c 50 proof >forged
status "half a proof" 2 "$V" prove --root "$root" forged m
status "no root" 2 "$V" prove --root 12 proof m
status "no such tensor" 2 "$V" prove tree nothing
sed '3d' tree >other
status "a tree with a line less" 2 "$V" prove other "$t"
sed '3s/"bytes":/"bytes":1/' tree >other
status "a tree with another line" 2 "$V" prove other "$t"
at=$("$V" sum -t --json "m/$f" | grep -n "\"$t\"" | cut -d: -f1)
[ -n "$at" ] || exit 2
size=$(wc -c <"m/$f")
printf '\125' | dd of="m/$f" bs=1 seek=$((size - 3)) conv=notrunc 2>why
"$V" tree m >other
is "a changed byte: another root" "$(diff tree other | grep -c '^>')" 2
: >empty
head -c 5000 "$d/$f" >part
status "fs-verity" 0 "$V" tree --fsverity empty part
is "of nothing" "$(sed -n 1p out)" \
    "sha256:3d248ca542a24fc62d1c43b916eae5016878e2533c88238480b26128a1f1af95 empty"
if command -v fsverity >why; then
    fsverity digest empty part | cmp - out
    ok "as fsverity says" $?
fi
status "no tensors" 2 "$V" tree empty
status "nothing" 2 "$V" tree
tap_end
