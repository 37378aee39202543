/* SPDX-License-Identifier: MIT
 *
 * Finds the resident bytes of blocks; see resident.h. Blocks and pages are both in the order of their addresses, so one
 * walk over the two suffices.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <incstack/incstack.h>

#include "resident.h"

typedef uint64_t by_state[INCSTACK__PAGES];

/* What was found in an area. */
struct use {
	by_state all;    /* bytes of its pages */
	by_state live;   /* bytes of live blocks */
	by_state shared; /* bytes of the pages that have live blocks */
	uint64_t blocks;
	uint64_t chunks; /* of the blocks: malloc has mapped them by themselves */
};

/* ---- a walk over the pages --------------------------------------------------------------------- */

/* Pages in a row with the same state. */
struct walk {
	const struct incstack__moment *moment;
	uint32_t area; /* the number of all areas: the end */
	uint32_t run;  /* of this area: the next one */
	uint32_t runs_before;
	uint64_t low, high;
	enum incstack__page state;
};

static bool has_pages(const struct walk *walk)
{
	return walk->area < walk->moment->head.areas;
}

/* Goes on to the next pages in the same area, or to the first pages of the next one. */
static void advance(struct walk *walk)
{
	const struct incstack__moment *moment = walk->moment;
	const struct incstack__moment_area *area = &moment->areas[walk->area];

	if (walk->high == area->high) {
		walk->runs_before += area->runs;
		walk->run = 0;
		walk->area++;
		if (!has_pages(walk))
			return;
		area++;
		walk->high = area->low;
	}
	walk->low = walk->high;
	walk->high = area->high;
	walk->state = INCSTACK__PAGE_ABSENT;
	if (walk->run < area->runs) {
		const uint32_t run = moment->run[walk->runs_before + walk->run++];

		walk->high =
			walk->low + (uint64_t)incstack__run_pages(run) * moment->head.page_bytes;
		walk->state = incstack__run_state(run);
	}
}

/* Begins in front of the first area. */
static struct walk begin(const struct incstack__moment *moment)
{
	struct walk walk = {.moment = moment};

	if (has_pages(&walk)) {
		walk.high = moment->areas[0].low;
		walk.low = walk.high;
	}
	return walk;
}

/* Goes on to the pages that have the address, or to those behind it. */
static void seek(struct walk *walk, uint64_t address)
{
	while (has_pages(walk) && walk->high <= address)
		advance(walk);
}

/* Finds the pages that have [low, high), which begins where the last range ended or later. Calls `found` for each
 * part. */
