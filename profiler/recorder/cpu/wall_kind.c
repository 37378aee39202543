/* SPDX-License-Identifier: MIT
 *
 * The wall-clock profile, as a kind of recording: the CPU profile, and the waits around calls of libc's functions.
 */
#include "recorder/events/events.h"
#include "recorder/output/output.h"
#include "ticks.h"

static uint64_t no_position(void)
{
	return 0;
}

static const struct incstack__recorder wall_table = {
	INCSTACK__IN_EVERY_TABLE,
	.on_alloc = incstack__serve_alloc,
	.on_free = incstack__serve_free,
	.on_new = incstack__serve_new,
	.position = no_position,
	.on_thread = incstack__serve_thread,
	.on_thread_begin = incstack__serve_thread,
	.on_switch = incstack__serve_switch,
	.on_shown = incstack__serve_shown,
	.on_wait = incstack__wait_begin,
	.on_waited = incstack__wait_end,
};

static void look_at_nothing(void)
{
}

static void begin(void)
{
	incstack__record_note(INCSTACK__NOTE_WALL_CALLS);
	incstack__serve_begin();
}

static void begin_thread(struct incstack__record *record)
{
	incstack__timer_start(record);
	record->begun = record->wait_end = incstack__tick_stamp();
	record->wait_cpu = record->cpu_start;
	incstack__parts_begin(&record->parts, (uint32_t)record->tid, incstack__recording.interval);
}

/* The time that the thread has lived. */
static uint64_t lived_ns(const struct incstack__record *record)
{
	const uint64_t now = incstack__tick_stamp();

	if (record->timer > 0 && now > record->begun)
		return now - record->begun;
	return record->cpu_used != 0 ? record->cpu_used : record->live.newest.cpu_ns;
}

static void end_record(struct incstack__record *record)
{
	const uint64_t lived = lived_ns(record);

	incstack__timer_stop(record);
	record->cpu_used = lived;
}

static void stop(void)
{
	for (struct incstack__record *i = incstack__recording.threads; i; i = i->next)
		end_record(i);
}

const struct incstack__kind incstack__kind_wall = {
	.number = INCSTACK__TRACEFILE_OF_CPU,
	.samples_in_handlers = true,
	.system_calls = incstack__timer_calls,
	.table = &wall_table,
	.configured = look_at_nothing,
	.begin = begin,
	.begin_thread = begin_thread,
	.lack_record = incstack__timer_note_lack,
	.end_record = end_record,
	.held = incstack__wait_held,
	.stop = stop,
	.cpu_ns = lived_ns,
};
