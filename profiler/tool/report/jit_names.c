/* SPDX-License-Identifier: MIT
 *
 * Reads what runtimes write about the code that they make. Nothing in it is trusted: what is read, and how
 * long is searched, has limits.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit_names.h"

enum { ENTRIES_MOST = 4 << 20 };
enum { RECORD_MOST = 64 << 20 }; /* bytes of a record of a jitdump */
enum { LINE_MOST = 1 << 16 };
/* The maximum number of entries that are examined for one address, or one move, and for all of them: in a
 * damaged file they may overlap. */
enum { LOOKS_MOST = 1 << 16, LOOKS_ALL = 1 << 28, LOOKS_LEAST = 64 };
#define DUMP_MAGIC 0x4a695444u

struct entry {
	uint64_t start, size;
	size_t order; /* later ones replace earlier ones */
	char *name;
};

struct tool_jit_names {
	struct entry *entries;
	size_t count;
	uint64_t largest; /* size */
	uint64_t looks;   /* entries that were examined */
};

/* ---- the table ---------------------------------------------------------------------- */

static void add(struct tool_jit_names *names, uint64_t start, uint64_t size, const char *name)
{
	const size_t count = names->count;
	struct entry *grown = names->entries;

	if (size == 0 || size > UINT64_MAX - start || name[0] == '\0' || count >= ENTRIES_MOST)
		return;
	if ((count & (count - 1)) == 0)
		grown = reallocarray(grown, count == 0 ? 1 : 2 * count, sizeof(*grown));
	if (grown == NULL)
		return;
	names->entries = grown;
	grown[count] = (struct entry){start, size, count, strdup(name)};
	if (grown[count].name == NULL)
		return;
	names->count++;
	if (size > names->largest)
		names->largest = size;
}

static int by_start(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	return a->start != b->start ? (a->start > b->start) - (a->start < b->start)
				    : (a->order > b->order) - (a->order < b->order);
}

/* Returns how many entries may be examined now. */
static size_t looks_most(const struct tool_jit_names *names)
{
	return names->looks < LOOKS_ALL ? LOOKS_MOST : LOOKS_LEAST;
}

const char *tool_jit_names_find(struct tool_jit_names *names, uint64_t address)
{
	const struct entry *found = NULL;
	size_t low = 0;
	size_t least;
	size_t high;

	if (names == NULL)
		return NULL;
	high = names->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (names->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	least = low > looks_most(names) ? low - looks_most(names) : 0;
	for (; low > least && address - names->entries[low - 1].start < names->largest; low--) {
		const struct entry *entry = &names->entries[low - 1];

		names->looks++;
		if (address - entry->start < entry->size &&
		    (found == NULL || entry->order > found->order))
			found = entry;
	}
	return found != NULL ? found->name : NULL;
}

/* ---- files --------------------------------------------------------------------------- */

/* Reads a line, of which what does not fit is left out. *left is how many bytes may still be read: the
 * file may grow meanwhile. Returns false at the end. */
static bool read_line(FILE *file, char *line, size_t room, uint64_t *left)
{
	size_t used = 0;
	int c = EOF;

	while (*left > 0 && (c = getc_unlocked(file)) != EOF && c != '\n') {
		if (used < room - 1)
			line[used++] = (char)c;
		--*left;
	}
	line[used] = '\0';
	return c == '\n' || used > 0;
}

/* Lines: START SIZE NAME, with hexadecimal numbers. */
static void read_map(struct tool_jit_names *names, FILE *file)
{
	static char line[LINE_MOST];
	uint64_t left = TOOL_JIT_FILE_MOST;

	while (read_line(file, line, sizeof(line), &left)) {
		uint64_t start;
		uint64_t size;
		int at = 0;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &start, &size, &at) == 2 && at > 0)
			add(names, start, size, line + at);
	}
}

/* The head of each record of a jitdump, and the fields of those that load or move code. */
struct record {
	uint32_t id, bytes;
	uint64_t time;
};
struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};
struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};
enum { RECORD_LOAD = 0, RECORD_MOVE = 1 };

/* The body has a zero byte behind it. */
static void take_record(struct tool_jit_names *names, uint32_t id, const char *body, size_t bytes)
{
	const size_t most = looks_most(names);
	const size_t least = names->count > most ? names->count - most : 0;
	struct load load;
	struct move move;
	const char *name;

	if (id == RECORD_LOAD && bytes > sizeof(load)) {
		memcpy(&load, body, sizeof(load));
		add(names, load.address, load.size, body + sizeof(load));
	} else if (id == RECORD_MOVE && bytes >= sizeof(move)) {
		memcpy(&move, body, sizeof(move));
		name = NULL;
		for (size_t i = names->count; i-- > least && name == NULL; names->looks++)
			if (names->entries[i].start == move.from)
				name = names->entries[i].name;
		if (name != NULL)
			add(names, move.to, move.size, name);
	}
}

static void read_dump(struct tool_jit_names *names, FILE *file)
{
	struct {
		uint32_t magic, version, bytes, machine, padding, pid;
		uint64_t time, flags;
	} head;
	struct record record;
	char *body = NULL;
	char *grown;
	uint64_t left = TOOL_JIT_FILE_MOST; /* the file may grow meanwhile */

	if (fread(&head, sizeof(head), 1, file) != 1 || head.magic != DUMP_MAGIC ||
	    head.bytes < sizeof(head) || fseek(file, (long)head.bytes, SEEK_SET) != 0)
		return;
	while (fread(&record, sizeof(record), 1, file) == 1 && record.bytes >= sizeof(record) &&
	       record.bytes <= RECORD_MOST && record.bytes <= left) {
		const size_t bytes = record.bytes - sizeof(record);

		left -= record.bytes;
		grown = realloc(body, bytes + 1);
		if (grown == NULL)
			break;
		body = grown;
		if (fread(body, 1, bytes, file) != bytes)
			break;
		body[bytes] = '\0';
		take_record(names, record.id, body, bytes);
	}
	free(body);
}

struct tool_jit_names *tool_jit_names_of(FILE *map, FILE *dump)
{
	struct tool_jit_names *names = calloc(1, sizeof(*names));

	if (names != NULL && map != NULL)
		read_map(names, map);
	if (names != NULL && dump != NULL)
		read_dump(names, dump);
	if (names != NULL && names->count > 1)
		qsort(names->entries, names->count, sizeof(*names->entries), by_start);
	return names;
}

void tool_jit_names_free(struct tool_jit_names *names)
{
	for (size_t i = 0; names != NULL && i < names->count; i++)
		free(names->entries[i].name);
	if (names != NULL)
		free(names->entries);
	free(names);
}
