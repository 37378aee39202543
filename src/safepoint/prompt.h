/* SPDX-License-Identifier: MIT
 *
 * How a thread asks the kernel to wake it without delay. The sampler's thread and the threads of
 * the agent for Java do this.
 */
#ifndef INCSTACK_SRC_SAFEPOINT_PROMPT_H
#define INCSTACK_SRC_SAFEPOINT_PROMPT_H

#include <stdbool.h>

/* Makes the calling thread wake up promptly, at the lowest real-time priority on request. Returns
 * whether it has that priority. A setting that the kernel refuses stays unchanged. Threads that the
 * caller creates inherit the precise timers (PR_SET_TIMERSLACK), not the short time slices. */
bool incstack__be_prompt(bool real_time);

#endif
