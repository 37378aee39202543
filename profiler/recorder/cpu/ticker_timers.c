/* SPDX-License-Identifier: MIT
 *
 * Ticks that come from timers alone. A timer of CPU time ticks as often as the kernel's clock at most.
 */
#include "recorder/cpu/ticks.h"

static void on_timer(uint64_t ticks, const void *ucontext)
{
	incstack__tick(ticks, INCSTACK__TICK_MERGED, ucontext);
}

static void do_nothing(void)
{
}

static void serve_nothing(struct incstack__record *record)
{
	(void)record;
}

static bool leave_action(const struct sigaction *new, struct sigaction *old)
{
	(void)new;
	(void)old;
	return false;
}

const struct incstack__ticker incstack__ticker_timers = {
	.on_timer = on_timer,
	.begin = do_nothing,
	.start = incstack__timer_start,
	.stop = incstack__timer_stop,
	.serve = serve_nothing,
	.leave = do_nothing,
	.restricted = do_nothing,
	.trap_action = leave_action,
	.trap_wait = do_nothing,
};
