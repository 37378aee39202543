/* SPDX-License-Identifier: MIT
 *
 * The workload, compiled without frame pointers.
 */
#define RUN workload_run_nofp
#include "workload_body.h"
