/* SPDX-License-Identifier: MIT
 *
 * How a thread asks the kernel to wake it without delay.
 */
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "prompt.h"

#define RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK */
#define SLICE_NS UINT64_C(100000)

/* The kernel's struct sched_attr, first version. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool be_real_time(void)
{
	const struct scheduling real_time = {.size = sizeof(real_time),
					     .policy = SCHED_FIFO,
					     .flags = RESET_ON_FORK,
					     .priority = 1};
	return syscall(SYS_sched_setattr, 0, &real_time, 0) == 0;
}

/* From Linux 6.12 on, a thread that asks for short slices is scheduled sooner. */
static void ask_for_short_slices(void)
{
	struct scheduling now = {.size = sizeof(now)};
	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0 || now.policy != SCHED_OTHER)
		return;
	now.runtime = SLICE_NS;
	now.flags |= RESET_ON_FORK;
	syscall(SYS_sched_setattr, 0, &now, 0);
}

bool incstack__be_prompt(bool real_time)
{
	prctl(PR_SET_TIMERSLACK, 1UL); /* the default is 50 us, half of a short interval */
	if (real_time && be_real_time())
		return true;
	ask_for_short_slices();
	return false;
}
