/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 1000
 * incstack heap returns: 0
 * incstack heap equal: by_malloc by_others
 * incstack heap says: still live at exit 0 B
 *
 * Allocates in every way. Each allocation is recorded once, with the requested size; one that
 * fails is not recorded. A block that could not be resized still exists.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

enum { TIMES = 50, WAYS = 9, BYTES = 112 };
static volatile size_t huge = (size_t)1 << 62;

void free_sized(void *block, size_t bytes) __attribute__((weak));
void free_aligned_sized(void *block, size_t alignment, size_t bytes) __attribute__((weak));
void cfree(void *block) __attribute__((weak));

static void *volatile kept[WAYS];
static size_t usable; /* of the one that is not resized */
static void *volatile none;
static volatile size_t alignment = 64;

/* Nothing of this is an allocation. */
NOINLINE static int refuse(void)
{
	void *block = &block;
	void *const before = block;

	if (posix_memalign(&block, 3, BYTES) != EINVAL || block != before ||
	    posix_memalign(&block, alignment, huge) != ENOMEM || block != before)
		return 1;
	errno = 0;
	none = reallocarray(NULL, huge, 8);
	if (none != NULL || errno != ENOMEM)
		return 2;
	none = aligned_alloc(alignment, huge);
	none = none != NULL ? none : memalign(alignment, huge);
	none = none != NULL ? none : valloc(huge);
	none = none != NULL ? none : pvalloc(huge);
	none = none != NULL ? none : calloc(huge, 8);
	none = none != NULL ? none : realloc(NULL, huge);
	return none != NULL ? 3 : 0;
}

NOINLINE int by_others(void)
{
	void *block;

	if (posix_memalign(&block, alignment, BYTES) != 0)
		abort();
	kept[0] = block;
	kept[1] = aligned_alloc(alignment, BYTES);
	kept[2] = memalign(alignment, BYTES);
	kept[3] = valloc(BYTES);
	kept[4] = pvalloc(BYTES);
	kept[5] = reallocarray(NULL, BYTES / 8, 8);
	kept[6] = realloc(NULL, BYTES);
	kept[7] = calloc(BYTES / 8, 8);
	/* One that is not resized counts again, as far as it may be used. */
	kept[8] = calloc(1, BYTES);
	usable = malloc_usable_size(kept[8]);
	none = realloc(kept[8], huge);
	if (none != NULL)
		abort();
	none = realloc(kept[8], 0); /* frees it */
	kept[8] = NULL;
	const int error = refuse();
	__asm__ volatile("");
	return error;
}

NOINLINE void by_malloc(void)
{
	for (int i = 0; i < WAYS; i++)
		kept[i] = malloc(BYTES);
	free(kept[WAYS - 1]);
	kept[WAYS - 1] = malloc(usable);
	__asm__ volatile("");
}

static void release(void)
{
	for (int i = 0; i < WAYS; i++) {
		if (i % 4 == 0 && free_sized)
			free_sized(kept[i], BYTES);
		else if (i % 4 == 1 && free_aligned_sized)
			free_aligned_sized(kept[i], alignment, BYTES);
		else if (i % 4 == 2 && cfree)
			cfree(kept[i]);
		else
			free(kept[i]);
	}
}

int main(void)
{
	for (int i = 0; i < TIMES; i++) {
		const int error = by_others();

		if (error != 0)
			return error;
		release();
		by_malloc();
		release();
	}
	return 0;
}
