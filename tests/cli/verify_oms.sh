#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bundles of OpenSSF Model Signing (tests/data/oms, oms-historic): every row of
# the tables of verdicts, changed trees, and what we sign ourselves.
. "$T/tap.sh"
V=$B/moe-verify D=$T/data/oms H=$T/data/oms-historic
tab=$(printf '\t')

# same GOT WANT WHAT
same() { is "$3" "$1" "$2"; }

# verdict BUNDLE TRUST MODEL [OPTION...]: the exit status.
verdict() {
    bundle=$1 trust=$2 model=$3
    shift 3
    case $trust in *.crt | *ca-cert.pem) by=--roots ;; *) by=--key ;; esac
    timeout 20 "$V" verify "$by" "$trust" --at 2026-06-01 "$@" "$bundle" "$model" >out 2>err
    echo $?
}

# said WANT STATUS: whether the verdict is what the table wants.
said() {
    case $1:$2 in accept:0 | refuse:1 | refuse:2 | either:[012]) return 0 ;; *) return 1 ;; esac
}

cp -r "$D/model-link" links
chmod -R u+w links
sh "$D/links.sh" links
bad=0 n=0
while IFS=$tab read -r file want reason model trust _; do
    [ "$file" != file ] || continue
    case $model in model-link) tree=links ;; *) tree=$D/$model ;; esac
    got=$(verdict "$D/$file" "$D/$trust" "$tree")
    n=$((n + 1))
    # BLAKE3 has no packaged C library: refused by name.
    case $file in
    valid/blake3.sig) grep -q 'blake3 is not supported' err && [ "$got" = 2 ] && continue ;;
    esac
    said "$want" "$got" || { bad=$((bad + 1)); echo "# $file: $got, not $want: $reason: $(cat err)"; }
done <"$D/verdicts.tsv"
same "$n bundles, wrong $bad" "144 bundles, wrong 0" "every row of the table"

# change TREE OP ARGUMENT [ARGUMENT]: a line of trees.tsv.
change() {
    f=$1/$3
    case $2 in
    rm) rm "$f" ;;
    add) mkdir -p "$(dirname "$f")" && printf x >"$f" ;;
    flip) python3 -c 'import sys
p = sys.argv[1]; b = bytearray(open(p, "rb").read()); b[len(b) // 2] ^= 16; open(p, "wb").write(b)' "$f" ;;
    append) echo >>"$f" ;;
    truncate) : >"$f" ;;
    mkdir) mkdir -p "$f" ;;
    chmod) chmod 600 "$f" ;;
    rename | case) mv "$f" "$1/$4" ;;
    nfd) mv "$f" "$1/$(printf 'poids-e\314\201te\314\201.bin')" ;;
    link) mv "$f" "$1.kept" && ln -s "$PWD/$1.kept" "$f" ;;
    fifo) mkfifo "$f" ;;
    dirlink) ln -s a "$f" ;;
    hardlink) ln "$f" "$1/$4" ;;
    esac
}

bad=0 n=0
while IFS=$tab read -r op want reason _; do
    [ "$op" != op ] || continue
    rm -rf t
    cp -r "$D/model" t
    chmod -R u+w t
    verb=${op%% | *} rest=${op#* | }
    one=${rest%% | *} two=${rest#* | }
    change t "$verb" "$one" "$two"
    got=$(verdict "$D/valid/p256.sig" "$D/keys/p256.pub" t)
    n=$((n + 1))
    case $want:$got in
    accept:0 | refuse:1) ;;
    *) bad=$((bad + 1)); echo "# $op: $got, not $want: $reason: $(cat out err)" ;;
    esac
done <"$D/trees.tsv"
same "$n trees, wrong $bad" "22 trees, wrong 0" "every changed tree"

cp -r "$D/model" inside
chmod -R u+w inside
cp "$D/valid/inside.sig" inside/model.sig
same "$(verdict inside/model.sig "$D/keys/p256.pub" inside)" 0 "the bundle within the model"

