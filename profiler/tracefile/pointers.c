/* SPDX-License-Identifier: MIT
 *
 * Guesses the pointers of events; see pointers.h. Allocations are numbered. The blocks of the newest ones are in
 * a ring, and those that are live are a list by age. A table finds the number of a live pointer. For each class of
 * sizes, a stack has the pointers that were freed last.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "columns.h"
#include "pointers.h"

enum {
	RING_LOG = 20,
	RING = 1 << RING_LOG,
	CLASSES = 1024,
	CLASS_BYTES = 16, /* by which malloc's sizes differ */
	FREED = 64,       /* of a class */
};

/* How a pointer was guessed. Of an allocation: that it is the pointer freed last in its class, or one freed before
 * it, or that it follows another block. Of a deallocation: the block is one of the newest, or lies near the
 * block that was freed before it, by age. */
enum {
	FREED_LAST = 0, /* and the FREED - 1 guesses behind it */
	BEHIND_LAST = FREED,
	BEHIND_CLASS,
	NEWEST = 0,
	NEWEST_MOST = 16,
	NEWER = NEWEST + NEWEST_MOST,
	NEAR_MOST = 8,
	OLDER = NEWER + NEAR_MOST,
	FAR = OLDER + NEAR_MOST, /* a column has the difference of the numbers */
	UNKNOWN = 255,           /* a column has the pointer */
};

struct block {
	uint64_t pointer;
	uint32_t older; /* its live neighbours by age; 0: none */
	uint32_t newer;
	uint16_t class;
	bool is_live;
};

struct incstack__pointers {
	struct block ring[RING]; /* by number */
	uint32_t table[RING];    /* of numbers */
	struct stack {
		uint64_t pointers[FREED];
		uint8_t count;
		uint8_t top;     /* where the next one goes */
		uint64_t behind; /* the last allocation of the class */
	} classes[CLASSES];
	uint32_t count;  /* of the newest allocation; they begin with 1 */
	uint32_t newest; /* that is live */
	uint32_t freed;  /* the last; its neighbours follow */
	uint32_t newer;
	uint32_t older;
	uint64_t behind; /* the last allocation */
	uint64_t last;   /* the last pointer that was not guessed */
};

