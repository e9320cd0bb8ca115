#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant --policy: who gets what, and each way a policy can be wrong. Numbers
# are those of the list of what breaks in other programs.
. "$T/tap.sh"
. "$T/models.sh"
q2=$(model qwen2_moe) q3=$(model qwen3_moe) ds=$(model deepseek_v3)

plan() { "$B/moe-quant" -n "$@" x 2>err; }
rules() { printf 'rules:\n%s\n' "$1" >p.yaml; }
bad() { # bad WHAT WORDS RULES [MODEL] [OPTIONS]
    rules "$3"
    # shellcheck disable=SC2086
    status "$1" 2 "$B/moe-quant" -n --policy p.yaml ${5:-} "${4:-$q3}" x
    grep -q -- "$2" err
    ok "$1: told" $? err
}

# Defaults.
plan "$q2" >out
grep -q '^expert .* int4-g' out && grep -q '^shared .* int8-g' out && grep -q '^attention .* kept' out
ok "defaults by role" $? out
plan --shared keep "$q2" | grep -q '^shared .* kept'
ok "--shared keep" $?
plan -f fp8-block "$q2" | grep -q '^shared .* fp8-block'
ok "8-bit formats are for shared experts too" $?

# Rules, first match first.
rules '  - {match: "model.layers.0.*", role: expert, format: int8, group: 64}
  - {match: "re:.*\\.experts\\.\\d+\\..*", format: mxfp4}
  - {role: attention, format: fp8}'
plan --policy p.yaml "$q3" >out
grep -q '^expert .*int8-g64 ' out && grep -q '^expert .*mxfp4 ' out &&
    grep -q '^attention .*fp8 ' out
ok "three rules" $? out
"$B/moe-quant" -q --policy p.yaml "$q3" dst
grep -q '"format": "mixed-precision"' dst/config.json
ok "several formats are told in one configuration" $?
is "with a group each" "$(grep -c '"group_[0-9]": {' dst/config.json)" 3

# What is wrong.
bad '17: a glob that matches nothing' 'p.yaml:2:.* the rule matches 0 matrices' \
    '  - {match: "model.layers.9.*", format: int8}'
bad '17: a name without *' 'stands for itself alone' '  - {match: "mlp.experts", format: int8}'
bad '17: an expression for a part of the name' 'the rule matches 0' \
    '  - {match: "re:mlp.gate", format: keep}'
bad '5: a router' 'would quantise model.layers.0.mlp.gate, a router' \
    '  - {match: "*.mlp.gate", format: int8}'
rules '  - {match: "*.mlp.gate", format: int8}'
plan --policy p.yaml --force-router "$q3" | grep -q '^router .*int8-g'
ok '5: a router by force' $?
rules '  - {match: "*.mlp.gate*", role: router, format: keep}'
status '17: mlp.gate is not gate_proj' 0 plan --policy p.yaml "$q3"
bad 'experts of two kinds' 'are loaded as one module and must have one scheme' \
    '  - {match: "*.experts.3.*", format: int8}'
bad 'projections of two kinds' 'gate_proj (int4-g128) and .*down_proj (int8-g128) are loaded' \
    '  - {match: "*.experts.*.down_proj", format: int8}'
bad 'q apart from k' 'q_proj (fp8) and .*k_proj.weight (kept)' \
    '  - {match: "*.q_proj", format: fp8}'
bad 'q_a apart from kv_a' 'loaded as one module' '  - {match: "*.q_a_proj", format: fp8}' "$ds"
bad 'a format' 'p.yaml:2:.*there is no format int5' '  - {role: expert, format: int5}'
bad 'a role' 'there is no role experts' '  - {role: experts, format: int8}'
bad 'a key' 'grp' '  - {role: expert, format: int8, grp: 1}'
bad 'a group' 'group must be 32, 64, 128 or channel' '  - {role: expert, format: int8, group: 48}'
bad 'a group of what has none' 'has no group' '  - {role: expert, format: fp8, group: 64}'
bad 'zero points of what has none' 'no zero points' '  - {role: expert, format: fp8, asym: true}'
bad 'an expression' 'expression (: ' '  - {match: "re:(", format: int8}'
bad 'an expression that takes long' 'takes too long' \
    '  - {match: "re:(.*)*(.*)*(.*)*(.*)*x", format: int8}'
bad 'no target' 'needs match or role' '  - {format: int8}'
bad 'no format' 'needs format' '  - {role: expert}'
bad 'no rules' 'rules must be a list' '  {}'
bad 'DeepSeek form beside another' 'cannot be told in one' '  - {role: attention, format: fp8}' \
    "$ds" '-f fp8-deepseek'
printf '[]\n' >p.yaml
status 'no mapping' 2 "$B/moe-quant" -n --policy p.yaml "$q3" x

# 7: groups that do not divide.
"$B/tests/tools/st" synth odd 1 2 256 160 plain
bad '7: a group that does not divide' 'down_proj.weight: 160 columns .* 64; 32 would fit' \
    '  - {role: expert, format: int4, group: 64}' odd
tap_end
