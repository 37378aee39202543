/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of the folded reader.
 */
#define FUZZ_FORMAT INCSTACK_FORMAT_FOLDED
#include "profile_fuzz.h"
