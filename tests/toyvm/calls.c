/* SPDX-License-Identifier: MIT
 *
 * The record of the calls of instrumented methods: a tree, made from the VM's own record of its frames. A frame whose
 * call is within the subgraph has a mark there, which goes when another frame takes its place.
 */
#include <stdio.h>
#include <stdlib.h>

#include "instrument.h"

enum { CONTEXTS_MOST = 1 << 20, SLOTS = 1 << 22 };

struct context {
	uint32_t parent, method;
	uint64_t calls;
};

struct calls {
	pthread_mutex_t lock;
	struct context *contexts; /* the first one is the outside */
	uint32_t *slots;          /* their numbers, by parent and method */
	uint32_t count;
};

struct calls *calls_new(void)
{
	struct calls *calls = calloc(1, sizeof(*calls));
	pthread_mutex_init(&calls->lock, NULL);
	calls->contexts = calloc(CONTEXTS_MOST, sizeof(*calls->contexts));
	calls->slots = calloc(SLOTS, sizeof(*calls->slots));
	calls->count = 1;
	return calls;
}

void calls_free(struct calls *calls)
{
	pthread_mutex_destroy(&calls->lock);
	free(calls->contexts);
	free(calls->slots);
	free(calls);
}

bool calls_are_open(const struct fiber *f)
{
	for (const uint64_t *at = f->shadow; at > f->shadow_base; at--)
		if (*at & SHADOW_CALLED)
			return true;
	return false;
}

/* Returns where the number of a context is, or goes. */
static uint32_t *slot_of(const struct calls *calls, uint32_t parent, uint32_t method)
{
	uint32_t at = (parent * 0x9e3779b1u ^ method * 0x85ebca6bu) * 0xc2b2ae35u >> 7;
	for (;; at++) {
		uint32_t *slot = &calls->slots[at % SLOTS];
		const struct context *context = &calls->contexts[*slot];
		if (!*slot || (context->parent == parent && context->method == method))
			return slot;
	}
}

static uint32_t find(const struct calls *calls, uint32_t parent, uint32_t method)
{
	return *slot_of(calls, parent, method);
}

static uint32_t find_or_add(struct calls *calls, uint32_t parent, uint32_t method)
{
	uint32_t *slot = slot_of(calls, parent, method);
	if (*slot)
		return *slot;
	if (calls->count == CONTEXTS_MOST)
		abort();
	calls->contexts[calls->count] = (struct context){parent, method, 0};
	return *slot = calls->count++;
}

void calls_add(struct calls *calls, struct fiber *f, const struct method *m, bool is_root)
{
	uint32_t at = 0;
	if (!is_root && !calls_are_open(f))
		return;
	*f->shadow |= SHADOW_CALLED;
	pthread_mutex_lock(&calls->lock);
	for (const uint64_t *frame = f->shadow_base; frame < f->shadow; frame++)
		if (*frame & SHADOW_CALLED)
			at = find_or_add(calls, at, (uint32_t)((*frame & ~SHADOW_CALLED) >> 32));
	calls->contexts[find_or_add(calls, at, m->id)].calls++;
	pthread_mutex_unlock(&calls->lock);
}

/* The numbers of contexts in the record, by their numbers in the snapshot. */
static uint64_t compare(const struct calls *calls, const struct incstack_meter_snapshot *snapshot,
			uint32_t *numbers)
{
	struct incstack_meter_context context = {.size = sizeof(context)};
	uint64_t wrong = 0;
	uint32_t i;
	for (i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++) {
		const bool is_outermost = context.parent == INCSTACK_METER_NONE;
		numbers[i] = i < calls->count && (is_outermost || numbers[context.parent])
				     ? find(calls, is_outermost ? 0 : numbers[context.parent],
					    (uint32_t)context.function)
				     : 0;
		if (numbers[i] && context.calls == calls->contexts[numbers[i]].calls)
			continue;
		if (++wrong < 4)
			fprintf(stderr, "calls of method %d: %llu counted, %llu in the record\n",
				(int)context.function, (unsigned long long)context.calls,
				numbers[i] ? (unsigned long long)calls->contexts[numbers[i]].calls
					   : 0);
	}
	if (i + 1 != calls->count)
		fprintf(stderr, "contexts: %u counted, %u in the record\n", i, calls->count - 1);
	return wrong + (i + 1 != calls->count);
}

uint64_t calls_compare(const struct calls *calls, const struct incstack_meter_snapshot *snapshot)
{
	struct incstack_meter_context context = {.size = sizeof(context)};
	uint32_t count = 0;
	uint64_t wrong;
	while (incstack_meter_snapshot_context(snapshot, count, &context) == 0)
		count++;
	uint32_t *numbers = calloc(count + 1u, sizeof(*numbers));
	wrong = compare(calls, snapshot, numbers);
	free(numbers);
	for (uint32_t i = 1; i < calls->count; i++)
		atomic_fetch_add(&counters.calls, calls->contexts[i].calls);
	atomic_fetch_add(&counters.contexts, calls->count - 1);
	return wrong;
}
