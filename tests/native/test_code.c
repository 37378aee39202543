/* SPDX-License-Identifier: MIT
 *
 * Tests code that is loaded and unloaded. Code without unwind information truncates the traces
 * through it and no others. If a library is mapped where another one was, the rules of the first
 * are not used for it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "checked.h"

typedef void visit(void (*callee)(void));

static struct incstack_stack *stack;
static visit *visiting;

static OPAQUE void sample_once(void)
{
	ck_assert_int_eq(sample_checked(stack), 0);
}

static OPAQUE void through(void)
{
	visiting(sample_once);
	sample_once();
	visiting(sample_once);
}

static OPAQUE void nest(int depth, void (*action)(void))
{
	if (depth == 0)
		action();
	else
		nest(depth - 1, action);
	__asm__ volatile("" ::: "memory");
}

static int reference;

static OPAQUE void walk_with_reference(void)
{
	struct incstack_frame frames[CHECKED_FRAMES];
	reference = incstack_native_walk(frames, CHECKED_FRAMES);
}

START_TEST(undescribed_code)
{
	/* sub $40, %rsp; call *%rdi; add $40, %rsp; ret */
	static const unsigned char bytes[] = {0x48, 0x83, 0xec, 40, 0xff, 0xd7,
					      0x48, 0x83, 0xc4, 40, 0xc3};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(page != MAP_FAILED);
	memcpy(page, bytes, sizeof(bytes));
	memcpy(&visiting, &page, sizeof(page));
	visiting(walk_with_reference);
	if (reference <= 1) { /* its guess found nothing: nothing to compare with */
		munmap(page, 4096);
		return;
	}
	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	nest(6, sample_once);
	ck_assert_uint_eq(compare_all(stack), 0);
	nest(4, through);
	ck_assert_uint_gt(compare_all(stack), 0);
	nest(5, sample_once);
	ck_assert_uint_eq(compare_all(stack), 0);
	ck_assert_uint_gt(checked_stats(stack).returns, 0);
	checked_close(stack);
	munmap(page, 4096);
}
END_TEST

static void visit_library(const char *name, const char *function)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/tests/preload/%s.so", getenv("INCSTACK_BUILD_DIR"), name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ck_assert_ptr_nonnull(library);
	*(void **)&visiting = dlsym(library, function);
	ck_assert(visiting != NULL);
	nest(4, through);
	ck_assert_int_eq(dlclose(library), 0);
	ck_assert_int_eq(incstack_runtime_code_unloading(checked_runtime, NULL, 0, UINTPTR_MAX), 0);
}

START_TEST(libraries_in_one_place)
{
	visit *before;
	int same_place = 0;

	checked_open(INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	for (int i = 0; i < 10; i++) {
		visit_library("stacks_unload_a", "visit_a");
		before = visiting;
		visit_library("stacks_unload_b", "visit_b");
		same_place += before == visiting;
	}
	ck_assert_int_gt(same_place, 0);
	ck_assert_uint_eq(compare_all(stack), 0);
	checked_close(stack);
}
END_TEST

static OPAQUE void sample_truncated(void)
{
	struct incstack_tree *tree = NULL;

	ck_assert_int_eq(sample_native(stack, 0, 1), 0);
	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	ck_assert_uint_gt(tree->truncated, 0);
	incstack_tree_release(tree);
}

/* The same code as the library's, at its place, without unwind information. */
static void visit_generated(void)
{
	static const unsigned char bytes[] = {0x48, 0x83, 0xec, 72, 0xff, 0xd7,
					      0x48, 0x83, 0xc4, 72, 0xc3};
	char *const page = (char *)((uintptr_t)visiting & ~(uintptr_t)4095);

	ck_assert_ptr_eq(mmap(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 page);
	memcpy(page + ((uintptr_t)visiting - (uintptr_t)page), bytes, sizeof(bytes));
	visiting(sample_truncated);
	munmap(page, 8192);
}

/* That an address has no rule must not be remembered for good: code may appear without notice. */
START_TEST(library_after_generated_code)
{
	visit *before;

	checked_open(_i % 2 ? INCSTACK_MODE_VALIDATE : INCSTACK_MODE_PATCH, (unsigned)_i + 1);
	stack = checked_thread();
	visit_library("stacks_unload_a", "visit_a");
	ck_assert_uint_eq(compare_all(stack), 0);
	before = visiting;
	visit_generated();
	visit_library("stacks_unload_a", "visit_a");
	ck_assert(before == visiting);
	ck_assert_uint_eq(compare_all(stack), 0);
	checked_close(stack);
}
END_TEST

/* Sanitized builds have no recorder, and none of the libraries for its tests. */
static int have_libraries(void)
{
	char path[4096];
	const char *build = getenv("INCSTACK_BUILD_DIR");

	snprintf(path, sizeof(path), "%s/tests/preload/stacks_unload_b.so", build ? build : "");
	return access(path, R_OK) == 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("code");
	TCase *tc = tcase_create("code");

	tcase_add_loop_test(tc, undescribed_code, 0, 4);
	if (have_libraries())
		tcase_add_loop_test(tc, libraries_in_one_place, 0, 4);
	if (have_libraries())
		tcase_add_loop_test(tc, library_after_generated_code, 0, 4);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
