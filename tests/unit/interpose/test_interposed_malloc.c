/* SPDX-License-Identifier: MIT
 *
 * Tests the interposed allocator, which is the allocator of this whole program: what it reports,
 * and that it finds libc's functions at a first call. The rest of the stub is missing here.
 */
#include <dlfcn.h>
#include <stdbool.h>

#include "interpose/malloc.c"

#include <check.h>

#include "run_suite.h"

/* ---- in place of the recorder, of libc's functions and of the search for them ------------- */

enum { EVENTS = 16 };

static struct event {
	const void *block; /* negative size: freed */
	long bytes;
} events[EVENTS];
static unsigned count;

static void add(const void *block, long bytes)
{
	if (count < EVENTS)
		events[count] = (struct event){block, bytes};
	count++;
}

static void on_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	add(block, caller.slot != NULL && caller.fp != 0 ? (long)bytes : 0);
}

static void on_free(const void *block)
{
	add(block, -1);
}

static const struct incstack__recorder recorder = {.on_alloc = on_alloc, .on_free = on_free};
const struct incstack__recorder *_Atomic incstack__stub_recorder;

/* dlsym allocates, and frees the text of an earlier error. */
static void *known_free, *known_calloc;

void *incstack__stub_find(void *_Atomic *cache, const char *name)
{
	if (known_free != NULL && strcmp(name, "free") == 0)
		*cache = known_free;
	else if (known_calloc != NULL && strcmp(name, "calloc") == 0)
		*cache = known_calloc;
	else
		*cache = dlsym(RTLD_NEXT, name);
	return *cache;
}

void *incstack__stub_next(void *_Atomic *cache, const char *name)
{
	return incstack__stub_find(cache, name);
}

/* The events since the last call. An assertion would allocate before they are read. */
static unsigned seen(struct event *out)
{
	const unsigned found = count;

	incstack__stub_recorder = NULL;
	memcpy(out, events, sizeof(events));
	count = 0;
	return found;
}

static volatile size_t too_much = PTRDIFF_MAX; /* for any allocator */

static void begin(void)
{
	count = 0;
	incstack__stub_recorder = &recorder;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* A call that comes before the constructor finds its function itself. */
START_TEST(found_at_the_first_call)
{
	struct event got[EVENTS];

	known_calloc = calloc_cache;
	calloc_cache = NULL;
	known_free = free_cache;
	free_cache = NULL;
	begin();
	void *volatile block = calloc(3, 7);
	free(block);
	ck_assert_uint_eq(seen(got), 2);
	ck_assert_ptr_nonnull(block);
	ck_assert_int_eq(got[0].bytes, 3 * 7);
	ck_assert_ptr_eq(got[1].block, got[0].block);
	ck_assert_ptr_nonnull(calloc_cache);
	ck_assert_ptr_nonnull(free_cache);
}
END_TEST

/* The old block goes before the call; it comes back if the call fails. */
START_TEST(resized)
{
	struct event got[EVENTS];
	void *volatile block = malloc(40);
	const void *volatile old = block;

	begin();
	block = realloc(block, 4000);
	ck_assert_uint_eq(seen(got), 2);
	ck_assert_ptr_eq(got[0].block, old);
	ck_assert_int_eq(got[0].bytes, -1);
	ck_assert_ptr_eq(got[1].block, block);
	ck_assert_int_eq(got[1].bytes, 4000);

	begin();
	const bool failed = realloc(block, too_much) == NULL;
	ck_assert_uint_eq(seen(got), 2);
	ck_assert(failed);
	ck_assert_int_eq(got[0].bytes, -1);
	ck_assert_ptr_eq(got[1].block, block);
	ck_assert_int_ge(got[1].bytes, 4000);

	errno = 0;
	begin();
	const bool overflowed = reallocarray(block, 2 * too_much, 2) == NULL && errno == ENOMEM;
	ck_assert_uint_eq(seen(got), 0);
	ck_assert(overflowed);

	begin();
	block = realloc(block, 0); /* as free */
	ck_assert_uint_eq(seen(got), 1);
	ck_assert_ptr_null(block);

	begin();
	const bool none = realloc(NULL, too_much) == NULL;
	ck_assert_uint_eq(seen(got), 0);
	ck_assert(none);
}
END_TEST

/* A failed allocation is not reported. Without a recorder nothing is reported. */
START_TEST(refused)
{
	struct event got[EVENTS];
	void *block = got;

	begin();
	const bool all = malloc(too_much) == NULL && calloc(2, too_much) == NULL &&
			 aligned_alloc(64, too_much) == NULL &&
			 posix_memalign(&block, 64, too_much) == ENOMEM &&
			 posix_memalign(&block, 3, 8) == EINVAL && memalign(64, too_much) == NULL;
	free(NULL);
	ck_assert_uint_eq(seen(got), 0);
	ck_assert(all);
	ck_assert_ptr_eq(block, got);
}
END_TEST

START_TEST(reported)
{
	struct event got[EVENTS];
	static const long sizes[] = {11, 6 * 7, 64, 96, 24, 5, 33};
	void *volatile block[7];

	begin();
	block[0] = malloc(11);
	block[1] = calloc(6, 7);
	block[2] = aligned_alloc(64, 64);
	block[3] = memalign(32, 96);
	void *of_posix = NULL;
	const int error = posix_memalign(&of_posix, 16, 24);
	block[4] = of_posix;
	block[5] = valloc(5);
	block[6] = pvalloc(33);
	ck_assert_uint_eq(seen(got), 7);
	ck_assert_int_eq(error, 0);
	for (int i = 0; i < 7; i++) {
		ck_assert_ptr_eq(got[i].block, block[i]);
		ck_assert_int_eq(got[i].bytes, sizes[i]);
	}
	begin();
	free_sized(block[0], 11);
	free_aligned_sized(block[2], 64, 64);
	cfree(block[3]);
	free(block[1]);
	ck_assert_uint_eq(seen(got), 4);
	ck_assert_ptr_eq(got[0].block, block[0]);
	ck_assert_ptr_eq(got[1].block, block[2]);
	ck_assert_ptr_eq(got[2].block, block[3]);
	ck_assert_ptr_eq(got[3].block, block[1]);
	free(block[4]);
	free(block[5]);
	free(block[6]);
}
END_TEST

/* An allocator that has free_sized gets the size. */
static unsigned freed_by_size, freed;

static void real_free(void *block)
{
	(void)block;
	freed++;
}

static void real_free_sized(void *block, size_t bytes)
{
	freed_by_size += bytes == 11;
	free_next()(block);
}

START_TEST(freed_by_size_where_it_can_be)
{
	struct event got[EVENTS];
	void *const saved = free_sized_cache;
	void *volatile block = malloc(11);

	free_sized_cache = (void *)real_free_sized;
	begin();
	free_sized(block, 11);
	ck_assert_uint_eq(seen(got), 1);
	ck_assert_uint_eq(freed_by_size, 1);
	ck_assert_ptr_eq(got[0].block, block);
	free_sized_cache = NULL;
	void *const saved_free = free_cache;
	free_cache = (void *)real_free;
	free(got);
	free_sized(got, sizeof(got));
	free_cache = saved_free;
	ck_assert_uint_eq(freed, 2);
	free_sized_cache = saved;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interposed malloc");
	TCase *tests = tcase_create("blocks");

	tcase_add_test(tests, found_at_the_first_call);
	tcase_add_test(tests, resized);
	tcase_add_test(tests, refused);
	tcase_add_test(tests, reported);
	tcase_add_test(tests, freed_by_size_where_it_can_be);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
