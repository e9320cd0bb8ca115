# SPDX-License-Identifier: Apache-2.0
# To be sourced by tests: `model NAME` prints the directory of golden model NAME
# with its weights, which are made when they are not there yet. Needs B and T.
model() {
    model_dir=$B/tests/models/$1
    if ! cmp -s "$T/data/models/$1/weights.json" "$model_dir/.made-from"; then
        mkdir -p "$B/tests/models" || return
        model_tmp=$model_dir.$$
        rm -rf "$model_tmp"
        "$B/tests/tools/golden_model" "$T/data/models/$1" "$model_tmp" || return
        cp "$T/data/models/$1/weights.json" "$model_tmp/.made-from" || return
        rm -rf "$model_dir" && mv -T "$model_tmp" "$model_dir" || return
    fi
    echo "$model_dir"
}
