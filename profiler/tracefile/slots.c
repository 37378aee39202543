/* SPDX-License-Identifier: MIT
 *
 * Reads the counter slots of a trace file.
 */
#include "internal.h"
#include "notes.h"

/* Whether a slot is consistent. Another process may have written anything to the file. */
static bool is_sound(const struct incstack__tracefile_slot *slot, int first)
{
	return (first || slot->memory == 0) && slot->in_return <= slot->samples_started &&
	       slot->notes >> INCSTACK__NOTE_COUNT == 0 &&
	       slot->samples_started <= INCSTACK__TRACEFILE_STARTED_MAX &&
	       slot->unwound <= slot->samples_started &&
	       (slot->end == 0 || (first && slot->end >> 16 == INCSTACK__TRACEFILE_ENDED >> 16));
}

static void add(struct incstack__tracefile_totals *totals,
		const struct incstack__tracefile_slot *slot)
{
	totals->started += slot->samples_started;
	totals->unwound += slot->unwound;
	incstack__tracefile_count(&totals->interrupting, slot->interrupting);
	incstack__tracefile_count(&totals->in_return, slot->in_return);
	incstack__tracefile_count(&totals->failed_calls, slot->failed_calls);
	totals->notes |= slot->notes;
	totals->end |= slot->end;
	totals->memory_peak += (slot->memory >> 32) << 10;
	totals->memory_anonymous += (slot->memory & UINT32_MAX) << 10;
}

uint64_t incstack__tracefile_slots_read(const unsigned char *file,
					struct incstack__tracefile_totals *totals)
{
	struct incstack__tracefile_slot slot;
	uint64_t damaged = 0;

	for (uint64_t offset = INCSTACK__TRACEFILE_HEADER_BYTES; offset < INCSTACK__TRACEFILE_START;
	     offset += sizeof(slot)) {
		memcpy(&slot, file + offset, sizeof(slot));
		if (is_sound(&slot, offset == INCSTACK__TRACEFILE_HEADER_BYTES)) {
			add(totals, &slot);
			continue;
		}
		damaged = damaged == 0 ? offset : damaged;
		totals->damaged_slots++;
		totals->damaged++;
	}
	return damaged;
}

const char *incstack__tracefile_header_check(const unsigned char *file, size_t size,
					     struct incstack__tracefile_header *header)
{
	if (size > 0)
		memcpy(header, file, size < sizeof(*header) ? size : sizeof(*header));
	if (size < sizeof(header->magic) || header->magic != INCSTACK__TRACEFILE_MAGIC)
		return "this is not a trace file";
	if (size < INCSTACK__TRACEFILE_START)
		return "the header is cut off";
	if (header->version != INCSTACK__TRACEFILE_VERSION)
		return "the file's version is not supported: another version of incstack made it";
	if (header->checksum != incstack__tracefile_header_sum(*header))
		return "the header is damaged";
	if (header->slots != INCSTACK__TRACEFILE_SLOTS ||
	    header->slot_bytes != INCSTACK__TRACEFILE_SLOT_BYTES ||
	    header->kind >= INCSTACK__TRACEFILE_KINDS ||
	    header->command[sizeof(header->command) - 1] != 0)
		return "the header is malformed";
	return NULL;
}
