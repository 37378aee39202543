/* SPDX-License-Identifier: MIT
 *
 * Shared by the libraries that stand in for functions of libc. Each of their functions takes a lock,
 * allocates while it has the lock, and then calls libc's function. mtx_lock calls no function that a
 * library could replace.
 */
#ifndef LOCKS_H
#define LOCKS_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

static mtx_t lock;
static once_flag made = ONCE_FLAG_INIT;

static void make(void)
{
	if (mtx_init(&lock, mtx_plain) != thrd_success)
		abort();
}

static void take(void)
{
	call_once(&made, make);
	mtx_lock(&lock);
}

static void give(void)
{
	mtx_unlock(&lock);
}

static void note(void)
{
	void *volatile block;

	take();
	block = malloc(20);
	free(block);
	give();
}

__attribute__((constructor)) static void watch_forks(void)
{
	if (pthread_atfork(take, give, give) != 0)
		abort();
}

/* Defines a function with these parameters, which calls libc's with these arguments. */
#define LOCKED(type, name, parameters, arguments) \
	type name parameters \
	{ \
		static __typeof__(&(name)) next; \
\
		if (next == NULL) \
			next = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name); \
		note(); \
		return next arguments; \
	}

#endif
