/* SPDX-License-Identifier: MIT
 *
 * A dynamic linker whose modules come and go at the same places, and a thread that samples frames
 * of them; with the recorder's lists of modules (modules.c, unload.c), but without the rest of the
 * recorder and the core. What was written is compared with what the addresses were.
 */
#ifndef MOVING_MODULES_H
#define MOVING_MODULES_H

#include <check.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "recorder/code/modules.h"

static int iterate(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data);
#define dl_iterate_phdr iterate
#include "recorder/code/modules.c"
#include "recorder/code/unload.c"

/* ---- the dynamic linker --------------------------------------------------------------------- */

enum {
	PLACES = 12,
	STAY = 2,
	PLACE_BYTES = 0x1000,
	STEPS = 4000,
	LOADED_MOST = ANNOUNCED_MAX + 50
};
#define FIRST_PLACE ((uintptr_t)0x100000)

static struct module {
	char name[24];
	uintptr_t low;
} loaded[LOADED_MOST];
static unsigned count, adds, subs, names;
static bool counters_known; /* the linker's own counters */

static uintptr_t place(unsigned number)
{
	return FIRST_PLACE + number * PLACE_BYTES;
}

static void load(unsigned number)
{
	struct module *m = &loaded[count++];

	ck_assert_uint_le(count, LOADED_MOST);
	m->low = place(number);
	snprintf(m->name, sizeof(m->name), "/lib/%u.so", ++names);
	adds++;
}

static void unload(unsigned index)
{
	memmove(&loaded[index], &loaded[index + 1], (--count - index) * sizeof(loaded[0]));
	subs++;
}

static int iterate(int (*callback)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	const ElfW(Phdr) segment = {.p_type = PT_LOAD, .p_memsz = PLACE_BYTES};
	int result = 0;

	for (unsigned i = 0; i < count && result == 0; i++) {
		struct dl_phdr_info info = {.dlpi_addr = loaded[i].low,
					    .dlpi_name = loaded[i].name,
					    .dlpi_phdr = &segment,
					    .dlpi_phnum = 1,
					    .dlpi_adds = adds,
					    .dlpi_subs = subs};
		result = callback(&info, sizeof(info), data);
	}
	return result;
}

void incstack__record_identity(const struct dl_phdr_info *info, struct incstack__identity *identity)
{
	(void)info;
	*identity = (struct incstack__identity){0};
}

void incstack__record_linker_compare(struct incstack__record_counts counts)
{
	ck_assert_uint_eq(counts.adds, adds);
}

bool incstack__record_linker_shows(struct incstack__record_counts counts)
{
	return counters_known && counts.adds == adds && counts.subs == subs;
}

/* ---- in place of the rest of the recorder and the core --------------------------------------- */

enum { EPOCHS = 2 * STEPS };

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static bool is_locked_elsewhere;
static struct incstack__tracefile_modules written[EPOCHS]; /* the newest list of each */
static char rules[PLACES][24]; /* the module whose rules are known for a place */
static size_t mapped;
static bool no_spans, no_lists;
static int lists_more = -1; /* so many lists get memory; -1: all */
static unsigned notes_unloaded, notes_modules, looks, forgot;
static int locked, quiet;

void *incstack__record_map(size_t bytes)
{
	if (bytes < FIRST_BYTES ? no_spans : no_lists || lists_more == 0)
		return NULL;
	lists_more -= bytes >= FIRST_BYTES && lists_more > 0;
	mapped += bytes;
	return calloc(1, bytes);
}

void *incstack__record_remap(void *memory, size_t bytes, size_t more)
{
	if (more < FIRST_BYTES ? no_spans : no_lists)
		return NULL;
	mapped += more - bytes;
	return realloc(memory, more);
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	mapped -= memory != NULL ? bytes : 0;
	free(memory);
}

int incstack__record_write(const void *data, size_t bytes)
{
	struct incstack__tracefile_block block;
	uint32_t epoch;

	memcpy(&block, data, sizeof(block));
	ck_assert_uint_eq(block.type, INCSTACK__TRACEFILE_MODULES);
	memcpy(&epoch, (const char *)data + sizeof(block), sizeof(epoch));
	ck_assert_uint_lt(epoch, EPOCHS);
	free(written[epoch].data);
	written[epoch].data = malloc(bytes);
	memcpy(written[epoch].data, data, bytes);
	written[epoch].used = bytes;
	return 0;
}

void incstack__record_cut_deleted(char *path)
{
	(void)path;
}

bool incstack__record_path(uint64_t address, char *path, size_t size)
{
	(void)address;
	(void)path;
	(void)size;
	return 0;
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes_unloaded += note == INCSTACK__NOTE_UNLOADED;
	notes_modules += note == INCSTACK__NOTE_MODULES;
}

void incstack__record_host_clear(void)
{
	forgot++;
}

bool incstack__record_host_look(void)
{
	ck_assert_int_eq(locked, 0);
	looks++;
	return 0;
}

void incstack__record_protect(struct incstack__protection *before)
{
	(void)before;
	ck_assert_int_eq(quiet++, 0);
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
	(void)before;
	ck_assert_int_eq(--quiet, 0);
}

void incstack__lock_take(enum incstack__lock lock)
{
	ck_assert_int_eq(lock, INCSTACK__LOCK_MODULES);
	ck_assert_int_eq(locked++, 0);
}

/* As if another thread had the lock, or not. */
bool incstack__lock_try(enum incstack__lock lock)
{
	if (is_locked_elsewhere)
		return false;
	incstack__lock_take(lock);
	return true;
}

