#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# moe-ckpt is killed, or a system call fails, at every call by which save, drop,
# gc and tag change a store: afterwards it is whole, each save comes out as it
# went in, latest is the old or the new one, and the next run tidies up. Prints
# how many points were tried.
. "$T/tap.sh"
command -v strace >/dev/null || { echo "no strace"; exit 77; }
strace -o /dev/null true 2>/dev/null || { echo "strace may not trace here"; exit 77; }
C=$B/moe-ckpt
CALLS=openat,mkdirat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,linkat,unlinkat,close,fcntl

# Three saves: two of a kind, and one of other bytes that is dropped in some runs.
head -c 70000 /dev/urandom >a
head -c 60000 /dev/urandom >b
head -c 50000 /dev/urandom >c
"$C" init base && "$C" save -q --name f base a >id && "$C" save -q --name f base b >id &&
    "$C" tag base@1 one && "$C" save -q --name f base c >id || exit 2
head -c 40000 /dev/urandom >d
cp -r base dropped && "$C" drop dropped 2 >id || exit 2

# sound: what holds of the store `here` whatever has happened
sound() {
    "$C" fsck -q here >said 2>&1 || { echo fsck; return; }
    "$C" cat here@1 2>said | cmp -s - a || { echo save-1; return; }
    "$C" cat here@3 2>said | cmp -s - c || { echo save-3; return; }
    "$C" cat here 2>said >latest
    cmp -s latest c || cmp -s latest d || echo latest
}

# matrix NAME START HOW COMMAND...: inject HOW at each occurrence of each call
matrix() {
    what=$1 start=$2 how=$3 tried=0 bad=
    shift 3
    for call in $(echo $CALLS | tr ',' ' '); do
        n=1
        while :; do
            rm -rf here && cp -r "$start" here
            strace -f -qq -e trace="$call" -e "inject=$call:$how:when=$n" -o trace \
                "$C" "$@" >out 2>err
            rc=$?
            grep -q 'INJECTED\|killed by SIGKILL' trace || break
            n=$((n + 1))
            # The loader of libraries fails before the program begins.
            [ $rc -ne 127 ] || continue
            tried=$((tried + 1))
            why=$(sound)
            [ -z "$why" ] || bad="$bad $call:$((n - 1)):$why"
            case "$how" in error=*)
                [ $rc -eq 0 ] || { [ $rc -eq 2 ] && [ "$(wc -l <err)" -eq 1 ]; } ||
                    bad="$bad $call:$((n - 1)):status-$rc" ;;
            esac
            if [ $rc -eq 0 ] && [ "$what" = save ]; then
                "$C" cat here 2>said | cmp -s - d || bad="$bad $call:$((n - 1)):silent"
            fi
            # The next run goes through, and nothing is left over.
            [ "$what" != save ] || "$C" save -q --name f here d >said 2>&1 ||
                bad="$bad $call:$((n - 1)):second-run"
            "$C" gc --waste 1 here >said 2>&1 || bad="$bad $call:$((n - 1)):gc"
            [ -z "$(find here -name '*.part'; find here/trash -mindepth 1)" ] ||
                bad="$bad $call:$((n - 1)):leftovers"
            why=$(sound)
            [ -z "$why" ] || bad="$bad $call:$((n - 1)):after-$why"
            [ $n -le 300 ] || break
        done
    done
    [ $tried -ge 3 ] && [ -z "$bad" ]
    ok "$what, $how: $tried points, bad:${bad:- none}" $? err
}

matrix save base signal=KILL save -q -j1 --name f here d
matrix drop base signal=KILL drop here 2
matrix gc dropped signal=KILL gc --waste 1 here
matrix tag base signal=KILL tag here@3 three
matrix save base error=ENOSPC save -q -j1 --name f here d
matrix drop base error=EIO drop here 2
matrix gc dropped error=EIO gc --waste 1 here
matrix tag base error=EIO tag here@3 three
tap_end
