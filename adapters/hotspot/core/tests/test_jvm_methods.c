/* SPDX-License-Identifier: MIT
 *
 * Method keys: the same from every thread, and never used for another method, whatever goes.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../methods.h"
#include "run_suite.h"

enum { METHODS = 2000, THREADS = 4, CAPACITY = 1 << 14 };

static struct incstack__methods *methods;
static uint32_t keys[THREADS][METHODS];

/* Methods as a virtual machine places them, one address twice in other bits. */
static uintptr_t address(int i)
{
	return 0x7f0000000000u + (uintptr_t)i % 1000 * 344 +
	       (uintptr_t)(i / 1000) * (CAPACITY << 6);
}

static void *ask(void *argument)
{
	int me = (int)(intptr_t)argument;
	for (int i = 0; i < METHODS; i++) {
		int m = me % 2 ? METHODS - 1 - i : i;
		keys[me][m] = incstack__method_key(methods, address(m));
	}
	return NULL;
}

START_TEST(all_threads_get_the_same_keys)
{
	pthread_t threads[THREADS];
	uint64_t count, refused;
	methods = incstack__methods_create(CAPACITY);
	for (intptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	static char used[CAPACITY + 1];
	for (int m = 0; m < METHODS; m++) {
		for (int i = 1; i < THREADS; i++)
			ck_assert_uint_eq(keys[i][m], keys[0][m]);
		ck_assert(keys[0][m] && !used[keys[0][m]]++);
		const struct incstack__method_names *names;
		ck_assert_uint_eq(incstack__method_of(methods, keys[0][m], &names), address(m));
		ck_assert_uint_eq(incstack__method_find(methods, address(m)), keys[0][m]);
	}
	incstack__methods_count(methods, &count, &refused);
	ck_assert_uint_eq(count, METHODS);
	ck_assert_uint_eq(refused, 0);
	incstack__methods_destroy(methods);
}
END_TEST

/* Methods that all look for the same place first, one for each thread. */
static uintptr_t rival(int round, int thread)
{
	return ((uintptr_t)thread * CAPACITY + (uintptr_t)round * THREADS) << 6;
}

static pthread_barrier_t barrier;
enum { ROUNDS = METHODS };

static void *compete(void *argument)
{
	int me = (int)(intptr_t)argument;
	for (int i = 1; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		keys[me][i] = incstack__method_key(methods, rival(i, me));
	}
	return NULL;
}

START_TEST(rivals_for_a_place_get_different_keys)
{
	pthread_t threads[THREADS];
	const struct incstack__method_names *names;
	methods = incstack__methods_create(CAPACITY);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, compete, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int t = 0; t < THREADS; t++)
		for (int i = 1; i < ROUNDS; i++)
			ck_assert_uint_eq(incstack__method_of(methods, keys[t][i], &names),
					  rival(i, t));
	pthread_barrier_destroy(&barrier);
	incstack__methods_destroy(methods);
}
END_TEST

START_TEST(a_method_that_went_keeps_its_names)
{
	const struct incstack__method_names *names;
	methods = incstack__methods_create(CAPACITY);
	uint32_t key = incstack__method_key(methods, 0x1000);
	incstack__method_gone(methods, key, incstack__method_names_copy("LA;", "run", "()V", NULL));
	ck_assert_uint_eq(incstack__method_find(methods, 0x1000), 0);
	uint32_t next = incstack__method_key(methods, 0x1000);
	ck_assert(next && next != key);
	ck_assert_uint_eq(incstack__method_of(methods, key, &names), 0);
	ck_assert_str_eq(names->class_signature, "LA;");
	ck_assert_str_eq(names->name, "run");
	ck_assert_str_eq(names->signature, "()V");
	ck_assert_ptr_null(names->source_file);
	ck_assert_uint_eq(incstack__method_of(methods, next, &names), 0x1000);
	incstack__methods_destroy(methods);
}
END_TEST

START_TEST(a_full_table_refuses)
{
	const struct incstack__method_names *names;
	uint64_t count, refused;
	methods = incstack__methods_create(64);
	for (uintptr_t i = 0; i < 64; i++)
		ck_assert(incstack__method_key(methods, 0x10000 + i * 8));
	ck_assert_uint_eq(incstack__method_key(methods, 0x20000), 0);
	ck_assert_uint_eq(incstack__method_find(methods, 0x20000), 0);
	incstack__methods_count(methods, &count, &refused);
	ck_assert_uint_eq(count, 64);
	ck_assert_uint_eq(refused, 1);
	ck_assert_uint_eq(incstack__method_of(methods, 0, &names), 0);
	ck_assert_uint_eq(incstack__method_of(methods, 65, &names), 0);
	incstack__methods_destroy(methods);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("method keys");
	TCase *tc = tcase_create("method keys");
	tcase_add_test(tc, all_threads_get_the_same_keys);
	tcase_add_test(tc, rivals_for_a_place_get_different_keys);
	tcase_add_test(tc, a_method_that_went_keeps_its_names);
	tcase_add_test(tc, a_full_table_refuses);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
