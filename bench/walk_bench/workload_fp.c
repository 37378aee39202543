/* SPDX-License-Identifier: MIT
 *
 * The workload, compiled with frame pointers.
 */
#define RUN workload_run_fp
#include "workload_body.h"
