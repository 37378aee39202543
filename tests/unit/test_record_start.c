/* SPDX-License-Identifier: MIT
 *
 * The start of the recorder, without its other parts and the core: what the configuration means, which
 * process image writes which file, and that a refusal leaves a program that is not recorded.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>

#include "refused.h"

#include "../../src/recorder/start.c"

#include "record_folder.h"
#include "run_suite.h"

/* ---- in place of the core and of the rest of the recorder --------------------------------- */

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;

enum { PATH = 128 }; /* the test's own are shorter */

static struct incstack__record late;
static struct incstack_options created;
static struct incstack_embedder created_embedder;
static char opened[4][PATH], noted_in[PATH], renamed[4][2 * PATH];
static unsigned opens, spools_renamed, notes, quiet, loud, looks, published, linker, ruled, closed,
	modules, checks, forked, served, begun, clocks, unrecorded, loaded;
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
COUNT(int, incstack__record_host_look, looks, 0, void)
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
COUNT(void, incstack__serve_thread, served, , void)
COUNT(void, incstack__serve_begin, begun, , void)
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
UNUSED(void, incstack__record_alloc, const void *block, size_t bytes,
       struct incstack__caller caller)
UNUSED(void, incstack__record_free, const void *block)
UNUSED(void, incstack__record_new, const void *block, size_t bytes, struct incstack__caller caller,
       uint64_t position)
UNUSED(uint64_t, incstack__record_position, void)
UNUSED(void, incstack__record_thread, void)
UNUSED(int, incstack__record_find_rule, void *context, uintptr_t address,
       struct incstack_rule *rule)
UNUSED(void, incstack__serve_alloc, const void *block, size_t bytes, struct incstack__caller caller)
UNUSED(void, incstack__serve_free, const void *block)
UNUSED(void, incstack__serve_new, const void *block, size_t bytes, struct incstack__caller caller,
       uint64_t position)
UNUSED(void, incstack__serve_switch, const void *ucontext)
UNUSED(void, incstack__serve_shown, uintptr_t *slot)
UNUSED(void, incstack__record_jump, uintptr_t sp)
UNUSED(void, incstack__record_thread_end, void)
UNUSED(void, incstack__record_switch, const void *to)
UNUSED(void, incstack__record_unload, enum incstack__unload what, const void *address)
UNUSED(void, incstack__record_shown, uintptr_t *slot)
UNUSED(void, incstack__record_walk, uintptr_t *slot, int by_caller)
UNUSED(void, incstack__record_lookup, uintptr_t caller, int certain)
UNUSED(const void *, incstack__record_real_address, const void *address)
UNUSED(void, incstack__record_forbid, enum incstack__forbidden what, const void *filter)
UNUSED(int, incstack__record_on_close, unsigned low, unsigned high)
UNUSED(void, incstack__record_on_replace, int fd)
UNUSED(void, incstack__record_exec, void)
UNUSED(void, incstack__record_exit, void)
UNUSED(void *, incstack__record_allocate, void *context, size_t bytes)
UNUSED(void, incstack__record_release, void *context, void *memory, size_t bytes)
UNUSED(void *, incstack__spool_chunk, void *context, size_t bytes)
UNUSED(void, incstack__spool_chunk_release, void *context, void *memory, size_t bytes)

#pragma GCC diagnostic pop

static const struct incstack__linker_view view;
static char numbered_path[4][PATH]; /* of this process */

static const struct incstack__recorder *start_with(const char *format)
{
	char configuration[256];

	snprintf(configuration, sizeof(configuration), format, path);
	return incstack__recorder_start(configuration, &view, (struct incstack__range){0, 0});
}

static void make_folder(void)
{
	make_folder_for("trace");
	for (int i = 0; i < 4; i++)
		snprintf(numbered_path[i], sizeof(numbered_path[0]), "%s.%ld.%d", path,
			 (long)getpid(), i);
}

static void clean(void)
{
	for (int i = 0; i < 4; i++)
		unlink(numbered_path[i]);
	remove_folder();
}

static void make(const char *file)
{
	close(open(file, O_CREAT | O_WRONLY, 0600));
}

