#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks of lint find the breaches they are for: each is seeded in a small tree of its own.
n=0
ok() {
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; sed 's/^/# /' out; fi
}
spdx='/* SPDX-License-Identifier: Apache-2.0 */'

# A tree that passes all three checks.
tree() {
    rm -rf tree
    mkdir -p tree/common/base tree/common/formats tree/common/engine tree/kernels tree/cmd/moe-x \
        tree/tests tree/scripts
    cp "$ROOT"/scripts/check-* tree/scripts
    for f in common/base/one common/formats/two common/engine/three cmd/moe-x/x_four; do
        printf '%s\nint moe_%s_f(void);\n' "$spdx" "${f##*/}" >"tree/$f.h"
        printf '%s\n#include "%s.h"\nint\nmoe_%s_f(void)\n{\n    return 1;\n}\n' "$spdx" "$f" "${f##*/}" >"tree/$f.c"
    done
    sed -i 's/moe_x_four/x_four/' tree/cmd/moe-x/*
    printf '%s\nint moe_kernels(void);\n' "$spdx" | tee tree/kernels/kernels.h >tree/kernels/kernels_init.h
    printf '%s\nint moe_two_p(void);\n' "$spdx" >tree/common/formats/two_part.h
}
compile() {    # compile FILE...
    for src in "$@"; do
        mkdir -p "tree/build/release/${src%/*}"
        (cd tree && ${CC:-cc} -O3 -fPIC -I. -w -c -o "build/release/${src%.c}.o" "$src") || return 1
    done
}

# finds CHECK WORDS FILE LINE...: with the lines added to FILE, CHECK fails and says WORDS.
finds() {
    check=$1 words=$2 file=$3
    shift 3
    tree
    printf '%s\n' "$@" >>"tree/$file"
    if [ "$check" = check-symbols ]; then compile "$file" >out 2>&1 || { ok "$words: compiles" 1; return; }; fi
    (unset B; tree/scripts/$check) >out 2>&1
    [ $? -eq 1 ] && grep -qF -- "$words" out && grep -q "^$file" out
    ok "$check: $words" $?
}

tree
compile common/base/one.c common/formats/two.c common/engine/three.c cmd/moe-x/x_four.c
for c in check-includes check-style check-symbols; do
    (unset B; tree/scripts/$c) >out 2>&1
    ok "$c passes a tree without a breach" $?
done

i='check-includes'
finds $i 'common/base may not include from common/formats' common/base/one.c '#include "common/formats/two.h"'
finds $i 'common/base may not include from kernels' common/base/one.c '#include "kernels/kernels.h"'
finds $i 'common/formats may not include from common/engine' common/formats/two.c '#include "common/engine/three.h"'
finds $i 'may not include from cmd/moe-x' common/engine/three.c '#include "cmd/moe-x/x_four.h"'
finds $i 'only kernels/kernels.h may be seen' common/formats/two.c '#include "kernels/kernels_init.h"'
finds $i 'is not a file seen from the root' common/base/one.c '#include "one.h"'
finds $i 'is private to common/formats' common/engine/three.c '#include "common/formats/two_part.h"'
tree
cp tree/common/base/one.c tree/kernels/one.c
(unset B; tree/scripts/$i) >out 2>&1
[ $? -eq 1 ] && grep -q '^one.c: the stem is not unique' out
ok "$i: a stem that is there twice" $?

s='check-style'
c=common/base/one.c
many=$(seq 900 | sed 's,.*,/**/,')
finds $s 'lines' $c "$many"
finds $s 'no SPDX line' scripts/new '#!/bin/sh'
finds $s 'blank at the end' $c 'int a; '
finds $s 'tab' $c "$(printf '\tint a;')"
finds $s 'carriage return' $c "$(printf 'int a;\r')"
finds $s 'longer than 100' $c "/* $(printf '%0100d' 0) */"
finds $s 'a path of one machine' $c '/* see /ho''me/me/x */'
finds $s 'a note to oneself' $c '/* TO''DO */'
finds $s 'a call we do without' $c 'int a(char *p) { return ato''i(p); }'
finds $s 'tests the build for an ISA' $c '#ifdef __AV''X2__' '#endif'
finds $s 'a flag that changes numbers' Makefile 'CFLAGS := -ffast-''math'

y='check-symbols'
finds $y 'other does not begin with the stem' $c 'int other(void) { return 1; }'
finds $y 'calls printf' $c '#include <stdio.h>' 'void moe_one_p(int i) { printf("%d", i); }'
finds $y 'calls exit' $c '#include <stdlib.h>' 'void moe_one_p(int i) { exit(i); }'
finds $y 'calls getenv' $c '#include <stdlib.h>' 'char *moe_one_p(void) { return getenv("A"); }'
finds $y 'calls strc''py' cmd/moe-x/x_four.c '#include <string.h>' \
    'void x_four_p(char *a, char *b) { strc''py(a, b); }'
finds $y 'count is a mutable variable' $c 'static int count;' 'int moe_one_n(void) { return count++; }'
finds $y 'uses ymm or zmm' $c '__attribute__((target("avx2"))) void' \
    'moe_one_v(float *p, float *q) { for (int i = 0; i < 64; i++) p[i] *= q[i]; }'
echo "1..$n"
