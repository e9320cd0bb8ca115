# SPDX-License-Identifier: Apache-2.0
"""Epsilons of moe-ckpt avg beside dp-accounting's, at the same orders. TAP."""
import math
import os
import random
import subprocess
import sys

import dp_accounting as dp
from dp_accounting.rdp import RdpAccountant

CKPT = os.path.join(os.environ["B"], "moe-ckpt")
random.seed(20)
bad = 0
cases = [(1.0, 1.0, 1, 1e-5), (0.01, 1.1, 10000, 1e-5), (256 / 60000, 1.1, 14062, 1e-5)]
while len(cases) < 40:
    cases.append((10 ** random.uniform(-4, -0.1), math.exp(random.uniform(math.log(0.4), math.log(12))),
                  int(10 ** random.uniform(0, 5)), 10 ** random.uniform(-9, -3)))
for n, (q, sigma, steps, delta) in enumerate(cases, 1):
    out = subprocess.run([CKPT, "avg", "--noise", repr(sigma), "--sample-rate", repr(q), "--steps", str(steps),
                          "--delta", repr(delta)], capture_output=True, text=True, check=True).stdout
    got = float(out.split()[1])
    event = dp.GaussianDpEvent(sigma)
    accountant = RdpAccountant(list(range(2, 257)))
    accountant.compose(dp.PoissonSampledDpEvent(q, event) if q < 1 else event, steps)
    want = accountant.get_epsilon(delta)
    # Where delta alone covers the run, dp-accounting says 0.
    ok = abs(got - want) <= 0.01 * want or want == 0
    bad += not ok
    print("%s %d - q %.3g, sigma %.3g, %d steps, delta %.1g: %.6g, %.6g" % (
        "ok" if ok else "not ok", n, q, sigma, steps, delta, got, want))
print("1..%d" % len(cases))
sys.exit(bad > 0)
