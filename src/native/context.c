/* SPDX-License-Identifier: MIT
 *
 * Finds the stack that contains an address, among the stacks of threads and of contexts made by
 * makecontext. The table is ordered by address and lies in memory that is reserved once, so a
 * look-up needs no allocation.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <incstack/native.h>

enum { ENTRIES = 1 << 20 };

struct entry {
	uintptr_t low;
	uintptr_t high;
	struct incstack_stack *stack;
};

struct incstack_native_stacks {
	struct incstack_runtime *runtime;
	pthread_mutex_t lock;
	size_t count;
	struct entry entries[ENTRIES]; /* ordered by low; an outer range precedes its inner ones */
};

int incstack_native_stacks_create(struct incstack_runtime *runtime,
				  struct incstack_native_stacks **result)
{
	struct incstack_native_stacks *stacks;

	if (!runtime || !result)
		return INCSTACK_EINVAL;
	stacks = mmap(NULL, sizeof(*stacks), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		return INCSTACK_ENOMEM;
	stacks->runtime = runtime;
	pthread_mutex_init(&stacks->lock, NULL);
	*result = stacks;
	return 0;
}

int incstack_native_stacks_destroy(struct incstack_native_stacks *stacks)
{
	if (!stacks)
		return INCSTACK_EINVAL;
	if (stacks->count != 0)
		return INCSTACK_EBUSY;
	pthread_mutex_destroy(&stacks->lock);
	munmap(stacks, sizeof(*stacks));
	return 0;
}

/* Returns how many entries begin at or below the address. */
static size_t begun(const struct incstack_native_stacks *stacks, uintptr_t address)
{
	size_t low = 0;
	size_t high = stacks->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (stacks->entries[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the innermost entry that contains the address, or null. */
static struct entry *find(struct incstack_native_stacks *stacks, uintptr_t address)
{
	for (size_t i = begun(stacks, address); i-- > 0;)
		if (address < stacks->entries[i].high)
			return &stacks->entries[i];
	return NULL;
}

/* Whether the range overlaps an existing one partly. Ranges must be disjoint or nested. */
static bool crosses(const struct incstack_native_stacks *stacks, uintptr_t low, uintptr_t high)
{
	for (size_t i = begun(stacks, high - 1); i-- > 0;) {
		const struct entry *e = &stacks->entries[i];
		bool apart = e->high <= low;
		bool inside = e->low >= low && e->high <= high;
		bool around = e->low <= low && e->high >= high;

		if (!apart && !inside && !around)
			return true;
	}
	return false;
}

static int insert(struct incstack_native_stacks *stacks, const struct entry *new)
{
	size_t at = begun(stacks, new->low);

	if (stacks->count == ENTRIES)
		return INCSTACK_ENOMEM;
	if (crosses(stacks, new->low, new->high))
		return INCSTACK_EBUSY;
	while (at > 0 && stacks->entries[at - 1].low == new->low &&
	       stacks->entries[at - 1].high < new->high)
		at--;
	memmove(&stacks->entries[at + 1], &stacks->entries[at],
		(stacks->count - at) * sizeof(*new));
	stacks->entries[at] = *new;
	stacks->count++;
	return 0;
}

static void take_out(struct incstack_native_stacks *stacks, struct entry *e)
{
	size_t after = (size_t)(&stacks->entries[--stacks->count] - e);

	memmove(e, e + 1, after * sizeof(*e));
}

int incstack_native_stacks_add(struct incstack_native_stacks *stacks, struct incstack_stack *stack,
			       uintptr_t low, uintptr_t high)
{
	const struct entry new = {low, high, stack};
	int result;

	if (!stacks || !stack || low >= high)
		return INCSTACK_EINVAL;
	pthread_mutex_lock(&stacks->lock);
	result = insert(stacks, &new);
	pthread_mutex_unlock(&stacks->lock);
	return result;
}

int incstack_native_stacks_remove(struct incstack_native_stacks *stacks,
				  const struct incstack_stack *stack)
{
	int result = INCSTACK_ERANGE;

	if (!stacks || !stack)
		return INCSTACK_EINVAL;
	pthread_mutex_lock(&stacks->lock);
	for (size_t i = 0; i < stacks->count && result != 0; i++)
		if (stacks->entries[i].stack == stack) {
			take_out(stacks, &stacks->entries[i]);
			result = 0;
		}
	pthread_mutex_unlock(&stacks->lock);
	return result;
}

int incstack_native_stacks_find(struct incstack_native_stacks *stacks, uintptr_t sp,
				struct incstack_stack **stack)
{
	const struct entry *e;

	if (!stacks || !stack)
		return INCSTACK_EINVAL;
	pthread_mutex_lock(&stacks->lock);
	e = find(stacks, sp);
	*stack = e ? e->stack : NULL;
	pthread_mutex_unlock(&stacks->lock);
	return *stack ? 0 : INCSTACK_ERANGE;
}

/* ---- contexts --------------------------------------------------------------------- */

static uintptr_t range_of(const ucontext_t *context, uintptr_t *high)
{
	const uintptr_t low = ((uintptr_t)context->uc_stack.ss_sp + 7) & ~(uintptr_t)7;

	*high = ((uintptr_t)context->uc_stack.ss_sp + context->uc_stack.ss_size) & ~(uintptr_t)7;
	return low;
}

static int make(struct incstack_native_stacks *stacks, uintptr_t low, uintptr_t high,
		struct incstack_stack **stack)
{
	const struct entry *e = find(stacks, low);
	struct entry new = {low, high, NULL};
	int result;

	if (e && e->low == low && e->high == high) { /* an earlier context had the same memory */
		*stack = e->stack;
		incstack_stack_own(e->stack);
		return incstack_stack_forget(e->stack);
	}
	result = incstack_stack_create(stacks->runtime, low, high, &new.stack);
	if (result < 0)
		return result;
	result = insert(stacks, &new);
	if (result < 0)
		incstack_stack_abandon(new.stack);
	else
		*stack = new.stack;
	return result;
}

int incstack_native_context_made(struct incstack_native_stacks *stacks, const void *ucontext,
				 struct incstack_stack **stack)
{
	const ucontext_t *context = ucontext;
	uintptr_t low;
	uintptr_t high;
	uintptr_t sp;
	int result;

	if (!stacks || !context || !stack)
		return INCSTACK_EINVAL;
	low = range_of(context, &high);
	sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	if (low >= high || sp < low || sp >= high || sp % sizeof(uintptr_t) != 0)
		return INCSTACK_EINVAL;
	pthread_mutex_lock(&stacks->lock);
	result = make(stacks, low, high, stack);
	pthread_mutex_unlock(&stacks->lock);
	return result;
}

int incstack_native_context_switched(struct incstack_native_stacks *stacks, const void *ucontext,
				     struct incstack_stack **stack)
{
	const ucontext_t *context = ucontext;
	int result;

	if (!context)
		return INCSTACK_EINVAL;
	result = incstack_native_stacks_find(stacks, (uintptr_t)context->uc_mcontext.gregs[REG_RSP],
					     stack);
	return result < 0 ? result : incstack_stack_own(*stack);
}

int incstack_native_context_destroyed(struct incstack_native_stacks *stacks, const void *ucontext)
{
	const ucontext_t *context = ucontext;
	struct incstack_stack *stack = NULL;
	struct entry *e;
	uintptr_t high;
	uintptr_t low;

	if (!stacks || !context)
		return INCSTACK_EINVAL;
	low = range_of(context, &high);
	pthread_mutex_lock(&stacks->lock);
	e = find(stacks, low);
	if (e && e->low == low && e->high == high) {
		stack = e->stack;
		take_out(stacks, e);
	}
	pthread_mutex_unlock(&stacks->lock);
	return stack ? incstack_stack_abandon(stack) : INCSTACK_ERANGE;
}