static bool exists(const char *file)
{
	return access(file, F_OK) == 0;
}

/* ---- the configuration ---------------------------------------------------------------------- */

START_TEST(options_and_defaults)
{
	const struct incstack__recording *r = &incstack__recording;
	const struct incstack__recorder *recorder = start_with("file=%s");

	ck_assert(recorder != NULL && recorder->on_alloc == incstack__record_alloc);
	ck_assert_int_eq(r->fd, -1);
	ck_assert_uint_eq(r->mode, INCSTACK_MODE_PATCH);
	ck_assert_uint_eq(r->interval, 1);
	ck_assert_int_eq(r->crosscheck, INCSTACK__CHECK_NONE);
	ck_assert_int_eq(r->follow, 0);
	ck_assert_int_eq(r->pid, getpid());
	ck_assert_str_eq(r->file, path);
	ck_assert_uint_eq(r->changes, 1);
	ck_assert_int_eq(r->on, 1);
	ck_assert_int_eq(r->wiped, 1);
	ck_assert_uint_eq(late.epoch, 6);
	ck_assert_uint_eq(late.live.epoch, 6);
	ck_assert_uint_eq(looks, 2);
	ck_assert_uint_eq(quiet, 1);
	ck_assert_uint_eq(loud, 1);
	ck_assert_uint_eq(published, 1);
	ck_assert_uint_eq(linker + ruled + closed + modules + checks, 5);
	ck_assert_uint_eq(loaded, 0);
	ck_assert_uint_eq(notes, 0);
	ck_assert_uint_eq(created.mode, INCSTACK_MODE_PATCH);
	ck_assert_uint_eq(created.distance, 0);
	ck_assert_uint_eq(created_embedder.size, sizeof(created_embedder));
	ck_assert(created_embedder.code.find_rule == created_embedder.code.find_rule_quickly);
	ck_assert(created_embedder.memory.allocate == incstack__record_allocate);
	ck_assert(created_embedder.memory.release == incstack__record_release);
	ck_assert(created_embedder.memory.allocate_traces == incstack__spool_chunk);
	ck_assert(created_embedder.memory.release_traces == incstack__spool_chunk_release);

	ck_assert_ptr_nonnull(
		start_with("interval=512;mode=full;crosscheck=own;follow=1;file=%s;mode=validate"));
	ck_assert_uint_eq(r->mode, INCSTACK_MODE_FULL);
	ck_assert_uint_eq(r->interval, 512);
	ck_assert_int_eq(r->crosscheck, INCSTACK__CHECK_OWN);
	ck_assert_uint_eq(loaded, 1);
	ck_assert_int_eq(r->follow, 1);
	/* A path may contain the separator of options. */
	ck_assert_str_eq(r->file + strlen(path), ";mode=validate");
	ck_assert_ptr_nonnull(start_with("modes=full;mode=validate;crosscheck=libunwind;file=%s"));
	ck_assert_uint_eq(r->mode, INCSTACK_MODE_VALIDATE);
	ck_assert_int_eq(r->crosscheck, INCSTACK__CHECK_LIBUNWIND);
	ck_assert_uint_eq(loaded, 2);
	ck_assert_ptr_nonnull(start_with("interval=0;file=%s"));
	ck_assert_uint_eq(r->interval, 1);
	ck_assert_ptr_nonnull(start_with("interval=-5;file=%s"));
	ck_assert_uint_eq(r->interval, 1);
}
END_TEST

START_TEST(kinds_of_recording)
{
	const struct incstack__recorder *heap = start_with("file=%s");
	const struct incstack__recorder *cpu;

	ck_assert_uint_eq(incstack__recording.kind, INCSTACK__TRACEFILE_OF_HEAP);
	ck_assert_ptr_null(created_embedder.signals.find_rule);
	ck_assert_ptr_null(heap->on_thread_begin);
	ck_assert_uint_eq(served, 0);
	cpu = start_with("kind=1;interval=1000000;file=%s");
	ck_assert_ptr_nonnull(cpu);
	ck_assert_uint_eq(incstack__recording.kind, INCSTACK__TRACEFILE_OF_CPU);
	ck_assert(created_embedder.code.find_rule == incstack__record_find_rule);
	ck_assert(created_embedder.signals.find_rule == incstack__record_find_rule);
	ck_assert(cpu->on_thread_begin == incstack__serve_thread);
	ck_assert_uint_eq(served, 1);
	ck_assert_int_eq(incstack__recording.elapsed, 0);
	ck_assert_ptr_nonnull(start_with("kind=1;elapsed=1;file=%s"));
	ck_assert_int_eq(incstack__recording.elapsed, 1);
}
END_TEST

