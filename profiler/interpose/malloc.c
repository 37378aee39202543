/* SPDX-License-Identifier: MIT
 *
 * Interposes the allocator. Each entry point has a frame pointer, so the frame of its caller is
 * known without unwinding. The sample starts there.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

INCSTACK__REAL(malloc)
INCSTACK__REAL(free)
INCSTACK__REAL(calloc)
INCSTACK__REAL(realloc)
INCSTACK__REAL(aligned_alloc)
INCSTACK__REAL(memalign)
INCSTACK__REAL(posix_memalign)
INCSTACK__REAL(valloc)
INCSTACK__REAL(pvalloc)

static inline void note_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (__builtin_expect(recorder && block, 1))
		recorder->on_alloc(block, bytes, caller);
}

static inline void note_free(const void *block)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (__builtin_expect(recorder && block, 1))
		recorder->on_free(block);
}

INCSTACK__INTERPOSED void *malloc(size_t bytes)
{
	void *block = malloc_next()(bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, bytes, caller);
	return block;
}

INCSTACK__INTERPOSED void free(void *block)
{
	note_free(block);
	free_next()(block);
}

/* Two functions of C23 and a function that libc has removed. libc or the allocator may lack each of
 * them. */
void free_sized(void *block, size_t bytes);
void free_aligned_sized(void *block, size_t alignment, size_t bytes);
void cfree(void *block);

#define OPTIONAL_FREE(name, parameters, arguments) \
	static void *_Atomic name##_cache; \
	__attribute__((constructor(101))) static void name##_find(void) \
	{ \
		incstack__stub_find(&name##_cache, #name); \
	} \
	INCSTACK__INTERPOSED void name parameters \
	{ \
		const __typeof__(&(name)) real = (__typeof__(&(name)))name##_cache; \
\
		if (!real) { \
			free(block); \
			return; \
		} \
		note_free(block); \
		real arguments; \
	}
OPTIONAL_FREE(free_sized, (void *block, size_t bytes), (block, bytes))
OPTIONAL_FREE(free_aligned_sized, (void *block, size_t alignment, size_t bytes),
	      (block, alignment, bytes))
OPTIONAL_FREE(cfree, (void *block), (block))

INCSTACK__INTERPOSED void *calloc(size_t count, size_t bytes)
{
	void *block = calloc_next()(count, bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, count * bytes, caller);
	return block;
}

/* The old block is reported before the call, because after it another thread may get the same
 * address. If the call fails, the old block still exists and is reported as new. */
static void *resize(void *old, size_t bytes, struct incstack__caller caller)
{
	void *block;

	note_free(old);
	block = realloc_next()(old, bytes);
	if (block)
		note_alloc(block, bytes, caller);
	else if (bytes != 0 && old)
		note_alloc(old, malloc_usable_size(old), caller);
	return block;
}

INCSTACK__INTERPOSED void *realloc(void *old, size_t bytes)
{
	INCSTACK__CALLER(caller);

	return resize(old, bytes, caller);
}

INCSTACK__INTERPOSED void *reallocarray(void *old, size_t count, size_t bytes)
{
	size_t total;
	INCSTACK__CALLER(caller);

	if (__builtin_mul_overflow(count, bytes, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(old, total, caller);
}

INCSTACK__INTERPOSED void *aligned_alloc(size_t alignment, size_t bytes)
{
	void *block = aligned_alloc_next()(alignment, bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, bytes, caller);
	return block;
}

INCSTACK__INTERPOSED void *memalign(size_t alignment, size_t bytes)
{
	void *block = memalign_next()(alignment, bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, bytes, caller);
	return block;
}

INCSTACK__INTERPOSED int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	const int error = posix_memalign_next()(out, alignment, bytes);
	INCSTACK__CALLER(caller);

	if (error == 0)
		note_alloc(*out, bytes, caller);
	return error;
}

INCSTACK__INTERPOSED void *valloc(size_t bytes)
{
	void *block = valloc_next()(bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, bytes, caller);
	return block;
}

INCSTACK__INTERPOSED void *pvalloc(size_t bytes)
{
	void *block = pvalloc_next()(bytes);
	INCSTACK__CALLER(caller);

	note_alloc(block, bytes, caller);
	return block;
}
