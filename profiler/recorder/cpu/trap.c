/* SPDX-License-Identifier: MIT
 *
 * SIGTRAP, by which the kernel's events tick. A trap that does not come from our events does what it would do
 * without us. The program sees the action that it has set itself, and its handler is called by ours with
 * the mask and the stack that it has asked for. That stays so until the end, because a thread that sleeps in the
 * kernel may bring the trap of an event that was closed long ago.
 */
#include <stdatomic.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "recorder/cpu/ticks.h"
#include "recorder/recording/recording.h"
#include "recorder/system/kernel.h"
#include "recorder/system/signal.h"

enum { CODE_OF_EVENT = 6 /* TRAP_PERF */ };

static void (*on_tick)(const void *ucontext);
static bool is_taken;
static struct sigaction behind; /* what the program has set */
static const char mark;         /* its address tells our events' traps from others */

uint64_t incstack__trap_mark(void)
{
	return (uintptr_t)&mark;
}

/* libc's siginfo_t does not name the data of an event, which follow the address. */
static bool is_event(const siginfo_t *info)
{
	uint64_t data;

	memcpy(&data, (const char *)&info->si_addr + sizeof(info->si_addr), sizeof(data));
	return info->si_code == CODE_OF_EVENT && data == incstack__trap_mark();
}

/* The trap comes again when our handler returns, and ends the process where it came. */
static void act_by_default(siginfo_t *info)
{
	const struct incstack__signal_action none = {0};

	incstack__signal_action(SIGTRAP, &none, NULL);
	incstack__kernel_call(SYS_rt_tgsigqueueinfo, incstack__kernel_getpid(),
			      incstack__kernel_gettid(), SIGTRAP, info);
}

static bool is_ignored(const siginfo_t *info)
{
	return behind.sa_handler == SIG_IGN && info->si_code <= 0;
}

static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction action = behind;

	if (is_ignored(info))
		return;
	if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
		act_by_default(info);
		return;
	}
	if ((action.sa_flags & (int)SA_RESETHAND) != 0)
		behind.sa_handler = SIG_DFL;
	action.sa_sigaction(number, info, context);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	const int saved = errno;

	if (is_event(info))
		on_tick(context);
	else
		pass_on(number, info, context);
	errno = saved;
}

static bool set_action(uint64_t flags, uint64_t mask)
{
	const struct incstack__signal_action ours = {
		.handler = on_trap,
		.flags = flags | SA_SIGINFO | INCSTACK__SIGNAL_RESTORER,
		.restorer = incstack__signal_restorer(),
		.mask = mask,
	};

	return ours.restorer && incstack__signal_action(SIGTRAP, &ours, NULL) == 0;
}

static bool set_own_action(void)
{
	return set_action(SA_RESTART | SA_ONSTACK, INCSTACK__SIGNAL_OTHERS);
}

bool incstack__trap_take(void (*tick)(const void *ucontext))
{
	on_tick = tick;
	is_taken = set_own_action();
	return is_taken;
}

bool incstack__trap_is_ours(void)
{
	struct incstack__signal_action there;

	return incstack__signal_action(SIGTRAP, NULL, &there) == 0 && there.handler == on_trap;
}

static void set_behind(const struct sigaction *new)
{
	const int kept = SA_RESTART | SA_ONSTACK | SA_NODEFER;
	uint64_t mask;

	memcpy(&mask, &new->sa_mask, sizeof(mask));
	behind = *new;
	if (new->sa_handler == SIG_DFL)
		set_own_action();
	else
		set_action((uint64_t)(new->sa_flags &kept), mask);
}

/* A child of vfork has an action of its own, but shares the memory that says what the program has set. */
bool incstack__trap_action(const struct sigaction *new, struct sigaction *old)
{
	const struct sigaction before = behind;

	if (!is_taken || incstack__kernel_getpid() != incstack__recording.pid ||
	    !incstack__trap_is_ours())
		return false;
	if (new)
		set_behind(new);
	if (old)
		*old = before;
	return true;
}

void incstack__trap_drain(void)
{
	const uint64_t traps = INCSTACK__SIGNAL_BIT(SIGTRAP);
	const struct timespec now = {0};
	siginfo_t info;

	if (incstack__kernel_call(SYS_rt_sigtimedwait, &traps, &info, &now, sizeof(traps)) ==
		    SIGTRAP &&
	    !is_event(&info))
		incstack__kernel_call(SYS_rt_tgsigqueueinfo, incstack__kernel_getpid(),
				      incstack__kernel_gettid(), SIGTRAP, &info);
}

void incstack__trap_leave(void)
{
	const struct incstack__signal_action ignored = {
		.handler = (incstack__signal_handler *)(uintptr_t)SIG_IGN};

	if (is_taken && behind.sa_handler == SIG_IGN)
		incstack__signal_action(SIGTRAP, &ignored, NULL);
}
