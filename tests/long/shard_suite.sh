#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All 152 plans of the suite beside EPLB's, and every least possible that is known.
. "$T/tap.sh"
. "$T/shard_suite.sh"
rows 1 >out
grep -q '^152 rows, 0 worse, 0 twice.*[0-9] better' out
ok "rows of EPLB: $(cat out)" $? worse.out
[ ! -s other.out ]
ok 'and the plans are those that are kept' $? other.out
exact 1 >out
grep -q '^[1-9][0-9]* layers, 0 missed' out
ok "the least possible: $(cat out)" $?
tap_end
