/* SPDX-License-Identifier: MIT
 *
 * Looks like a library built by GraalVM native-image that exports only its own functions. The
 * image heap is a section of its own.
 */
#include "collect.h"

int image_heap[64] __attribute__((section(".svm_heap"))) = {1};
