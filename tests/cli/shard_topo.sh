#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Topologies of nvidia-smi, NCCL and hwloc: the class of every pair, what is refused; our own lines
# are read back the same.
. "$T/tap.sh"
S=$B/moe-shard D=$T/data/shard/topo
tab=$(printf '\t')

: >links
sed 1d "$D/verdicts.tsv" | while IFS=$tab read -r f verdict what _; do
    "$S" topo "$D/$f" >out 2>err
    rc=$?
    case $verdict in
    accept)
        [ $rc -eq 0 ] && [ ! -s err ] && "$S" topo - <out >again && cmp -s out again
        good=$?
        grep "^link" out | awk -F'\t' -v f="$f" -v OFS='\t' '{ print f, $2, $3, $4 }' >>links ;;
    refuse) [ $rc -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "$f:" err; good=$? ;;
    *) [ $rc -eq 0 ] || [ $rc -eq 2 ]; good=$? ;;
    esac
    echo "$verdict $f: $what" >>files
    [ $good -eq 0 ] || echo "$verdict $f: $what: $rc $(cat err)" >>wrong
done
[ ! -f wrong ]
ok "$(wc -l <files) files, refused and accepted" $? wrong

# Which of two devices comes first is not of note.
ordered() { awk -F'\t' -v OFS='\t' '{ if ($2 > $3) print $1, $3, $2, $4; else print }' "$1" | sort; }
sed 1d "$D/links.tsv" >want
ordered want >want.sorted
ordered links | cmp - want.sorted >diff.out 2>&1
ok "$(wc -l <links) links" $? diff.out

# Bandwidths and where they are from.
link() { "$S" topo "$D/$1" | sed -n "s/^link$tab$2$tab$3$tab//p"; }
is 'NVLinks by NCCL' "$(link nccl_4gpu_part_nvlink.xml GPU0 GPU1)" "NV4${tab}48000000000${tab}NCCL's table, sm_86"
is 'NVLinks by hwloc' "$(link hwloc_4gpu_nvlink.xml GPU0 GPU1)" "NV4${tab}100000000000${tab}NVLinkBandwidth"
is 'PCIe' "$(link nccl_2gpu_pcie.xml GPU0 GPU1)" "PHB${tab}63015384615${tab}PCIe links of both"
is 'not known' "$(link smi_2gpu_sys.txt GPU0 GPU1)" "SYS$tab-$tab-"
is 'islands' "$("$S" topo "$D/hwloc_4gpu_nvlink.xml" | grep ^island)" "island${tab}GPU0,GPU1
island${tab}GPU2,GPU3"
is 'NUMA nodes' "$("$S" topo "$D/smi_4gpu_nv_2nic.txt" | awk -F'\t' '$1 == "device" { printf "%s ", $4 }')" '0 0 1 1 - - '

# Processors, and this machine.
is 'NUMA nodes as devices' "$("$S" topo --cpu "$D/hwloc_4numa.xml" | awk -F'\t' '$1 == "device" { printf "%s %s %s %s ", $2, $3, $4, $5 }')" \
    'CPU0 cpu 0 1073741824 CPU1 cpu 1 1073741824 CPU2 cpu 2 1073741824 CPU3 cpu 3 1073741824 '
is 'and what is between them' "$("$S" topo --cpu "$D/hwloc_4gpu_nvlink.xml" | awk -F'\t' '$1 == "link" && $2 $3 ~ /CPU/ { print $4 }' | sort | uniq -c | tr -s ' \n' ' ')" ' 4 PHB 5 SYS '
# (hwloc without its plugins: one of them leaks, which the sanitizer would tell.)
(HWLOC_PLUGINS_PATH=$PWD "$S" topo --cpu) >here && "$S" topo - <here | cmp -s - here
ok 'this machine' $? here
grep -q '^device.*cpu' here
ok 'has a processor' $? here

# Other accelerators, by description.
printf '# two of them\ndevice\tnpu0\tnpu\t-\t64GiB\t1\ndevice\tnpu1\tnpu\t1\t-\t0.5\nlink\tnpu1\tnpu0\tPHB\t20GB\tmeasured\n' >own
is 'a description' "$("$S" topo own | tr '\t\n' ' /')" \
    '# moe-topo 1/device npu0 npu - 68719476736 1/device npu1 npu 1 - 0.5/link npu0 npu1 PHB 20000000000 measured/'

cat >quad.yaml <<'END'
# four devices, NVLinks in pairs
devices:
  - {name: a, kind: npu, numa: 0, memory: 64GiB}
  - {name: b, kind: npu, numa: 0, memory: 64GiB, speed: 0.5}
  - {name: c, kind: npu}
links:
  - {between: [b, a], class: NV2, bandwidth: 50G, source: data sheet}
others: {class: SYS, bandwidth: 10000000000}
END
is 'YAML' "$("$S" topo quad.yaml | tr '\t\n' ' /')" "# moe-topo 1/device a npu 0 68719476736 1/$(
    )device b npu 0 68719476736 0.5/device c npu - - 1/link a b NV2 50000000000 data sheet/$(
    )link a c SYS 10000000000 -/link b c SYS 10000000000 -/island a,b/"

refuse() {  # refuse WHAT PATTERN
    "$S" topo bad >out 2>err
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$2" err
    ok "refused: $1" $? err
}
two="device${tab}a${tab}gpu${tab}-${tab}-${tab}1\ndevice${tab}b${tab}gpu${tab}-${tab}-${tab}1\n"
# shellcheck disable=SC2059 # escapes
{
    printf "$two" >bad; refuse 'no link' 'a and b'
    printf "${two}link\ta\tb\tPIX\t-\t-\nlink\tb\ta\tPIX\t-\t-\n" >bad; refuse 'a link twice' twice
    printf "${two}link\ta\ta\tPIX\t-\t-\n" >bad; refuse 'a link to itself' wanted
    printf "${two}link\ta\tb\tX\t-\t-\n" >bad; refuse 'no class' class
    printf "${two}link\ta\tb\tPIX\t0\t-\n" >bad; refuse 'no bandwidth' bandwidth
    printf "${two}wire\ta\tb\n" >bad; refuse 'another word' wire
    printf "${two}device\ta\tgpu\t-\t-\t1\n" >bad; refuse 'a device twice' 'two devices'
    printf "device\ta\tgpu\n" >bad; refuse 'a short line' wanted
}
yaml() {  # yaml WHAT PATTERN SED
    sed "$3" quad.yaml >bad
    refuse "YAML: $1" "$2"
}
yaml 'a pair that is not named' 'a and c' '/^others/d'
yaml 'a device that is none' 'bad:7:.*between' 's/\[b, a\]/[b, x]/'
yaml 'a device with itself' 'between' 's/\[b, a\]/[b, b]/'
yaml 'a pair twice' 'again' '7{p}'
yaml 'no class' 'class' 's/NV2/FAST/'
yaml 'a key that is none' 'colour' 's/numa: 0/colour: red/'
yaml 'a size that is none' 'memory' 's/64GiB/much/'
yaml 'no devices' 'devices' 's/^devices:$/devices: {}/;4,6d;/^  -/d'
yaml 'a device twice' 'two devices' 's/name: b/name: a/'
status 'no file' 2 "$S" topo nowhere
tap_end
