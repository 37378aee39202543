/* SPDX-License-Identifier: MIT
 *
 * The spool, and what it calls, for its tests. Included after spool.c and spool_file.c.
 */
#ifndef INCSTACK_SPOOLED_H
#define INCSTACK_SPOOLED_H

#include <stdbool.h>
#include <stdlib.h>

#include <check.h>

#include "record_folder.h"

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static char trace[64];
static unsigned notes, locked, mapped, unmapped;
static bool no_memory, is_locked_elsewhere;

/* The spool keeps this memory until the process ends, so it is remembered here: a leak check then
 * finds it. */
void *incstack__record_map(size_t bytes)
{
	static void *kept[16];

	if (no_memory || mapped == sizeof(kept) / sizeof(kept[0]))
		return mapped++, NULL;
	kept[mapped] = calloc(1, bytes);
	return kept[mapped++];
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	unmapped++;
	ck_assert_int_eq(munmap(memory, bytes), 0);
}

void incstack__record_make_private(void *memory, size_t bytes)
{
	incstack__record_unmap((unsigned char *)memory - GUARD_BYTES, bytes + GUARD_BYTES);
}

void incstack__record_note(enum incstack__tracefile_note note)
{
	notes += note == INCSTACK__NOTE_NO_SHARED_MEMORY;
}

/* As if another thread had the lock, or not. */
bool incstack__lock_try(enum incstack__lock lock)
{
	ck_assert_int_eq(lock, INCSTACK__LOCK_SPOOL);
	if (is_locked_elsewhere)
		return false;
	ck_assert_uint_eq(locked++, 0);
	return true;
}

void incstack__lock_take(enum incstack__lock lock)
{
	ck_assert_int_eq(lock, INCSTACK__LOCK_SPOOL);
	ck_assert_uint_eq(locked++, 0);
}

void incstack__lock_give(enum incstack__lock lock)
{
	ck_assert_int_eq(lock, INCSTACK__LOCK_SPOOL);
	ck_assert_uint_eq(--locked, 0);
}

static void make_folder(void)
{
	make_folder_for("trace" INCSTACK__SPOOL_SUFFIX);
	snprintf(trace, sizeof(trace), "%s/trace", folder);
	incstack__recording.pid = getpid();
	incstack__recording.wiped = 1;
}

static bool in_spool(const void *memory)
{
	return incstack__spool_file_offset(memory) != 0;
}

#endif
