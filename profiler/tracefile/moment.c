/* SPDX-License-Identifier: MIT
 *
 * Looks at the pages of a process: reads its mappings, and for each of them what the kernel says of its pages. It may run
 * inside of the recorded process, so all memory is the caller's.
 */
#include "moment.h"

#include <stdbool.h>
#include <string.h>

/* Of the words of /proc/PID/pagemap. */
#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
#define OF_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

enum {
	PAGE_BYTES = 4096,
	TEXT_BYTES = 16 << 10, /* more than a line of the list of mappings */
	WORDS = 8192,
};
/* A closed area that is larger was reserved only. */
#define CLOSED_MOST (UINT64_C(1) << 30)
/* Reading what the kernel says of so many pages takes about half a second. */
#define PAGES_MOST (UINT64_C(1) << 26)

struct work {
	const struct incstack__moment_source *source;
	uint64_t pages_left;
	uint64_t words[WORDS];
	char text[TEXT_BYTES];
	struct incstack__moment_block block;
	unsigned char areas[]; /* behind it */
};

struct writer {
	struct work *work;
	size_t used, room;
	struct incstack__moment_area area;
	size_t area_at;
	uint32_t run; /* the newest one, not written yet; 0: none */
};

/* ---- the list of mappings ------------------------------------------------------------------ */

static const char *take_number(const char *at, unsigned base, uint64_t *number)
{
	*number = 0;
	for (;; at++) {
		const unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
				       : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a') + 10
								  : 16;
		if (digit >= base)
			return at;
		*number = *number * base + digit;
	}
}

static const char *skip_field(const char *at)
{
	while (*at != ' ' && *at != '\0')
		at++;
	while (*at == ' ')
		at++;
	return at;
}

static enum incstack__area_kind kind_of(const char *access, uint64_t inode, const char *path)
{
	if (access[3] == 's' || inode != 0 || path[0] == '/')
		return INCSTACK__AREA_FILE;
	if (strcmp(path, "[heap]") == 0)
		return INCSTACK__AREA_HEAP;
	if (strcmp(path, "[stack]") == 0)
		return INCSTACK__AREA_STACK;
	if (path[0] == '[' && strncmp(path, "[anon", 5) != 0)
		return INCSTACK__AREA_SPECIAL;
	return strncmp(access, "---", 3) == 0 ? INCSTACK__AREA_CLOSED : INCSTACK__AREA_ANONYMOUS;
}

/* Reads a line: low-high access offset device inode path. */
static bool take_line(const char *line, struct incstack__moment_area *area)
{
	const char *at = take_number(line, 16, &area->low);
	const char *access;
	uint64_t inode;

	if (*at != '-')
		return false;
	access = skip_field(take_number(at + 1, 16, &area->high));
	if (strlen(access) < 5 || area->low >= area->high || (area->low | area->high) % PAGE_BYTES)
		return false;
	at = skip_field(skip_field(skip_field(access)));
	at = take_number(at, 10, &inode);
	while (*at == ' ')
		at++;
	area->kind = kind_of(access, inode, at);
	area->runs = 0;
	return true;
}

/* ---- areas and runs --------------------------------------------------------------------------- */

static bool put(struct writer *writer, const void *data, size_t bytes)
{
	if (writer->room - writer->used < bytes) {
		writer->work->block.head.flags |= INCSTACK__MOMENT_PARTIAL;
		return false;
	}
	memcpy(writer->work->areas + writer->used, data, bytes);
	writer->used += bytes;
	return true;
}

static bool put_run(struct writer *writer)
{
	const uint32_t run = writer->run;

	writer->run = 0;
	if (run == 0)
		return true;
	if (!put(writer, &run, sizeof(run)))
		return false;
	writer->area.runs++;
	writer->work->block.head.runs++;
	return true;
}

static bool add_pages(struct writer *writer, enum incstack__page state, uint32_t pages)
{
	const uint32_t before = incstack__run_pages(writer->run);

	if (before > 0 && incstack__run_state(writer->run) == state &&
	    before <= INCSTACK__RUN_PAGES_MAX - pages) {
		writer->run += pages << INCSTACK__RUN_STATE_BITS;
		return true;
	}
	if (!put_run(writer))
		return false;
	writer->run = pages << INCSTACK__RUN_STATE_BITS | state;
	return true;
}

/* ---- pages --------------------------------------------------------------------------------- */

/* A page that is not exclusive may be the page of zeros, which a process gets that reads before it writes. */
static enum incstack__page state_of(uint64_t word)
{
	if (word & SWAPPED)
		return INCSTACK__PAGE_SWAPPED;
	if (!(word & PRESENT))
		return INCSTACK__PAGE_ABSENT;
	if (word & OF_FILE)
		return INCSTACK__PAGE_FILE;
	return word & EXCLUSIVE ? INCSTACK__PAGE_OWN : INCSTACK__PAGE_COMMON;
}

/* Adds pages, and returns how many of `most` the kernel told about: fewer if the area is gone. */
static bool add_words(struct writer *writer, uint64_t count)
{
	for (uint64_t i = 0; i < count;) {
		const uint64_t first = i;
		const enum incstack__page state = state_of(writer->work->words[i]);

		while (i < count && state_of(writer->work->words[i]) == state)
			i++;
		if (!add_pages(writer, state, (uint32_t)(i - first)))
			return false;
	}
	return true;
}

