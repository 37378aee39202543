/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the speedscope reader.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_SPEEDSCOPE
#include "profile_fuzz.h"
