/* SPDX-License-Identifier: Apache-2.0 */
/* Divergences and epsilons of opacus, dp-accounting and a sum of 40 digits. */
#include <math.h>

#include "common/system/rdp.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define NEAR 1e-9

static double
number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static bool
near(double got, double want)
{
    return fabs(got - want) <= NEAR * fabs(want);
}

static void
rows(const json_t *golden)
{
    static const char *const peers[] = { "opacus_I", "dp_accounting_I" };
    json_t *r;
    size_t i;

    json_array_foreach(json_object_get(golden, "rows"), i, r) {
        const json_t *want = json_object_get(r, "exact_I");
        double epsilon = json_number_value(json_array_get(want, 0));
        struct moe_rdp got;
        struct moe_err e;
        bool beside = true;

        if (moe_rdp_epsilon(number(r, "q"), number(r, "sigma"), number(r, "steps"),
            number(r, "delta"), &got, &e) != 0) {
            tap_ok(false, "row %zu: %s", i, e.text);
            continue;
        }
        for (size_t k = 0; k < 2; k++) {
            double theirs = json_number_value(json_array_get(json_object_get(r, peers[k]), 0));

            beside = beside && (theirs <= 0 || epsilon <= 0 ||
                fabs(got.epsilon - theirs) <= 0.01 * theirs);
        }
        tap_ok(near(got.epsilon, epsilon) && (epsilon <= 0 ||
            got.order == (int)json_number_value(json_array_get(want, 1))) && beside,
            "q %g, sigma %g, %g steps, delta %g: %.6g", number(r, "q"), number(r, "sigma"),
            number(r, "steps"), number(r, "delta"), got.epsilon);
    }
}

static void
one_step(const json_t *golden)
{
    json_t *r;
    size_t i;

    json_array_foreach(json_object_get(golden, "rdp_one_step"), i, r) {
        double a = number(r, "order"), got;

        if (a != floor(a))
            continue;
        got = moe_rdp_step(number(r, "q"), number(r, "sigma"), (int)a);
        tap_ok(near(got, number(r, "rdp")), "order %g: %.9g", a, got);
    }
}

static void
refused(void)
{
    static const double bad[][4] = { { 0, 1, 1, 0.1 }, { 1.1, 1, 1, 0.1 }, { NAN, 1, 1, 0.1 },
        { 0.1, 0, 1, 0.1 }, { 0.1, -1, 1, 0.1 }, { 0.1, 1, 0, 0.1 }, { 0.1, 1, 1, 0 },
        { 0.1, 1, 1, 1 }, { 0.1, INFINITY, 1, 0.1 }, { 0.1, 1, NAN, 0.1 } };
    struct moe_rdp got;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        tap_is_int(moe_rdp_epsilon(bad[i][0], bad[i][1], bad[i][2], bad[i][3], &got, NULL),
            MOE_EUSAGE, "refused: %zu", i);
    tap_ok(moe_rdp_epsilon(1e-12, 1e6, 1, 0.5, &got, NULL) == 0 && got.epsilon == 0,
        "next to nothing is 0");
    tap_ok(moe_rdp_epsilon(0.5, 1e-3, 1e6, 1e-9, &got, NULL) == 0 && got.epsilon > 1e6,
        "no privacy is a large number");
}

int
main(void)
{
    json_t *golden = golden_json("ckpt/rdp.json");

    rows(golden);
    one_step(golden);
    refused();
    json_decref(golden);
    return tap_done();
}
