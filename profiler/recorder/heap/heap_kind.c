/* SPDX-License-Identifier: MIT
 *
 * The recording of the heap, as a kind of recording.
 */
#include "recorder/code/code.h"
#include "recorder/events/events.h"
#include "recorder/output/output.h"
#include "heap.h"

static const struct incstack__recorder heap_table = {
	INCSTACK__IN_EVERY_TABLE,
	.on_alloc = incstack__heap_on_alloc,
	.on_free = incstack__heap_on_free,
	.on_new = incstack__heap_on_new,
	.position = incstack__heap_position,
	.on_thread = incstack__record_thread,
	.on_switch = incstack__record_switch,
	.on_shown = incstack__record_shown,
	.on_exec = incstack__record_exec,
};

static const int no_calls[] = {-1};

static void ignore_call(void)
{
}

static void ignore_record(struct incstack__record *record)
{
	(void)record;
}

static uint64_t no_cpu_ns(const struct incstack__record *record)
{
	(void)record;
	return 0;
}

/* A thread without a record is no loss, because the shared record takes its events. */
const struct incstack__kind incstack__kind_heap = {
	.number = INCSTACK__TRACEFILE_OF_HEAP,
	.system_calls = no_calls,
	.table = &heap_table,
	.configured = incstack__record_host_allocators,
	.begin = ignore_call,
	.begin_thread = ignore_record,
	.lack_record = ignore_call,
	.end_record = ignore_record,
	.stop = ignore_call,
	.restricted = ignore_call,
	.cpu_ns = no_cpu_ns,
};
