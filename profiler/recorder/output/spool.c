/* SPDX-License-Identifier: MIT
 *
 * Memory that outlives the process. What threads record is in a file beside the trace file, mapped
 * shared, until it is written as a block (spool_file.c). If the file cannot grow, private memory is
 * used, and a kill loses its contents. Here the memory is cut into pieces of the sizes that are in
 * use, and pieces that were released are used again.
 *
 * A fork wipes nothing of this. A child that knows of the fork gives the memory up. A child whose
 * fork was not announced never gets here.
 */
#include <stdatomic.h>
#include <string.h>

#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "spool_file.h"

enum {
	RECORD_BYTES = INCSTACK__SPOOL_RECORD_BYTES + INCSTACK__SPOOL_EVENT_BYTES,
	ROOM_SIZES = 9, /* powers of two from ROOM_LEAST to WALK_BYTES_MOST */
};
_Static_assert(INCSTACK__SPOOL_ROOM_LEAST << (ROOM_SIZES - 1) == INCSTACK__SPOOL_WALK_BYTES_MOST &&
		       INCSTACK__SPOOL_EVENT_BYTES_MOST <= INCSTACK__SPOOL_WALK_BYTES_MOST,
	       "sizes of rooms");

/* A piece that is not in use. Its first word links to the next. */
struct piece {
	struct piece *next;
};

struct pieces {
	struct piece *free;
	struct piece *_Atomic returned; /* by handlers of ticks, without the lock */
};

static struct spool {
	_Atomic size_t users;  /* records in use */
	_Atomic size_t wanted; /* bytes that a handler did not find */
	struct pieces records;
	struct pieces chunks;
	struct pieces rooms[ROOM_SIZES]; /* logs that do not follow a record, and walks */
} spool;

/* Returns a new piece, in the file if possible. In the handler of a tick, only memory that the file
 * already has is available. */
static void *cut(size_t bytes)
{
	void *memory = incstack__spool_file_cut(bytes);

	if (memory || incstack__record_local.handling)
		return memory;
	incstack__record_note(INCSTACK__NOTE_NO_SHARED_MEMORY);
	return incstack__record_map(bytes);
}

void incstack__spool_want(size_t bytes)
{
	if (bytes > atomic_load_explicit(&spool.wanted, memory_order_relaxed))
		atomic_store_explicit(&spool.wanted, bytes, memory_order_relaxed);
}

/* Each thread may soon need memory in its handler. The memory for many threads is limited. */
void incstack__spool_ahead(void)
{
	enum { AHEAD = 2 << 20, AHEAD_OF_USER = 3 * INCSTACK__CHUNK_BYTES, AHEAD_MOST = 64 << 20 };
	size_t bytes;

	incstack__lock_take(INCSTACK__LOCK_SPOOL);
	bytes = AHEAD + atomic_load_explicit(&spool.users, memory_order_relaxed) * AHEAD_OF_USER +
		atomic_load_explicit(&spool.wanted, memory_order_relaxed);
	incstack__spool_file_ahead(bytes < AHEAD_MOST ? bytes : AHEAD_MOST);
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
}

/* Returns a free piece, or null. The lock is held. Handlers only add to `returned`. */
static struct piece *take_free(struct pieces *pieces)
{
	struct piece *piece;

	if (!pieces->free)
		pieces->free =
			atomic_exchange_explicit(&pieces->returned, NULL, memory_order_acquire);
	piece = pieces->free;
	if (piece)
		pieces->free = piece->next;
	return piece;
}

static void *take(struct pieces *pieces, size_t bytes, bool *is_new)
{
	struct piece *piece;

	if (!incstack__record_lock(INCSTACK__LOCK_SPOOL))
		return NULL;
	piece = take_free(pieces);
	*is_new = !piece;
	if (!piece)
		piece = cut(bytes);
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
	return piece;
}

static void give_without_lock(struct pieces *pieces, struct piece *piece)
{
	piece->next = atomic_load_explicit(&pieces->returned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&pieces->returned, &piece->next, piece,
						      memory_order_release, memory_order_relaxed))
		;
}

static void give(struct pieces *pieces, void *memory)
{
	struct piece *piece = memory;

	if (!incstack__record_lock(INCSTACK__LOCK_SPOOL)) {
		give_without_lock(pieces, piece);
		return;
	}
	piece->next = pieces->free;
	pieces->free = piece;
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
}

void *incstack__spool_chunk(void *context, size_t bytes)
{
	bool is_new;

	(void)context;
	return bytes == INCSTACK__CHUNK_BYTES ? take(&spool.chunks, bytes, &is_new) : NULL;
}

void incstack__spool_chunk_release(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)bytes;
	give(&spool.chunks, memory);
}

/* Each record is added once and stays in the list for ever. */
void incstack__spool_list(struct incstack__spool_live *live)
{
	struct incstack__spool_header *header = incstack__spool_file_header();
	const uint64_t offset = incstack__spool_file_offset((const unsigned char *)live -
							    INCSTACK__SPOOL_LIVE_OFFSET);

	if (offset == 0)
		return;
	incstack__lock_take(INCSTACK__LOCK_SPOOL);
	live->next = header->records;
	atomic_signal_fence(memory_order_seq_cst);
	header->records = offset;
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
}

void *incstack__spool_page(bool *is_new)
{
	void *memory = take(&spool.records, RECORD_BYTES, is_new);

	if (memory)
		atomic_fetch_add_explicit(&spool.users, 1, memory_order_relaxed);
	return memory;
}

void incstack__spool_page_release(void *memory)
{
	atomic_fetch_sub_explicit(&spool.users, 1, memory_order_relaxed);
	give(&spool.records, memory);
}

static struct pieces *rooms_of(size_t bytes)
{
	return &spool.rooms[__builtin_ctzl(bytes / INCSTACK__SPOOL_ROOM_LEAST)];
}

void *incstack__spool_room(size_t bytes)
{
	bool is_new;

	return take(rooms_of(bytes), bytes, &is_new);
}

void incstack__spool_room_release(void *memory, size_t bytes)
{
	if (memory)
		give(rooms_of(bytes), memory);
}

void incstack__spool_leave(void)
{
	incstack__spool_file_leave();
	memset(&spool, 0, sizeof(spool));
}

void incstack__spool_make_private(void)
{
	incstack__spool_file_make_private();
	memset(&spool, 0, sizeof(spool));
}
