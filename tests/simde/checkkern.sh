#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The AVX-512 kernels, made of AVX2, against their references.
[ -x "$B/tests/checkkern_simde" ] ||
    { echo "ok 1 - AVX-512 kernels # SKIP libsimde-dev was missing at build time"; exit 0; }
grep -qw fma /proc/cpuinfo ||
    { echo "ok 1 - AVX-512 kernels # SKIP this processor has no FMA"; exit 0; }
cd "$ROOT" && exec "$B/tests/checkkern_simde" --tier=avx512
