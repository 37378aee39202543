/* SPDX-License-Identifier: MIT
 *
 * The memory of a record and its events, which the spool has. A kill may come between any two stores,
 * and the spool's reader must find a record that is whole.
 */
#include <stdatomic.h>
#include <string.h>

#include "recorder/log/log.h"
#include "recorder/output/output.h"

struct incstack__record *incstack__spool_record(void)
{
	bool is_new;
	struct incstack__record *record = incstack__spool_page(&is_new);
	uint64_t next;

	if (!record)
		return NULL;
	next = is_new ? 0 : record->live.next;
	record->live.magic = 0;
	atomic_signal_fence(memory_order_seq_cst);
	memset(&record->log, 0, offsetof(struct incstack__record, live));
	memset((void *)(&record->live + 1), 0,
	       sizeof(*record) - offsetof(struct incstack__record, live) - sizeof(record->live));
	record->live = (struct incstack__spool_live){.next = next};
	incstack__tracefile_log_init(&record->log,
				     (unsigned char *)record + INCSTACK__SPOOL_RECORD_BYTES,
				     INCSTACK__SPOOL_EVENT_BYTES);
	if (is_new)
		incstack__spool_list(&record->live);
	return record;
}

/* Sets the log of a record: a separate room, or the memory that follows the record. The log is
 * empty then, so a reader that finds the change half done finds no event. */
static void set_log(struct incstack__record *record, void *events, size_t bytes)
{
	void *before = record->live.events != 0 ? record->log.data : NULL;
	const size_t bytes_before = record->log.size;

	record->live.events = events ? (uintptr_t)events : 0;
	record->live.event_bytes = events ? bytes : 0;
	if (events)
		incstack__tracefile_log_init(&record->log, events, bytes);
	else
		incstack__tracefile_log_init(&record->log,
					     (unsigned char *)record + INCSTACK__SPOOL_RECORD_BYTES,
					     INCSTACK__SPOOL_EVENT_BYTES);
	incstack__spool_room_release(before, bytes_before);
}

void incstack__spool_log_fit(struct incstack__record *record, size_t bytes)
{
	void *events = NULL;

	if (bytes == record->log.size)
		return;
	if (bytes > INCSTACK__SPOOL_EVENT_BYTES) {
		events = incstack__spool_room(bytes);
		if (!events)
			return;
	}
	set_log(record, events, bytes);
}

void incstack__spool_record_release(struct incstack__record *record)
{
	record->live.magic = 0;
	atomic_signal_fence(memory_order_seq_cst);
	record->log.used = 0;
	incstack__spool_log_fit(record, INCSTACK__SPOOL_EVENT_BYTES);
	incstack__spool_page_release(record);
}
