/* SPDX-License-Identifier: MIT
 *
 * The CPU profile, as a kind of recording.
 */
#include <sys/syscall.h>

#include "recorder/events/events.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "ticks.h"

uint64_t incstack__cpu_position(void)
{
	return 0;
}

bool incstack__cpu_trap_action(const struct sigaction *new, struct sigaction *old)
{
	return incstack__ticker->trap_action(new, old);
}

void incstack__cpu_trap_wait(void)
{
	incstack__ticker->trap_wait();
}

static const struct incstack__recorder cpu_table = {
	INCSTACK__IN_EVERY_TABLE,
	INCSTACK__IN_CPU_TABLES,
};

const int incstack__cpu_calls[] = {
	SYS_rt_sigreturn, SYS_timer_create, SYS_timer_delete, SYS_timer_settime, -1,
};

void incstack__cpu_begin(void)
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

void incstack__cpu_restricted(void)
{
	incstack__ticker->restricted();
}

void incstack__cpu_lack_record(void)
{
	incstack__record_note(INCSTACK__NOTE_NO_TIMER);
}

const struct incstack__kind incstack__kind_cpu = {
	.number = INCSTACK__TRACEFILE_OF_CPU,
	.samples_in_handlers = true,
	.system_calls = incstack__cpu_calls,
	.table = &cpu_table,
	.configured = incstack__ticker_choose,
	.begin = incstack__cpu_begin,
	.begin_thread = begin_thread,
	.lack_record = incstack__cpu_lack_record,
	.end_record = end_record,
	.stop = stop,
	.restricted = incstack__cpu_restricted,
	.cpu_ns = incstack__timer_cpu_ns,
};
