/* SPDX-License-Identifier: MIT
 *
 * Tests exceptions of a library that is linked with its own unwinder, through patched frames. No
 * function of another unwinder is called for them, and no trace is lost.
 */
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include "elf/symbols.h"

#include "../unit/run_suite.h"
#include "traced.h"

static int (*throw_with_own_unwinder)(int levels, int rethrown, void (*action)(void));

static void open_plugin(void)
{
	void *library = dlopen(OWN_UNWINDER, RTLD_NOW | RTLD_LOCAL);
	void *symbol;

	ck_assert_msg(library != NULL, "%s", dlerror());
	symbol = dlsym(library, "throw_with_own_unwinder");
	ck_assert_ptr_nonnull(symbol);
	memcpy(&throw_with_own_unwinder, &symbol, sizeof(symbol));
}

__attribute__((noinline)) static int below(int depth, int levels, int rethrown)
{
	int result;

	traced_sample();
	result = depth ? below(depth - 1, levels, rethrown)
		       : throw_with_own_unwinder(levels, rethrown, traced_sample);
	traced_sample();
	return result;
}

static const unsigned distances[] = {0, 1, 2, 3, 6};

/* The first exception meets thunks, whatever is between it and its handler. */
START_TEST(every_first_exception)
{
	open_plugin();
	for (int levels = 0; levels < 10; levels++) {
		traced_open(distances[_i], INCSTACK_MODE_PATCH);
		ck_assert_int_eq(below(2, levels, 0), levels + 1);
		ck_assert_int_eq(traced_check(), 0);
		ck_assert_uint_eq(traced_stats().stale, 0);
		traced_close();
	}
}
END_TEST

START_TEST(goes_over_to_validate)
{
	open_plugin();
	traced_open(distances[_i], INCSTACK_MODE_PATCH);
	for (int levels = 0; levels < 20; levels++)
		ck_assert_int_eq(below(levels % 5, levels, levels % 2), levels + 1 + levels % 2);
	ck_assert_int_eq(traced_check(), 0);
	ck_assert_uint_eq(traced_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert_uint_eq(traced_stats().foreign_unwinders, 1);
	ck_assert_uint_eq(traced_stats().stale, 0);
	traced_close();
}
END_TEST

/* The library has the older kind of hash table, libc has the other. */
START_TEST(exports_are_found)
{
	static const char *const names[] = {"dlsym", "dlopen", "backtrace", "getpid", "no_such_"};
	struct link_map *map;
	void *library;

	open_plugin();
	library = dlopen(OWN_UNWINDER, RTLD_NOW | RTLD_NOLOAD);
	ck_assert_int_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	ck_assert_uint_eq(incstack__elf_function(map, "throw_with_own_unwinder"),
			  (uintptr_t)throw_with_own_unwinder);
	ck_assert_uint_eq(incstack__elf_function(map, "_Unwind_GetIP"), 0);
	library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	ck_assert_int_eq(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_uint_eq(incstack__elf_function(map, names[i]),
				  (uintptr_t)dlsym(library, names[i]));
}
END_TEST

START_TEST(known_by_their_exports)
{
	open_plugin();
	ck_assert_int_eq(incstack_unwinder_known((uintptr_t)_Unwind_Backtrace), 1);
	ck_assert_int_eq(incstack_unwinder_known((uintptr_t)throw_with_own_unwinder), 0);
	ck_assert_int_eq(incstack_unwinder_known((uintptr_t)getpid), 0);
	ck_assert_int_eq(incstack_unwinder_known(0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("foreign unwinder");
	TCase *cases = tcase_create("exceptions");

	tcase_add_loop_test(cases, every_first_exception, 0, 5);
	tcase_add_loop_test(cases, goes_over_to_validate, 0, 5);
	tcase_add_test(cases, exports_are_found);
	tcase_add_test(cases, known_by_their_exports);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