static bool look_at_pages(struct writer *writer)
{
	const struct incstack__moment_source *source = writer->work->source;
	const uint64_t end = writer->area.high / PAGE_BYTES;

	for (uint64_t page = writer->area.low / PAGE_BYTES; page < end;) {
		const uint64_t wanted = end - page < WORDS ? end - page : WORDS;
		const int64_t got =
			source->read(source->pagemap, writer->work->words,
				     wanted * sizeof(uint64_t), page * sizeof(uint64_t));
		const uint64_t count = got > 0 ? (uint64_t)got / sizeof(uint64_t) : 0;

		if (count == 0)
			return true; /* unmapped meanwhile, or beyond all mappings */
		if (!add_words(writer, count))
			return false;
		page += count;
	}
	return true;
}

/* Whether the pages of an area can be looked at: they are not too many. */
static bool is_small(struct writer *writer)
{
	const uint64_t bytes = writer->area.high - writer->area.low;
	uint64_t *left = &writer->work->pages_left;

	if (writer->area.kind == INCSTACK__AREA_CLOSED && bytes > CLOSED_MOST)
		return false;
	if (bytes / PAGE_BYTES > *left) {
		writer->work->block.head.flags |= INCSTACK__MOMENT_PARTIAL;
		return false;
	}
	*left -= bytes / PAGE_BYTES;
	return true;
}

static bool add_area(struct writer *writer)
{
	bool is_whole;

	writer->area_at = writer->used;
	if (!put(writer, &writer->area, sizeof(writer->area)))
		return false;
	writer->work->block.head.areas++;
	is_whole = !is_small(writer) || look_at_pages(writer);
	if (incstack__run_state(writer->run) == INCSTACK__PAGE_ABSENT)
		writer->run = 0;
	is_whole &= put_run(writer);
	memcpy(writer->work->areas + writer->area_at, &writer->area, sizeof(writer->area));
	return is_whole;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Reads the whole lines that the text has. Returns how many bytes they have; -1: there is no room for more. */
static int64_t take_lines(struct writer *writer, char *text, uint64_t *low)
{
	char *line = text;
	char *end;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		/* While mappings change, the kernel may show an area again. */
		if (!take_line(line, &writer->area) || writer->area.low < *low)
			continue;
		*low = writer->area.high;
		if (!add_area(writer))
			return -1;
	}
	return line - text;
}

static bool look_at_areas(struct writer *writer)
{
	struct work *work = writer->work;
	uint64_t offset = 0;
	uint64_t low = 0;
	size_t kept = 0;
	int64_t got;

	while ((got = work->source->read(work->source->maps, work->text + kept,
					 TEXT_BYTES - 1 - kept, offset)) > 0) {
		int64_t taken;

		offset += (uint64_t)got;
		kept += (size_t)got;
		work->text[kept] = '\0';
		taken = take_lines(writer, work->text, &low);
		if (taken < 0)
			return true;
		if (taken == 0 && kept == TEXT_BYTES - 1)
			return false; /* no path is so long */
		memmove(work->text, work->text + taken, kept - (size_t)taken);
		kept -= (size_t)taken;
	}
	return work->block.head.areas > 0;
}

/* Returns the number of a line of smaps_rollup, in bytes. */
static uint64_t counted(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	uint64_t number = 0;

	if (!at)
		return 0;
	for (at += strlen(name); *at == ' ';)
		at++;
	(void)take_number(at, 10, &number);
	return number << 10;
}

static void take_counts(struct work *work)
{
	const struct incstack__moment_source *source = work->source;
	const int64_t got = source->rollup >= 0
				    ? source->read(source->rollup, work->text, TEXT_BYTES - 1, 0)
				    : 0;

	work->text[got > 0 ? got : 0] = '\0';
	work->block.head.resident = counted(work->text, "\nRss:");
	work->block.head.anonymous = counted(work->text, "\nAnonymous:");
	work->block.head.lazy = counted(work->text, "\nLazyFree:");
	work->block.head.swapped = counted(work->text, "\nSwap:");
}

struct incstack__moment_block *incstack__moment_look(const struct incstack__moment_source *source,
						     void *memory, size_t room)
{
	struct work *work = memory;
	struct writer writer = {.work = work, .room = room - sizeof(*work)};

	work->source = source;
	work->pages_left = PAGES_MOST;
	work->block = (struct incstack__moment_block){
		.block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
			  .type = INCSTACK__TRACEFILE_MOMENT},
		.head = {.page_bytes = PAGE_BYTES},
	};
	/* In the process itself, nothing of this memory may be new to the kernel after it has counted. */
	memset(work->words, 0, sizeof(work->words));
	memset(work->text, 0, sizeof(work->text));
	take_counts(work);
	if (!look_at_areas(&writer))
		return NULL;
	work->block.block.length = (uint32_t)(sizeof(work->block.head) + writer.used);
	return &work->block;
}

size_t incstack__moment_seal(struct incstack__moment_block *block)
{
	block->block.checksum = incstack__tracefile_block_sum(block->block, &block->head);
	return sizeof(block->block) + block->block.length;
}
