/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the pprof reader.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_PPROF
#include "profile_fuzz.h"
