/* SPDX-License-Identifier: Apache-2.0 */
/* The processor as a device. */
#ifndef MOE_ENGINE_BACKEND_CPU_H
#define MOE_ENGINE_BACKEND_CPU_H

#include "common/base/pool.h"
#include "common/engine/backend.h"

/* pool is borrowed (NULL: the calling thread alone) and used by one caller at a time. */
int moe_backend_cpu_new(struct moe_pool *pool, struct moe_backend **out, struct moe_err *e);

#endif
