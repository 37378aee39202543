/* SPDX-License-Identifier: MIT
 *
 * The CPU profile, as a kind of recording.
 */
#include <sys/syscall.h>

#include "recorder/events/events.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "ticks.h"

/* No block is recorded, so it does not matter which blocks an allocator has recorded. */
static uint64_t no_position(void)
{
	return 0;
}

static bool set_trap_action(const struct sigaction *new, struct sigaction *old)
{
	return incstack__ticker->trap_action(new, old);
}

static void wait_for_trap(void)
{
	incstack__ticker->trap_wait();
}

static const struct incstack__recorder cpu_table = {
	INCSTACK__IN_EVERY_TABLE,
	.on_alloc = incstack__serve_alloc,
	.on_free = incstack__serve_free,
	.on_new = incstack__serve_new,
	.position = no_position,
	.on_thread = incstack__serve_thread,
	.on_thread_begin = incstack__serve_thread,
	.on_switch = incstack__serve_switch,
	.on_shown = incstack__serve_shown,
	.on_exec = incstack__serve_exec,
	.on_trap_action = set_trap_action,
	.on_trap_wait = wait_for_trap,
};

/* Those of the timers. The handler also returns by a system call. */
static const int timer_calls[] = {
	SYS_rt_sigreturn, SYS_timer_create, SYS_timer_delete, SYS_timer_settime, -1,
};

static void begin(void)
{
	incstack__ticker_begin();
	incstack__serve_begin();
}

static void begin_thread(struct incstack__record *record)
{
	incstack__ticker->start(record);
}

static void end_record(struct incstack__record *record)
{
	incstack__ticker->stop(record);
}

static void stop(void)
{
	for (struct incstack__record *i = incstack__recording.threads; i; i = i->next)
		end_record(i);
}

static void restricted(void)
{
	incstack__ticker->restricted();
}

/* A thread without a record has no timer, so nobody samples its CPU time. */
static void note_lack(void)
{
	incstack__record_note(INCSTACK__NOTE_NO_TIMER);
}

const struct incstack__kind incstack__kind_cpu = {
	.number = INCSTACK__TRACEFILE_OF_CPU,
	.samples_in_handlers = true,
	.system_calls = timer_calls,
	.table = &cpu_table,
	.configured = incstack__ticker_choose,
	.begin = begin,
	.begin_thread = begin_thread,
	.lack_record = note_lack,
	.end_record = end_record,
	.stop = stop,
	.restricted = restricted,
	.cpu_ns = incstack__timer_cpu_ns,
};
