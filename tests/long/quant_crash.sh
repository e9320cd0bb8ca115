#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-quant is killed, or its disk fails, at every system call that makes its
# output, for a directory and for a file: afterwards the output is whole or
# absent, an earlier output is untouched, and a second run gives the right bytes
# and removes what the first left. Prints how many points were tried.
. "$T/tap.sh"
. "$T/models.sh"
command -v strace >/dev/null || { echo "no strace"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }
M=$(model mixtral) || exit 2
Q=$B/moe-quant
CALLS=openat,mkdir,mkdirat,write,pwrite64,fallocate,ftruncate,fsync,fdatasync,rename,renameat,renameat2,linkat,unlinkat
"$Q" -q "$M" want || exit 2
"$Q" -q "$M" want.safetensors || exit 2
"$Q" -q -f int8 "$M" old || exit 2
"$Q" -q -f int8 "$M" old.safetensors || exit 2

# same A B: equal files or directories
same() { diff -r "$1" "$2" >/dev/null 2>&1; }

# leftovers: anything in the folder but the output
leftovers() { find here -mindepth 1 -maxdepth 1 ! -name out ! -name out.safetensors; }

# matrix TARGET HOW: inject HOW at each occurrence of each call until none is left to hit
matrix() {
    target=$1 how=$2 before=$3 tried=0 bad=
    for call in $(echo $CALLS | tr ',' ' '); do
        n=1
        while :; do
            rm -rf here && mkdir here
            [ -z "$before" ] || cp -r "$before" "here/$target"
            strace -f -qq -e trace="$call" -e "inject=$call:$how:when=$n" -o trace \
                "$Q" -q -j1 ${before:+--force} "$M" "here/$target" >out 2>err
            rc=$?
            grep -q 'INJECTED\|killed by SIGKILL' trace || break
            tried=$((tried + 1))
            if [ -e "here/$target" ]; then
                same "here/$target" "want${target#out}" ||
                    { [ -n "$before" ] && same "here/$target" "$before"; } || bad="$bad $call:$n:content"
            else
                [ -z "$before" ] || bad="$bad $call:$n:lost"
            fi
            case $how in error=*)
                # A failed call is trouble unless the result is whole all the same.
                if [ $rc -eq 0 ]; then
                    same "here/$target" "want${target#out}" || bad="$bad $call:$n:silent"
                else
                    [ $rc -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] || bad="$bad $call:$n:status-$rc"
                    # Once the new output stands, what could not be removed waits for the next run.
                    [ -z "$(leftovers)" ] || same "here/$target" "want${target#out}" ||
                        bad="$bad $call:$n:leftovers"
                fi ;;
            esac
            "$Q" -q -j1 --force "$M" "here/$target" >out 2>err &&
                same "here/$target" "want${target#out}" || bad="$bad $call:$n:second-run"
            [ -z "$(leftovers)" ] || bad="$bad $call:$n:second-leftovers"
            n=$((n + 1))
            [ $n -le 400 ] || break
        done
    done
    [ $tried -ge 5 ] && [ -z "$bad" ]
    ok "$target, $how${before:+, over an earlier output}: $tried points, bad:${bad:- none}" $? err
}

for target in out out.safetensors; do
    matrix $target signal=KILL ""
    matrix $target signal=KILL "old${target#out}"
    matrix $target error=ENOSPC ""
    matrix $target error=EIO "old${target#out}"
done
tap_end