/* Not by calloc, which may write to all of it. */
struct incstack__pointers *incstack__pointers_create(void)
{
	void *memory = mmap(NULL, sizeof(struct incstack__pointers), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

void incstack__pointers_destroy(struct incstack__pointers *pointers)
{
	if (pointers != NULL)
		munmap(pointers, sizeof(*pointers));
}

/* ---- blocks ------------------------------------------------------------------------------- */

static struct block *block_of(struct incstack__pointers *p, uint32_t number)
{
	return &p->ring[number % RING];
}

static uint32_t *place_of(struct incstack__pointers *p, uint64_t pointer)
{
	return &p->table[pointer * 0x9e3779b97f4a7c15ull >> (64 - RING_LOG)];
}

static bool is_live(struct incstack__pointers *p, uint32_t number)
{
	return number != 0 && p->count - number < RING && block_of(p, number)->is_live;
}

/* Returns the number of a live pointer, or 0. */
static uint32_t find(struct incstack__pointers *p, uint64_t pointer)
{
	const uint32_t number = *place_of(p, pointer);

	return is_live(p, number) && block_of(p, number)->pointer == pointer ? number : 0;
}

static void take_out(struct incstack__pointers *p, uint32_t number)
{
	struct block *block = block_of(p, number);

	block->is_live = false;
	if (block->newer != 0)
		block_of(p, block->newer)->older = block->older;
	else
		p->newest = block->older;
	if (block->older != 0)
		block_of(p, block->older)->newer = block->newer;
	if (p->newer == number)
		p->newer = block->newer;
	if (p->older == number)
		p->older = block->older;
}

/* What malloc takes for a block: 8 bytes more, and at least 32. */
static uint64_t bytes_of(uint64_t size)
{
	return size <= 24 ? 32 : (size + 8 + CLASS_BYTES - 1) / CLASS_BYTES * CLASS_BYTES;
}

static uint16_t class_of(uint64_t size)
{
	const uint64_t class = bytes_of(size) / CLASS_BYTES;

	return (uint16_t)(class < CLASSES ? class : CLASSES - 1);
}

/* The pointer is live from now on. */
static void add(struct incstack__pointers *p, uint64_t pointer, uint64_t size)
{
	const uint16_t class = class_of(size);
	const uint32_t before = find(p, pointer); /* its deallocation was not seen */
	struct block *block;

	if (before != 0)
		take_out(p, before);
	if (++p->count == 0)
		p->count = 1;
	block = block_of(p, p->count);
	if (block->is_live)
		take_out(p, p->count - RING);
	*block = (struct block){pointer, p->newest, 0, class, true};
	if (p->newest != 0)
		block_of(p, p->newest)->newer = p->count;
	p->newest = p->count;
	*place_of(p, pointer) = p->count;
	p->behind = pointer + bytes_of(size);
	p->classes[class].behind = p->behind;
}

/* ---- freed pointers ------------------------------------------------------------------------ */

/* Returns the place of the pointer that was freed so many others ago. */
static uint64_t *freed_at(struct stack *stack, unsigned ago)
{
	return &stack->pointers[(stack->top + (unsigned)FREED - 1 - ago) % FREED];
}

static void push(struct stack *stack, uint64_t pointer)
{
	stack->pointers[stack->top] = pointer;
	stack->top = (uint8_t)((stack->top + 1) % FREED);
	if (stack->count < FREED)
		stack->count++;
}

static void pop(struct stack *stack)
{
	stack->top = (uint8_t)((stack->top + FREED - 1) % FREED);
	stack->count--;
}

/* Takes one out. The later ones move up. */
static void pull(struct stack *stack, unsigned ago)
{
	for (; ago > 0; ago--)
		*freed_at(stack, ago) = *freed_at(stack, ago - 1);
	pop(stack);
}

/* Drops what is on top and was allocated again by another guess. */
static void settle(struct incstack__pointers *p, struct stack *stack)
{
	while (stack->count > 0 && find(p, *freed_at(stack, 0)) != 0)
		pop(stack);
}

/* ---- a pointer that is not guessed ---------------------------------------------------------- */

/* Most differences are multiples of 16. */
static uint64_t code_unknown(struct incstack__pointers *p, struct incstack__columns *columns,
			     uint64_t pointer)
{
	const uint64_t difference = pointer - p->last;
	const uint64_t sixteenth = (uint64_t)((int64_t)difference / 16);
	const bool is_odd = difference % 16 != 0;
	const uint64_t number = incstack__columns_difference(
		columns, INCSTACK__PACKED_POINTER, is_odd ? difference << 1 | 1 : sixteenth << 1);

	p->last += number & 1 ? (uint64_t)((int64_t)number >> 1)
			      : (uint64_t)((int64_t)number >> 1) * 16;
	return p->last;
}

/* ---- allocations ---------------------------------------------------------------------------- */

static unsigned guess_allocated(struct incstack__pointers *p, struct stack *stack, uint64_t pointer)
{
	if (stack->count > 0 && *freed_at(stack, 0) == pointer)
		return FREED_LAST;
	if (pointer == p->behind)
		return BEHIND_LAST;
	if (pointer == stack->behind)
		return BEHIND_CLASS;
	for (unsigned ago = 1; ago < stack->count; ago++)
		if (*freed_at(stack, ago) == pointer)
			return FREED_LAST + ago;
	return UNKNOWN;
}

uint64_t incstack__pointers_allocated(struct incstack__pointers *pointers,
				      struct incstack__columns *columns, uint64_t pointer,
				      uint64_t size)
{
	struct stack *stack = &pointers->classes[class_of(size)];
	unsigned guess = UNKNOWN;

	settle(pointers, stack);
	if (columns->packs)
		guess = guess_allocated(pointers, stack, pointer);
	guess = incstack__columns_byte(columns, INCSTACK__PACKED_ALLOCATED, (uint8_t)guess);
	if (guess < stack->count) {
		pointer = *freed_at(stack, guess);
		pull(stack, guess);
	} else if (guess == BEHIND_LAST) {
		pointer = pointers->behind;
	} else if (guess == BEHIND_CLASS) {
		pointer = stack->behind;
	} else {
		columns->failed |= guess != UNKNOWN;
		pointer = code_unknown(pointers, columns, pointer);
	}
	add(pointers, pointer, size);
	return pointer;
}

/* ---- deallocations --------------------------------------------------------------------------- */

/* Returns the live block so many steps from another, or 0. */
static uint32_t walk(struct incstack__pointers *p, uint32_t from, unsigned steps, bool to_newer)
{
	for (; from != 0 && steps > 0; steps--)
		from = to_newer ? block_of(p, from)->newer : block_of(p, from)->older;
	return from;
}

/* Returns how many steps a block is from another; `most` if it is not among those. */
static unsigned steps_to(struct incstack__pointers *p, uint32_t from, uint32_t wanted,
			 unsigned most, bool to_newer)
{
	unsigned steps = 0;

	while (steps < most && from != 0 && from != wanted) {
		from = to_newer ? block_of(p, from)->newer : block_of(p, from)->older;
		steps++;
	}
	return from == wanted ? steps : most;
}

static unsigned guess_freed(struct incstack__pointers *p, uint32_t number)
{
	unsigned steps;

	if (number == 0)
		return UNKNOWN;
	steps = steps_to(p, p->newest, number, NEWEST_MOST, false);
	if (steps < NEWEST_MOST)
		return NEWEST + steps;
	steps = steps_to(p, p->newer, number, NEAR_MOST, true);
	if (steps < NEAR_MOST)
		return NEWER + steps;
	steps = steps_to(p, p->older, number, NEAR_MOST, false);
	return steps < NEAR_MOST ? OLDER + steps : FAR;
}

/* Returns the block that a guess means. */
static uint32_t freed_by(struct incstack__pointers *p, struct incstack__columns *columns,
			 unsigned guess, uint32_t number)
{
	if (guess < NEWER)
		return walk(p, p->newest, guess - NEWEST, false);
	if (guess < OLDER)
		return walk(p, p->newer, guess - NEWER, true);
	if (guess < FAR)
		return walk(p, p->older, guess - OLDER, false);
	return p->freed +
	       (uint32_t)incstack__columns_difference(columns, INCSTACK__PACKED_POINTER,
						      (uint64_t)(int32_t)(number - p->freed));
}

/* The block is freed, and what is freed next is probably near it. */
static void release(struct incstack__pointers *p, uint32_t number)
{
	const struct block *block = block_of(p, number);

	take_out(p, number);
	push(&p->classes[block->class], block->pointer);
	p->freed = number;
	p->newer = block->newer;
	p->older = block->older;
}

uint64_t incstack__pointers_freed(struct incstack__pointers *pointers,
				  struct incstack__columns *columns, uint64_t pointer)
{
	uint32_t number = columns->packs ? find(pointers, pointer) : 0;
	unsigned guess = columns->packs ? guess_freed(pointers, number) : UNKNOWN;

	guess = incstack__columns_byte(columns, INCSTACK__PACKED_FREED, (uint8_t)guess);
	if (guess == UNKNOWN)
		return code_unknown(pointers, columns, pointer);
	if (guess <= FAR)
		number = freed_by(pointers, columns, guess, number);
	if (guess > FAR || !is_live(pointers, number)) {
		columns->failed = true;
		return 0;
	}
	pointer = block_of(pointers, number)->pointer;
	release(pointers, number);
	return pointer;
}
