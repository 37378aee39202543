/* SPDX-License-Identifier: MIT
 *
 * The start of the recorder, without its other parts and the core: what the configuration means, which
 * process image writes which file, and that a refusal leaves a program that is not recorded.
 */
#include <check.h>
#include <stdlib.h>

#include "refused.h"

#include "recorder/cpu/cpu_kind.c"

const struct incstack__kind incstack__kind_wall; /* starts as a CPU profile does */
#include "recorder/heap/heap_kind.c"
#include "recorder/start.c"

#include "record_folder.h"
#include "run_suite.h"
#include "start_alone.h"

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

	ck_assert(recorder != NULL && recorder->on_alloc == incstack__heap_on_alloc);
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
	ck_assert(created_embedder.memory.allocate == incstack__wiped_allocate);
	ck_assert(created_embedder.memory.release == incstack__wiped_release);
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

	ck_assert_uint_eq(incstack__kind->number, INCSTACK__TRACEFILE_OF_HEAP);
	ck_assert_ptr_null(created_embedder.signals.find_rule);
	ck_assert_ptr_null(heap->on_thread_begin);
	ck_assert_uint_eq(begun, 0);
	cpu = start_with("kind=1;interval=1000000;file=%s");
	ck_assert_ptr_nonnull(cpu);
	ck_assert_uint_eq(incstack__kind->number, INCSTACK__TRACEFILE_OF_CPU);
	ck_assert(created_embedder.code.find_rule == incstack__record_find_rule);
	ck_assert(created_embedder.signals.find_rule == incstack__record_find_rule);
	ck_assert(cpu->on_thread_begin == incstack__serve_thread);
	ck_assert_uint_eq(begun, 1);
	ck_assert_uint_eq(chosen, 1);
	ck_assert_uint_eq(ticking, 1);
	ck_assert_int_eq(incstack__recording.ticks, INCSTACK__TICKS_OF_ANY);
	ck_assert_ptr_nonnull(start_with("kind=1;ticks=timers;file=%s"));
	ck_assert_int_eq(incstack__recording.ticks, INCSTACK__TICKS_OF_TIMERS);
	ck_assert_ptr_nonnull(start_with("kind=1;ticks=events;file=%s"));
	ck_assert_int_eq(incstack__recording.ticks, INCSTACK__TICKS_OF_EVENTS);
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
