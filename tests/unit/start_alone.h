/* SPDX-License-Identifier: MIT
 *
 * Stands in for the core and for the recorder except its start. It is included after the source of the start.
 * Each part counts its calls, and is missing if a test says so.
 */
#ifndef START_ALONE_H
#define START_ALONE_H

struct incstack__recording incstack__recording;
const struct incstack__kind *incstack__kind;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

enum { PATH = 128 }; /* the test's own are shorter */

static struct incstack__record late;
static struct incstack_options created;
static struct incstack_embedder created_embedder;
static char opened[4][PATH], noted_in[PATH], renamed[4][2 * PATH];
static unsigned opens, spools_renamed, notes, quiet, loud, looks, published, linker, ruled, closed,
	modules, checks, forked, begun, chosen, ticking, clocks, unrecorded, loaded;
static unsigned refused_opens; /* bit n: the nth open is refused */
static bool no_keys, no_forks, no_record, no_stack, no_room, no_runtime, no_libunwind;
static void (*again)(const struct incstack__recording *);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void keep(char *to, const char *file)
{
	ck_assert_uint_lt(strlen(file), PATH);
	strcpy(to, file);
}

int incstack__record_open(const char *file)
{
	const unsigned number = opens++;

	keep(opened[number % 4], file);
	errno = ENOSPC;
	return refused_opens >> number & 1 ? -1 : 0;
}

void incstack__record_note_in(const char *file, enum incstack__tracefile_note note)
{
	ck_assert_int_eq(note, INCSTACK__NOTE_UNRECORDED_FULL);
	keep(noted_in, file);
}

void incstack__spool_rename(const char *trace, const char *new_trace)
{
	char *both = renamed[spools_renamed++ % 4];

	keep(both, trace);
	strcat(both, ">");
	keep(both + strlen(both), new_trace);
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes += note == (no_libunwind ? INCSTACK__NOTE_NO_LIBUNWIND : INCSTACK__NOTE_NOT_STARTED);
}

uint32_t incstack__native_mode(uint32_t wanted)
{
	return wanted;
}

const struct incstack_embedder *incstack_native_embedder(void)
{
	static const struct incstack_embedder embedder = {.size = sizeof(embedder)};
	return &embedder;
}

int incstack_runtime_create(const struct incstack_options *options, struct incstack_runtime **out)
{
	created = *options;
	created_embedder = *options->embedder;
	*out = (struct incstack_runtime *)&late;
	return no_runtime ? INCSTACK_ENOMEM : 0;
}

struct incstack__record *incstack__spool_record(void)
{
	return no_record ? NULL : &late;
}

int incstack_stack_create(struct incstack_runtime *runtime, uintptr_t low, uintptr_t high,
			  struct incstack_stack **out)
{
	return no_stack ? INCSTACK_ENOMEM : 0;
}

int incstack__record_prepare(struct incstack__record *record, uint32_t number)
{
	ck_assert_uint_eq(number, 0);
	return no_room ? -1 : 0;
}

void incstack__record_publish(struct incstack__record *record)
{
	ck_assert_ptr_eq(record, &late);
	ck_assert(record->high == UINTPTR_MAX);
	published++;
}

void incstack__locks_make(void)
{
}

void incstack__libc_find(void)
{
}

int incstack__record_watch_forks(void (*function)(const struct incstack__recording *))
{
	again = function;
	return no_forks ? -1 : 0;
}

int incstack__record_keys(void)
{
	return no_keys ? -1 : 0;
}

int incstack__record_libunwind(void)
{
	loaded++;
	return no_libunwind ? -1 : 0;
}

#define COUNT(type, name, counter, result, ...) \
	type name(__VA_ARGS__) \
	{ \
		counter++; \
		return result; \
	}
