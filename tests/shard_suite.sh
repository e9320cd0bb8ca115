# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# To be sourced by tests of plans. Needs B and T.
L=$T/data/shard/load

# counts NAME: prints the file of a load matrix, unpacked here when it is packed.
counts() {
    if [ -f "$L/$1.tsv" ]; then
        echo "$L/$1.tsv"
    else
        [ -f "$1.tsv" ] || zstd -dq "$L/$1.tsv.zst" -o "$1.tsv" || return
        echo "$1.tsv"
    fi
}

# rows FILTER: plans each row of eplb.tsv that awk's FILTER takes; prints how many rows there
# were, how many are more than 0.1 % worse there than EPLB's, how many have an expert twice on
# a device, and the means of both. Plans that are not those of plans.tsv are left in other.out.
rows() {
    rm -f other.out
    awk -F'\t' "NR > 1 && ($1)" "$L/eplb.tsv" | while IFS="$(printf '\t')" read -r m s g n d _ _ theirs _; do
        f=$(counts "$m") || exit 1
        "$B/moe-shard" plan -q --json -g "$d" -s "$s" --nodes "$n" --groups "$g" --force -o one.plan "$f" >one.out
        sum=$(sed -n 's/.*"physical_to_logical_map"://p' one.plan | sha256sum | cut -d' ' -f1)
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$m" "$s" "$g" "$n" "$d" "$sum" | tee -a all.out |
            grep -qxFf - "$L/plans.tsv" || echo "$m $s $g $n $d" >>other.out
        tail -1 one.out |
            sed 's/.*"max_over_mean":\([0-9.e-]*\).*"duplicates":\([0-9]*\).*/\1 \2/' |
            while read -r ours twice; do echo "$m $s $g $d $ours $twice $theirs"; done
    done >rows.out
    awk '{ n++; ours += $5; theirs += $7; if ($5 > $7 * 1.001) { worse++; print > "worse.out" }
            if ($6 > 0) twice++ }
        END { printf "%d rows, %d worse, %d twice, mean %.4f of %.4f %s\n", n, worse, twice, ours / n,
            theirs / n, ours < theirs ? "better" : "not better" }' rows.out
}

# exact FILTER: layers of the rows of exact.tsv that awk's FILTER takes, and how many miss it.
exact() {
    awk -F'\t' "NR > 1 && ($1)" "$L/exact.tsv" | while IFS="$(printf '\t')" read -r m s d list; do
        f=$(counts "$m") || exit 1
        # shellcheck disable=SC2086 # a number a layer
        printf '%s\n' $list >want.out
        "$B/moe-shard" plan -q --json -g "$d" -s "$s" "$f" | grep -v '"layer":null' |
            sed 's/.*"max_over_mean":\([0-9.e-]*\).*/\1/' | paste - want.out
    done | awk '$2 != "-" { n++; if ($1 - $2 > 2e-8 || $2 - $1 > 2e-8) bad++ }
        END { printf "%d layers, %d missed\n", n, bad }'
}