for dir in v0.3.1-elliptic-key v1.0.0-certificate v1.1.0-certificate v1.1.0-elliptic-key; do
    model=$H/$dir trust=$H/keys/signing-key-pub.pem
    case $dir in v0*) model=$model/signme-1 ;; *certificate) trust=$H/keys/ca-cert.pem ;; esac
    same "$(verdict "$H/$dir/model.sig" "$trust" "$model" --ignore ignore-me)" 0 "$dir"
    same "$(verdict "$H/$dir/model.sig" "$D/keys/p384.pub" "$model" --ignore ignore-me | tr 2 1)" 1 \
        "$dir: another key"
done
same "$(verdict "$H/v1.1.0-sigstore/model.sig" "$D/keys/p256.pub" "$H/v1.1.0-sigstore")" 2 \
    "keyless bundles are refused"

# Several signers.
two=$D/other/p256-p384.sig
"$V" verify -q --key "monitor=$D/keys/p256.pub" --key "publisher=$D/keys/p384.pub" --require 2 \
    "$two" "$D/small" 2>err
same $? 0 "two of two"
"$V" verify -q --key "monitor=$D/keys/p256.pub" --key "publisher=$D/keys/p384.pub" --require 2 \
    "$D/other/same-twice.sig" "$D/small" 2>err
same $? 1 "one signature twice is not two"
"$V" verify -q --key "$D/keys/p256.pub" --key "again=$D/keys/p256.pub" --require 2 "$two" \
    "$D/small" 2>err
same $? 2 "one key twice is a mistake"

# What we sign.
cp "$D"/keys/*.key .
chmod 600 ./*.key
for k in p256 p384 p521; do
    "$V" sign --key "$k.key" -o "$k.sig" "$D/model" && [ "$(verdict "$k.sig" "$D/keys/$k.pub" "$D/model")" = 0 ]
    same $? 0 "$k: signed and verified"
done
for alg in ED25519 SM2; do
    openssl genpkey -algorithm "$alg" -out own.key 2>err
    openssl pkey -in own.key -pubout -out own.pub
    chmod 600 own.key
    "$V" sign --key own.key --force -o own.sig "$D/model" && [ "$(verdict own.sig own.pub "$D/model")" = 0 ]
    same $? 0 "$alg: signed and verified"
done
"$V" sign --key leaf.key --certs "$D/keys/leaf.crt" -o c.sig "$D/small"
same $?:"$(verdict c.sig "$D/keys/root.crt" "$D/small")" 0:1 "a chain without its middle"
cat "$D/keys/leaf.crt" "$D/keys/int.crt" >chain.pem
"$V" sign --key leaf.key --certs chain.pem --force -o c.sig "$D/small"
same $?:"$(verdict c.sig "$D/keys/root.crt" "$D/small")" 0:0 "a chain"
"$V" sign --key p384.key --add p256.sig -o both.sig "$D/model" &&
    "$V" verify -q --key "$D/keys/p256.pub" --key "$D/keys/p384.pub" --require 2 both.sig "$D/model"
same $? 0 "a second signer"
"$V" sign --key p384.key --add p256.sig -o no.sig t >out 2>err
same "$?:$(test -e no.sig && echo there)" 1: "a second signer does not sign another tree"
"$V" sign --key p256.key -o inside/own.sig --force inside &&
    [ "$(verdict inside/own.sig "$D/keys/p256.pub" inside)" = 0 ]
same $? 0 "an output within the model"
chmod 644 p256.key
"$V" sign --key p256.key -o no.sig "$D/small" 2>err
same "$?:$(grep -c 'others than its owner' err)" 2:1 "a key that others may read"
openssl pkey -in p384.key -aes256 -passout pass:secret -out locked.key
printf 'secret\n' >word
chmod 600 locked.key word
"$V" sign --key locked.key --pass word -o l.sig "$D/small" && [ "$(verdict l.sig "$D/keys/p384.pub" "$D/small")" = 0 ]
same $? 0 "an encrypted key"
echo wrong >word
"$V" sign --key locked.key --pass word -o no.sig "$D/small" 2>err
same $? 2 "another pass phrase"
tap_end