COUNT(bool, incstack__record_host_look, looks, false, void)
COUNT(void, incstack__record_host_allocators, looks, , void)
COUNT(void, incstack__record_linker_begin, linker, , const struct incstack__linker_view *before)
COUNT(void, incstack__record_rule_stub, ruled, , struct incstack__range stub)
COUNT(void, incstack__pools_close, closed, , void)
COUNT(void, incstack__clock_find, clocks, , void)
COUNT(enum incstack__tracefile_note, incstack__record_unrecorded, unrecorded,
      error == ENOSPC ? INCSTACK__NOTE_UNRECORDED_FULL : INCSTACK__NOTE_UNRECORDED, int error)
COUNT(void, incstack__record_check_start, checks, , void)
COUNT(int, incstack_runtime_forked, forked, 0, struct incstack_runtime *runtime)
COUNT(void, incstack__native_walk_forked, forked, , void)
COUNT(void, incstack__serve_begin, begun, , void)
COUNT(void, incstack__ticker_choose, chosen, , void)
COUNT(void, incstack__ticker_begin, ticking, , void)
COUNT(void, incstack__record_protect, quiet, , struct incstack__protection *before)
COUNT(void, incstack__record_unprotect, loud, , const struct incstack__protection *before)

void incstack__record_modules(void)
{
	modules++;
	incstack__recording.epoch = 6;
}

/* Functions that the table names and no test here calls. */
#define UNUSED(type, name, ...) \
	type name(__VA_ARGS__) \
	{ \
		abort(); \
	}
UNUSED(void, incstack__heap_on_alloc, const void *block, size_t bytes,
       struct incstack__caller caller)
UNUSED(void, incstack__heap_on_free, const void *block)
UNUSED(void, incstack__heap_on_new, const void *block, size_t bytes, struct incstack__caller caller,
       uint64_t position)
UNUSED(uint64_t, incstack__heap_position, void)
UNUSED(void, incstack__record_thread, void)
UNUSED(int, incstack__record_find_rule, void *context, uintptr_t address,
       struct incstack_rule *rule)
UNUSED(bool, incstack__record_returns_into, void *context, uintptr_t pc)
UNUSED(void, incstack__serve_thread, void)
UNUSED(void, incstack__serve_alloc, const void *block, size_t bytes, struct incstack__caller caller)
UNUSED(void, incstack__serve_free, const void *block)
UNUSED(void, incstack__serve_new, const void *block, size_t bytes, struct incstack__caller caller,
       uint64_t position)
UNUSED(void, incstack__serve_switch, const void *ucontext)
UNUSED(void, incstack__serve_shown, uintptr_t *slot)
UNUSED(void, incstack__serve_exec, void)
const struct incstack__ticker *incstack__ticker;
UNUSED(uint64_t, incstack__timer_cpu_ns, const struct incstack__record *record)
UNUSED(void, incstack__record_jump, uintptr_t sp)
UNUSED(void, incstack__record_thread_end, void)
UNUSED(void, incstack__record_switch, const void *to)
UNUSED(void, incstack__record_unload, enum incstack__unload what, const void *address)
UNUSED(void, incstack__record_shown, uintptr_t *slot)
UNUSED(void, incstack__record_walk, uintptr_t *slot, bool by_caller)
UNUSED(void, incstack__record_lookup, uintptr_t caller, bool certain)
UNUSED(const void *, incstack__record_real_address, const void *address)
UNUSED(void, incstack__record_forbid, enum incstack__forbidden what, const void *filter)
UNUSED(int, incstack__record_on_close, unsigned low, unsigned high)
UNUSED(void, incstack__record_on_replace, int fd)
UNUSED(void, incstack__record_exec, void)
UNUSED(void, incstack__record_exit, void)
UNUSED(void *, incstack__wiped_allocate, void *context, size_t bytes)
UNUSED(void, incstack__wiped_release, void *context, void *memory, size_t bytes)
UNUSED(void *, incstack__spool_chunk, void *context, size_t bytes)
UNUSED(void, incstack__spool_chunk_release, void *context, void *memory, size_t bytes)

#pragma GCC diagnostic pop

#endif