/* ---- which file ------------------------------------------------------------------------------ */

/* The process that the tool started, which executes another program later. */
START_TEST(file_of_the_first_process)
{
	char text[2 * PATH + 2];

	ck_assert_ptr_nonnull(start_with("file=%s"));
	ck_assert_str_eq(opened[0], path);
	ck_assert_uint_eq(spools_renamed, 0);
	make(path);
	snprintf(text, sizeof(text), "pid=%ld;file=%%s", (long)getpid());
	ck_assert_ptr_nonnull(start_with(text));
	ck_assert(!exists(path) && exists(numbered_path[0]));
	ck_assert_str_eq(opened[1], path);
	ck_assert_uint_eq(spools_renamed, 1);
	snprintf(text, sizeof(text), "%s>%s", path, numbered_path[0]);
	ck_assert_str_eq(renamed[0], text);
	make(path); /* again: the next number */
	ck_assert_ptr_nonnull(start_with("file=%s"));
	ck_assert(exists(numbered_path[0]) && exists(numbered_path[1]));
	ck_assert_str_eq(noted_in, "");
}
END_TEST

/* What cannot be renamed or opened stays under its name, with a note. */
START_TEST(file_that_is_refused)
{
	char text[2 * PATH + 2];

	refused_opens = 1;
	ck_assert_ptr_null(start_with("file=%s"));
	ck_assert_str_eq(noted_in, ""); /* there is no file */
	make(path);
	refused_opens = 1 << 1;
	ck_assert_ptr_null(start_with("file=%s"));
	ck_assert(exists(path) && !exists(numbered_path[0]));
	ck_assert_uint_eq(spools_renamed, 2);
	snprintf(text, sizeof(text), "%s>%s", numbered_path[0], path);
	ck_assert_str_eq(renamed[1], text);
	ck_assert_str_eq(noted_in, path);
	noted_in[0] = 0;
	refuse("rename", 0, 1, EACCES);
	ck_assert_ptr_null(start_with("file=%s"));
	ck_assert_uint_eq(spools_renamed, 2);
	ck_assert_uint_eq(opens, 2);
	refused_opens = 1 << 2;
	refuse("rename", 1, 1, EACCES); /* the way back */
	ck_assert_ptr_null(start_with("file=%s"));
	refuse_nothing();
	ck_assert(!exists(path));
	ck_assert_str_eq(noted_in, "");
	ck_assert_uint_eq(notes, 0);
	ck_assert_int_eq(incstack__recording.on, 0);
	ck_assert_uint_eq(quiet, 4);
	ck_assert_uint_eq(loud, 4);
	incstack__recording.file[0] = 0;
	ck_assert_ptr_null(start_with("mode=full"));
	ck_assert_uint_eq(opens, 3);
}
END_TEST

/* A child has its own number, and is recorded only with --follow-children. */
START_TEST(file_of_a_child)
{
	make(path);
	ck_assert_ptr_null(start_with("pid=1;file=%s"));
	ck_assert_uint_eq(opens + quiet, 0);
	ck_assert_ptr_nonnull(start_with("pid=1;follow=1;file=%s"));
	ck_assert_str_eq(opened[0], numbered_path[0]);
	make(numbered_path[0]);
	refused_opens = 1 << 1;
	ck_assert_ptr_null(start_with("pid=1;follow=1;file=%s"));
	ck_assert_str_eq(opened[1], numbered_path[1]);
	ck_assert_str_eq(noted_in, path);
	ck_assert(exists(path));
}
END_TEST

