/* SPDX-License-Identifier: MIT
 *
 * The CPU profile, as a kind of recording.
 */
#include <sys/syscall.h>

#include "recorder/events/events.h"
#include "recorder/output/output.h"
#include "ticks.h"

/* No block is recorded, so it does not matter which blocks an allocator has recorded. */
static uint64_t no_position(void)
{
	return 0;
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
};

const int incstack__timer_calls[] = {
	SYS_rt_sigreturn, SYS_timer_create, SYS_timer_delete, SYS_timer_settime, -1,
};

static void look_at_nothing(void)
{
}

void incstack__timer_note_lack(void)
{
	incstack__record_note(INCSTACK__NOTE_NO_TIMER);
}

const struct incstack__kind incstack__kind_cpu = {
	.number = INCSTACK__TRACEFILE_OF_CPU,
	.samples_in_handlers = true,
	.system_calls = incstack__timer_calls,
	.table = &cpu_table,
	.configured = look_at_nothing,
	.begin = incstack__serve_begin,
	.begin_thread = incstack__timer_start,
	.lack_record = incstack__timer_note_lack,
	.end_record = incstack__timer_stop,
	.stop = incstack__timers_stop,
	.cpu_ns = incstack__timer_cpu_ns,
};