void incstack__lock_give(enum incstack__lock lock)
{
	(void)lock;
	ck_assert_int_eq(--locked, 0);
}

#ifdef INCSTACK_DEBUG
void incstack__lock_may_wait(void)
{
	ck_assert_int_eq(locked, 0);
}
#endif

int incstack_runtime_code_unloading(struct incstack_runtime *runtime, struct incstack_stack *stack,
				    uintptr_t low, uintptr_t high)
{
	(void)runtime;
	ck_assert_ptr_null(stack);
	for (unsigned i = 0; i < PLACES; i++)
		if (place(i) >= low && place(i) < high)
			rules[i][0] = 0;
	return 0;
}

/* ---- a thread that samples -------------------------------------------------------------------- */

enum { FRAMES = 3, BATCH = 24, KEPT = STEPS * FRAMES };

static struct incstack_frame_object objects[BATCH][FRAMES];
static char truths[BATCH][FRAMES][24];
static struct incstack_trace traces[BATCH];
static unsigned in_batch;
static uint32_t batch_epoch;
static uint64_t cut, cut_seen;

/* The frames that were written. */
static struct kept {
	uint32_t epoch;
	uintptr_t pc;
	char truth[24];
} kept[KEPT];
static unsigned kept_count;

static unsigned random_below(unsigned n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x % n);
}

static void keep(const struct incstack_trace *trace, uint32_t epoch)
{
	const struct incstack_frame_object *o = trace->top;

	for (; o != NULL; o = o->parent) {
		struct kept *k = &kept[kept_count++];

		ck_assert_uint_le(kept_count, KEPT);
		k->epoch = epoch;
		k->pc = o->function;
		strcpy(k->truth, truths[trace - traces][o - objects[trace - traces]]);
		ck_assert((o->parent == NULL) ==
			  ((o->flags & (INCSTACK_OBJECT_TRUNCATED | INCSTACK_OBJECT_BASE)) != 0));
	}
}

static void flush(void)
{
	struct incstack_tree tree = {.traces = in_batch ? traces : NULL};
	uint32_t epoch;

	incstack__record_modules();
	epoch = incstack__record_modules_settle(batch_epoch, &tree, &cut);
	for (unsigned i = 0; i < in_batch; i++) {
		keep(&traces[i], epoch);
		for (unsigned frame = 0; frame < FRAMES; frame++) /* also behind another one */
			cut_seen += (objects[i][frame].flags & INCSTACK_OBJECT_TRUNCATED) != 0;
	}
	in_batch = 0;
	batch_epoch = incstack__recording.epoch;
}

static void sample(bool exact)
{
	struct incstack_frame_object *o = objects[in_batch];

	if (incstack__recording.unloading != 0)
		incstack__record_modules();
	if (batch_epoch != incstack__recording.epoch)
		flush();
	o = objects[in_batch];
	for (unsigned i = 0; i < FRAMES; i++) {
		const struct module *m = &loaded[random_below(count)];
		const unsigned number = (unsigned)((m->low - FIRST_PLACE) / PLACE_BYTES);

		/* From a return address behind the first byte to one behind the last. */
		o[i] = (struct incstack_frame_object){
			.parent = i + 1 < FRAMES ? &o[i + 1] : NULL,
			.function = m->low + 1 + random_below(PLACE_BYTES),
			.flags = i + 1 < FRAMES ? 0 : INCSTACK_OBJECT_BASE};
		strcpy(truths[in_batch][i], m->name);
		if (exact && rules[number][0] != 0)
			ck_assert_str_eq(rules[number], m->name);
		strcpy(rules[number], m->name);
	}
	traces[in_batch].top = o;
	traces[in_batch].next = NULL;
	if (in_batch > 0)
		traces[in_batch - 1].next = &traces[in_batch];
	if (++in_batch == BATCH)
		flush();
}

/* ---- what was written, compared with what it was ---------------------------------------------- */

/* Returns the module's name, or "". */
static const char *module_of(uint32_t epoch, uintptr_t pc)
{
	static char name[24];
	const struct incstack__record_list list = {.block = written[epoch]};
	struct incstack__record_entry entry;

	strcpy(name, "");
	for (size_t at = 0; list.block.data && incstack__record_list_next(&list, &at, &entry);) {
		if (pc - 1 < entry.module.low || pc - 1 >= entry.module.high)
			continue;
		ck_assert_str_eq(name, ""); /* one at most in an epoch */
		memcpy(name, entry.at + sizeof(entry.module), entry.module.path_length);
		name[entry.module.path_length] = 0;
	}
	return name;
}

static unsigned known_in_doubt; /* frames in lists that lack the unknown code */

/* Modules that were there all the time are always known. */
static bool stays(const struct kept *k)
{
	return k->pc - 1 < place(STAY);
}

/* Returns how many frames are of no known module. */
static unsigned compare_all(void)
{
	unsigned unknown = 0;

	for (unsigned i = 0; i < kept_count; i++) {
		const char *name = module_of(kept[i].epoch, kept[i].pc);

		if (*name != 0 || stays(&kept[i]))
			ck_assert_str_eq(name, kept[i].truth);
		unknown += *name == 0;
		known_in_doubt += *name != 0 && !stays(&kept[i]) && kept[i].epoch % 2 == 1;
	}
	ck_assert_uint_eq(cut, cut_seen);
	return unknown;
}

static void begin(void)
{
	load(0);
	load(1);
	incstack__record_modules();
	ck_assert_uint_eq(incstack__recording.epoch, 2);
	batch_epoch = 2;
}

#endif