/* Programs that this process executes know which process the tool started. */
START_TEST(environment_of_the_next_image)
{
	char configuration[PATH], expected[2 * PATH];
	char other[] = "INCSTACK_HEAPS=x";

	snprintf(configuration, sizeof(configuration), "file=%s", path);
	setenv("INCSTACK_HEAP", configuration, 1);
	putenv(other);
	ck_assert_ptr_nonnull(start_with("file=%s"));
	snprintf(expected, sizeof(expected), "pid=%ld;%s", (long)getpid(), configuration);
	ck_assert_str_eq(getenv("INCSTACK_HEAP"), expected);
	ck_assert_str_eq(getenv("INCSTACK_HEAPS"), "x");
	setenv("INCSTACK_HEAP", "unchanged", 1);
	ck_assert_ptr_nonnull(start_with("pid=1;follow=1;file=%s"));
	ck_assert_str_eq(getenv("INCSTACK_HEAP"), "unchanged");
}
END_TEST

/* ---- what is refused ------------------------------------------------------------------------- */

START_TEST(without_what_it_needs)
{
	bool *const missing[] = {&no_forks, &no_keys, &no_runtime,  &no_record,
				 &no_stack, &no_room, &no_libunwind};

	for (unsigned i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		*missing[i] = true;
		ck_assert_ptr_null(start_with("crosscheck=own;file=%s"));
		*missing[i] = false;
		ck_assert_uint_eq(notes, i + 1);
		ck_assert_int_eq(incstack__recording.on, 0);
		ck_assert_uint_eq(quiet, i + 1);
		ck_assert_uint_eq(loud, i + 1);
	}
	ck_assert_uint_eq(published + linker + modules + checks, 0);
	no_libunwind = true;
	ck_assert_ptr_nonnull(start_with("file=%s"));
}
END_TEST

/* ---- in a child ------------------------------------------------------------------------------- */

START_TEST(forked_child)
{
	static struct incstack__recording parent;
	struct incstack__recording *r = &incstack__recording;

	ck_assert_ptr_nonnull(
		start_with("interval=9;mode=validate;crosscheck=own;follow=1;file=%s"));
	parent = *r;
	parent.why = 3;
	parent.epoch = 8;
	parent.unloading = 2;
	parent.counter = 4;
	for (int i = 0; i < 3; i++) {
		memset(r, 0, sizeof(*r));
		refused_opens = i == 0 ? 1u << opens : 0;
		no_runtime = i == 1;
		again(&parent);
		ck_assert_int_eq(r->on, i == 2);
		ck_assert_uint_eq(forked, i == 2 ? 2 : 0);
	}
	ck_assert_str_eq(opened[(opens - 1) % 4], numbered_path[0]);
	ck_assert_int_eq(r->fd, -1);
	ck_assert_int_eq(r->pid, getpid());
	ck_assert_uint_eq(r->changes, 1);
	ck_assert_uint_eq(r->interval, 9);
	ck_assert_uint_eq(r->mode, INCSTACK_MODE_VALIDATE);
	ck_assert_uint_eq(r->why, 3);
	ck_assert_int_eq(r->crosscheck, INCSTACK__CHECK_OWN);
	ck_assert_int_eq(r->follow, 1);
	ck_assert_int_eq(r->wiped, parent.wiped);
	ck_assert_uint_eq(r->epoch, 8);
	ck_assert_uint_eq(r->unloading, 2);
	ck_assert_uint_eq(r->counter, 4);
	ck_assert_str_eq(r->file, path);
	ck_assert_uint_eq(checks, 2);
	ck_assert_uint_eq(published, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("start of the recorder");
	TCase *tests = tcase_create("start");

	tcase_add_checked_fixture(tests, make_folder, clean);
	tcase_add_test(tests, options_and_defaults);
	tcase_add_test(tests, kinds_of_recording);
	tcase_add_test(tests, file_of_the_first_process);
	tcase_add_test(tests, file_that_is_refused);
	tcase_add_test(tests, file_of_a_child);
	tcase_add_test(tests, environment_of_the_next_image);
	tcase_add_test(tests, without_what_it_needs);
	tcase_add_test(tests, forked_child);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