static void each_part(struct walk *walk, uint64_t low, uint64_t high,
		      void (*found)(void *context, const struct walk *walk, uint64_t bytes),
		      void *context)
{
	seek(walk, low);
	while (has_pages(walk) && walk->low < high) {
		const uint64_t from = low > walk->low ? low : walk->low;
		const uint64_t to = high < walk->high ? high : walk->high;

		if (from < to)
			found(context, walk, to - from);
		if (walk->high >= high)
			return;
		advance(walk);
	}
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* The sums of what a range has. */
struct parts {
	struct use *uses;
	by_state bytes;
	bool is_page; /* the range is whole pages */
};

static void add_part(void *context, const struct walk *walk, uint64_t bytes)
{
	struct parts *parts = context;
	struct use *use = &parts->uses[walk->area];

	(parts->is_page ? use->shared : use->live)[walk->state] += bytes;
	parts->bytes[walk->state] += bytes;
}

static int by_address(const void *a, const void *b)
{
	const struct incstack__resident_block *left = a;
	const struct incstack__resident_block *right = b;

	return left->low < right->low ? -1 : left->low > right->low;
}

static uint64_t end_of(const struct incstack__resident_block *block)
{
	uint64_t end;

	return __builtin_add_overflow(block->low, block->bytes, &end) ? UINT64_MAX : end;
}

/* Two live blocks overlap only if a deallocation is missing. Then the first one ends where the second begins, so that no
 * byte counts twice. */
static uint64_t end_before_next(const struct incstack__resident_block *block, bool is_last)
{
	const uint64_t end = end_of(block);

	return is_last || end <= block[1].low ? end : block[1].low;
}

/* glibc maps a large block by itself, behind a head of 16 bytes. Its pages are all that malloc has there: the kernel may
 * have made one area of it and of a neighbour that is not malloc's. */
static bool is_chunk(const struct incstack__resident_block *block, uint64_t page_bytes)
{
	enum { HEAD = 16, LEAST = 64 << 10 };

	return block->low % page_bytes == HEAD && block->bytes >= LEAST;
}

/* Returns how much of the block's weight some of its bytes are. */
static uint64_t weight_of(const struct incstack__resident_block *block, uint64_t bytes)
{
	double weight;

	if (block->weight == block->bytes || block->bytes == 0)
		return bytes;
	weight = (double)block->weight / (double)block->bytes * (double)bytes;
	return weight < (double)block->weight ? (uint64_t)weight : block->weight;
}

static uint64_t up(uint64_t address, uint64_t page_bytes)
{
	const uint64_t up = (address + page_bytes - 1) & ~(page_bytes - 1);

	return up >= address ? up : UINT64_MAX;
}

struct walks {
	struct walk bytes;
	struct walk pages;
	uint64_t page; /* the pages before it are counted */
	struct use *uses;
};

/* Counts the pages that the block has, if the block before it does not have them, too. An empty block has a page. */
static void count_pages(struct walks *walks, const struct incstack__resident_block *block,
			uint64_t high, uint64_t page_bytes)
{
	struct parts parts = {.uses = walks->uses, .is_page = true};
	uint64_t low = block->low & ~(page_bytes - 1);

	if (low < walks->page)
		low = walks->page;
	walks->page = up(high > block->low ? high : block->low + 1, page_bytes);
	if (low < walks->page)
		each_part(&walks->pages, low, walks->page, add_part, &parts);
}

/* Counts the block in the area where it begins. */
static void count_block(struct walks *walks, const struct incstack__resident_block *block,
			uint64_t page_bytes)
{
	struct use *use;

	seek(&walks->bytes, block->low);
	use = &walks->uses[walks->bytes.area];
	if (!has_pages(&walks->bytes) || walks->bytes.low > block->low)
		return;
	use->blocks++;
	use->chunks += is_chunk(block, page_bytes);
}

static void add_block(struct incstack__resident *sum, struct walks *walks,
		      const struct incstack__resident_block *block, bool is_last)
{
	const uint64_t page_bytes = walks->bytes.moment->head.page_bytes;
	const uint64_t high = end_before_next(block, is_last);
	struct parts parts = {.uses = walks->uses};
	const uint64_t *found = parts.bytes;
	uint64_t resident;

	count_block(walks, block, page_bytes);
	each_part(&walks->bytes, block->low, high, add_part, &parts);
	count_pages(walks, block, high, page_bytes);
	resident = found[INCSTACK__PAGE_OWN] + found[INCSTACK__PAGE_COMMON] +
		   found[INCSTACK__PAGE_FILE];
	sum->outside += block->bytes - resident - found[INCSTACK__PAGE_ABSENT] -
			found[INCSTACK__PAGE_SWAPPED];
	sum->live_anonymous += found[INCSTACK__PAGE_OWN] + found[INCSTACK__PAGE_COMMON];
	resident = weight_of(block, resident);
	sum->resident[block->node] += resident;
	sum->swapped[block->node] += weight_of(block, found[INCSTACK__PAGE_SWAPPED]);
	sum->requested += block->weight;
	sum->live += resident;
	sum->live_swapped += weight_of(block, found[INCSTACK__PAGE_SWAPPED]);
}

/* ---- who has the rest ---------------------------------------------------------------------------- */

/* glibc's arenas of threads begin at a multiple of this size and reserve so much. */
#define ARENA_BYTES (UINT64_C(64) << 20)

/* Whether the area lies behind one of that kind. */
static bool follows(const struct incstack__moment_area *areas, uint32_t i,
		    enum incstack__area_kind kind)
{
	return i > 0 && areas[i - 1].high == areas[i].low && areas[i - 1].kind == kind;
}

static bool is_arena(const struct incstack__moment *moment, uint32_t i)
{
	const struct incstack__moment_area *area = &moment->areas[i];
	const uint64_t end = area->low + ARENA_BYTES;

	if (area->kind != INCSTACK__AREA_ANONYMOUS || area->low % ARENA_BYTES != 0)
		return false;
	return area->high == end ||
	       (i + 1 < moment->head.areas && area->high < end && area[1].low == area->high &&
		area[1].high >= end && area[1].kind == INCSTACK__AREA_CLOSED);
}

/* A thread's stack has a guard below it, which may not be accessed. The reserve of an arena is none. */
static bool is_stack(const struct incstack__moment *moment, uint32_t i)
{
	return follows(moment->areas, i, INCSTACK__AREA_CLOSED) &&
	       !(i > 1 && is_arena(moment, i - 2));
}

static enum incstack__owner owner_of(const struct incstack__moment *moment, const struct use *use,
				     uint32_t i)
{
	switch ((enum incstack__area_kind)moment->areas[i].kind) {
	case INCSTACK__AREA_HEAP:
		return INCSTACK__OWNER_ALLOCATOR;
	case INCSTACK__AREA_STACK:
		return INCSTACK__OWNER_STACKS;
	case INCSTACK__AREA_FILE:
		return INCSTACK__OWNER_FILES;
	case INCSTACK__AREA_ANONYMOUS:
		break;
	default:
		return INCSTACK__OWNER_OTHER;
	}
	if (use->blocks > 0 || is_arena(moment, i))
		return INCSTACK__OWNER_ALLOCATOR;
	if (is_stack(moment, i))
		return INCSTACK__OWNER_STACKS;
	return follows(moment->areas, i, INCSTACK__AREA_FILE) ? INCSTACK__OWNER_FILES
							      : INCSTACK__OWNER_OTHER;
}

static uint64_t anonymous_of(const uint64_t *bytes)
{
	return bytes[INCSTACK__PAGE_OWN] + bytes[INCSTACK__PAGE_COMMON];
}

/* Whether only the pages of its blocks are the allocator's. */
static bool is_of_chunks(const struct incstack__moment *moment, const struct use *use, uint32_t i)
{
	return use->blocks > 0 && use->blocks == use->chunks &&
	       moment->areas[i].kind == INCSTACK__AREA_ANONYMOUS && !is_arena(moment, i);
}

/* Gives what the area has and no block has to its owner. */
static void add_rest(struct incstack__resident *sum, const struct incstack__moment *moment,
		     const struct use *use, uint32_t i)
{
	const enum incstack__owner owner = owner_of(moment, use, i);
	const bool is_split = is_of_chunks(moment, use, i);
	const uint64_t *own = is_split ? use->shared : use->all;

	sum->rest[owner] += anonymous_of(own) - anonymous_of(use->live);
	sum->rest_swapped[owner] += own[INCSTACK__PAGE_SWAPPED] - use->live[INCSTACK__PAGE_SWAPPED];
	sum->rest[INCSTACK__OWNER_OTHER] += anonymous_of(use->all) - anonymous_of(own);
	sum->rest_swapped[INCSTACK__OWNER_OTHER] +=
		use->all[INCSTACK__PAGE_SWAPPED] - own[INCSTACK__PAGE_SWAPPED];
	sum->anonymous += anonymous_of(use->all);
	sum->common += use->all[INCSTACK__PAGE_COMMON];
	sum->file += use->all[INCSTACK__PAGE_FILE];
	if (owner != INCSTACK__OWNER_ALLOCATOR)
		return;
	sum->shared += anonymous_of(use->shared) - anonymous_of(use->live);
	sum->held_pages += anonymous_of(own);
	for (int state = 0; state < INCSTACK__PAGES; state++)
		sum->held += own[state];
}

static void count_all(const struct incstack__moment *moment, struct use *uses)
{
	for (struct walk walk = begin(moment); has_pages(&walk); advance(&walk))
		uses[walk.area].all[walk.state] += walk.high - walk.low;
}

int incstack__resident_find(struct incstack__resident *resident,
			    const struct incstack__moment *moment,
			    struct incstack__resident_block *blocks, size_t count, uint32_t nodes)
{
	struct walks walks = {begin(moment), begin(moment), 0,
			      calloc(moment->head.areas + 1u, sizeof(struct use))};

	*resident = (struct incstack__resident){
		.resident = calloc(nodes, sizeof(uint64_t)),
		.swapped = calloc(nodes, sizeof(uint64_t)),
	};
	if (!walks.uses || !resident->resident || !resident->swapped) {
		free(walks.uses);
		incstack__resident_free(resident);
		return INCSTACK_ENOMEM;
	}
	if (count > 0)
		qsort(blocks, count, sizeof(*blocks), by_address);
	count_all(moment, walks.uses);
	for (size_t i = 0; i < count; i++)
		add_block(resident, &walks, &blocks[i], i + 1 == count);
	for (uint32_t i = 0; i < moment->head.areas; i++)
		add_rest(resident, moment, &walks.uses[i], i);
	free(walks.uses);
	return 0;
}

void incstack__resident_free(struct incstack__resident *resident)
{
	free(resident->resident);
	free(resident->swapped);
	*resident = (struct incstack__resident){.resident = NULL};
}
