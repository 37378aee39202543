/* SPDX-License-Identifier: MIT
 *
 * The wall-clock profile, as a kind of recording: the CPU profile, and the waits around calls of libc's functions.
 */
#include "recorder/events/events.h"
#include "recorder/output/output.h"
#include "ticks.h"

static const struct incstack__recorder wall_table = {
	INCSTACK__IN_EVERY_TABLE,
	INCSTACK__IN_CPU_TABLES,
	.on_wait = incstack__wait_begin,
	.on_waited = incstack__wait_end,
};

static void begin(void)
{
	incstack__record_note(INCSTACK__NOTE_WALL_CALLS);
	incstack__cpu_begin();
}

static void begin_thread(struct incstack__record *record)
{
	incstack__ticker->start(record);
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

	incstack__ticker->stop(record);
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
	.system_calls = incstack__cpu_calls,
	.table = &wall_table,
	.configured = incstack__ticker_choose,
	.begin = begin,
	.begin_thread = begin_thread,
	.lack_record = incstack__cpu_lack_record,
	.end_record = end_record,
	.held = incstack__wait_held,
	.stop = stop,
	.restricted = incstack__cpu_restricted,
	.cpu_ns = lived_ns,
};
