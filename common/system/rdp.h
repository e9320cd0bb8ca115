/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What privacy a run of noisy averages leaves: Renyi differential privacy of the
 * Gaussian mechanism on a Poisson sample, add or remove one (Mironov, Talwar and
 * Zhang, "Renyi Differential Privacy of the Sampled Gaussian Mechanism", 2019),
 * at whole orders, and its epsilon (Balle et al., "Hypothesis Testing
 * Interpretations and Renyi Differential Privacy", 2020). An upper bound: exact
 * accounting of losses may find less.
 */
#ifndef MOE_SYSTEM_RDP_H
#define MOE_SYSTEM_RDP_H

#include "common/base/err.h"

#define MOE_RDP_MIN_ORDER 2
#define MOE_RDP_MAX_ORDER 256

/* Renyi divergence of one step: q in (0, 1] sampled, noise of sigma times the clip; order >= 2. */
double moe_rdp_step(double q, double sigma, int order);

struct moe_rdp {
    double epsilon;             /* never below 0 */
    int order;                  /* that gave it */
};

/*
 * The least epsilon over all orders after so many steps. Errors: MOE_EUSAGE (q
 * outside (0, 1], sigma <= 0, steps < 1, delta outside (0, 1)).
 */
int moe_rdp_epsilon(double q, double sigma, double steps, double delta, struct moe_rdp *out,
    struct moe_err *e);

#endif
