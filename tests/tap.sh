# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# To be sourced by tests: TAP lines from the shell.
tap_n=0 tap_bad=0

# ok WHAT STATUS [FILE shown on failure]
ok() {
    tap_n=$((tap_n + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $tap_n - $1"
    else
        tap_bad=$((tap_bad + 1))
        echo "not ok $tap_n - $1"
        [ -z "${3:-}" ] || sed 's/^/#   /' "$3" | head -20
    fi
}

# is WHAT GOT WANT
is() {
    [ "$2" = "$3" ]
    ok "$1" $?
    [ "$2" = "$3" ] || printf '#  got: %s\n# want: %s\n' "$2" "$3"
}

# status WHAT WANT COMMAND...: its exit status; its output is in out and err.
status() {
    tap_what=$1 tap_want=$2
    shift 2
    "$@" >out 2>err
    is "$tap_what" $? "$tap_want"
}

skip() {
    tap_n=$((tap_n + 1))
    echo "ok $tap_n - # SKIP $1"
}

tap_end() {
    echo "1..$tap_n"
    [ "$tap_bad" -eq 0 ]
}
