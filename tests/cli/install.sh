#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install and uninstall in a staging folder; a program built against what was installed.
n=0
ok() {
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; [ ! -f out ] || sed 's/^/# /' out; fi
}
mode=$(basename "$B")
dest=$PWD/stage
prefix=/opt/moe
unset MAKEFLAGS MFLAGS MAKELEVEL

make -s -C "$ROOT" MODE="$mode" install DESTDIR="$dest" PREFIX=$prefix >out 2>&1
ok "install" $?
[ ! -s out ]
ok "install -s says nothing" $?
programs=$(cd "$ROOT/cmd" 2>/dev/null && echo moe-*)
for p in $programs; do
    [ -x "$dest$prefix/bin/$p" ] && [ -s "$dest$prefix/share/man/man1/$p.1" ] &&
        [ -s "$dest$prefix/share/bash-completion/completions/$p" ]
    ok "$p, its page and its completion are there" $?
done
[ -s "$dest$prefix/share/man/man7/moe.7" ] && [ -s "$dest$prefix/share/man/man3/libmoe.3" ]
ok "the pages of other sections" $?
[ "$(readlink "$dest$prefix/lib/libmoe.so")" = libmoe.so.0 ] && [ -f "$dest$prefix/lib/libmoe.so.0" ]
ok "the library and its links" $?

# The program of libmoe(3), against the installed headers and library.
sed -n '/^#include/,/^}/p' "$ROOT/man/libmoe.3" | sed 's/\\e/\\/g' >list.c
if [ "$mode" = release ] || [ "$mode" = debug ]; then
    flags=$(PKG_CONFIG_LIBDIR="$dest$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dest" \
        pkg-config --cflags --libs libmoe)
    # shellcheck disable=SC2086 # the flags are words
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -o list list.c $flags >out 2>&1
    ok "the program of libmoe(3) compiles" $?
    LD_LIBRARY_PATH="$dest$prefix/lib" ./list "$T/data/kjv-moe/model.safetensors" >names 2>out
    ok "and runs" $?
    grep -qx 'model.embed_tokens.weight' names && [ "$(sort -u names | wc -l)" -eq "$(wc -l <names)" ]
    ok "and lists the tensors" $?
    LD_LIBRARY_PATH="$dest$prefix/lib" ./list "$T/data/README.md" >names 2>out
    [ $? -eq 2 ] && [ ! -s names ] && [ "$(wc -l <out)" -eq 1 ]
    ok "and refuses what is no safetensors file, in one line" $?
    nm -D --defined-only "$dest$prefix/lib/libmoe.so" | awk '$2 != "A" && $3 !~ /^moe_(err|safet)_/' >out
    [ ! -s out ]
    ok "the library exports nothing else" $?
fi

mkdir -p "$dest$prefix/lib"
echo kept >"$dest$prefix/lib/other"
make -s -C "$ROOT" MODE="$mode" uninstall DESTDIR="$dest" PREFIX=$prefix >out 2>&1
ok "uninstall" $?
(cd "$dest" && find . ! -type d) >out
[ "$(cat out)" = ".$prefix/lib/other" ]
ok "only what others put there is left" $?
rm "$dest$prefix/lib/other"
make -s -C "$ROOT" MODE="$mode" uninstall DESTDIR="$dest" PREFIX=$prefix >out 2>&1
ok "uninstall again" $?
find "$dest" -mindepth 1 >out
[ ! -s out ]
ok "nothing is left" $?
echo "1..$n"
