#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory as the engine takes it: weights, keys and values, working space, within 2 % each; ranks;
# what does not fit; what is refused.
. "$T/tap.sh"
. "$T/models.sh"
S=$B/moe-shard C=$B/tests/tools/mem_count K=$T/data/kjv-moe

# figure KEY: of the last object of JSON
figure() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" out | tail -1; }
near() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0.98 * b && a < 1.02 * b) }'; ok "$1: $2 of $3" $?; }
both() {    # both WHAT MODEL CONTEXT SEQUENCES ROWS
    "$S" mem --json -c "$3" --sequences "$4" -b "$5" "$2" >out
    # shellcheck disable=SC2046 # three numbers
    set -- "$1" $("$C" "$2" "$3" "$4" "$5")
    near "$1: weights" "$(figure weights)" "$2"
    is "$1: keys and values" "$(figure kv)" "$3"
    is "$1: working space" "$(figure activations)" "$4"
}
both kjv "$K" 4096 1 512
both 'kjv, three sequences of 100' "$K" 100 3 7
"$B/moe-quant" -q -f int4 -g 32 "$K" q4 && both 'kjv INT4' q4 1000 1 64
for f in mixtral qwen2_moe deepseek_v3 gpt_oss granitemoe; do
    m=$(model $f) && both $f "$m" 300 2 33
done

"$S" mem --json --tp 2 --ep 2 --pp 2 "$K" >out
is 'ranks' "$(wc -l <out)" 8
"$S" split -n --json --tp 2 --ep 2 --pp 2 "$K" | sed 's/.*"bytes":\([0-9]*\).*/\1/' >cut.bytes
sed 's/.*"weights":\([0-9]*\).*/\1/' out | paste - cut.bytes | awk '{ if ($2 <= $1 || $2 - $1 > 20000) bad++ } END { exit bad > 0 }'
ok 'weights of ranks: as split writes them, but for headers' $? out
"$S" mem --json --pp 2 "$K" >halves && "$S" mem --json "$K" >out
is 'stages: half the keys and values each' "$(sed 's/.*"kv":\([0-9]*\).*/\1/' halves | tr '\n' ' ')" \
    "$(($(figure kv) / 2)) $(($(figure kv) / 2)) "
"$S" mem --json --kv-type bf16 "$K" >halves
is 'half the bytes a value' "$(sed 's/.*"kv":\([0-9]*\).*/\1/' halves)" "$(($(figure kv) / 2))"
"$S" mem --json --reserve 0 "$K" >out
is 'no reserve: the sum' "$(figure total)" "$(($(figure weights) + $(figure kv) + $(figure activations)))"
total=$(figure total)
status 'what fits' 0 "$S" mem --reserve 0 --memory "$total" "$K"
status 'what does not' 1 "$S" mem --json --reserve 0 --memory "$((total - 10))" "$K"
is 'by how much' "$(figure short)" 10
printf 'device\ta\tgpu\t-\t1GiB\t1\ndevice\tb\tgpu\t-\t1MiB\t1\nlink\ta\tb\tPIX\t-\t-\n' >two
"$S" mem --topo two --tp 2 "$K" >out
is 'devices of a topology: one is too small' "$? $(grep -c short out) $(grep -c left out)" '1 1 1'

refuse() {  # refuse WHAT PATTERN OPTIONS...
    what=$1 pat=$2
    shift 2
    "$S" mem "$@" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$pat" err
    ok "refused: $what" $? err
}
refuse 'more ranks than devices' 'accelerators' --topo two --tp 4 "$K"
refuse 'a file without a configuration' 'config.json' "$K/model.safetensors"
refuse 'memory twice' 'do not go together' --memory 1G --topo two "$K"
refuse 'ranks that do not divide' 'legal' --tp 3 "$K"
sed 's/1GiB/-/' two >unknown
refuse 'memory that is not known' 'memory of a' --topo unknown --tp 2 "$K"
refuse 'no context' 'number' -c 0 "$K"
tap_end
