/* SPDX-License-Identifier: MIT
 *
 * For tests on the machine stack: the state of the calling thread's stack, whose frames keep
 * their frame pointers (a compiler option of the test), and a sample whose top is the caller of
 * take_sample.
 */
#ifndef REAL_STACK_H
#define REAL_STACK_H

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <incstack/incstack.h>

#include "trace/hooks.h"

static struct incstack_runtime *rt;
static struct incstack_stack *s;
static uint64_t samples;

__attribute__((unused)) static void open_runtime(unsigned distance)
{
	struct incstack_embedder embedder = {};
	struct incstack_options options = {};
	embedder.size = sizeof(embedder);
	embedder.code.frame_pointers = 1;
	options.size = sizeof(options);
	options.embedder = &embedder;
	options.distance = distance;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
}

static struct incstack_stack *open_stack(void)
{
	pthread_attr_t attr;
	void *low;
	size_t bytes;
	struct incstack_stack *result;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &bytes);
	pthread_attr_destroy(&attr);
	ck_assert_int_eq(incstack_stack_create(rt, (uintptr_t)low, (uintptr_t)low + bytes, &result),
			 0);
	return result;
}

__attribute__((noinline)) static void take_sample(void)
{
	const uintptr_t *fp = (const uintptr_t *)__builtin_frame_address(0);
	struct incstack_top top = {};
	top.pc = fp[1];
	top.sp = (uintptr_t)(fp + 2);
	top.fp = fp[0];
	ck_assert_int_eq(incstack_stack_sample(s, samples++, 1, &top), 0);
}

__attribute__((unused)) static struct incstack_stats stats_of_stack(void)
{
	struct incstack_stats stats = {};
	stats.size = sizeof(stats);
	ck_assert_int_eq(incstack_stack_stats(s, &stats), 0);
	return stats;
}

static void close_all(void)
{
	ck_assert_int_eq(incstack__stack_verify(s), 0);
	ck_assert_uint_eq(incstack__stack_broken(s), 0);
	incstack_stack_destroy(s);
	incstack_runtime_destroy(rt);
}

#endif
