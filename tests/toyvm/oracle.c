/* SPDX-License-Identifier: MIT
 *
 * The oracle: notes what the stack was at each sample, from the VM's own record of its calls, and
 * compares that with what the library retrieves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "../../src/trace/hooks.h"
#include "cct.h"
#include "instrument.h"
#include "vm.h"
#include "../unit/taken.h"

struct counters counters;
int toyvm_fault;

/* The library hands memory from thread to thread in code that the thread sanitizer does not see.
 * These annotations tell it. */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#else
#define __tsan_acquire(address) ((void)(address))
#define __tsan_release(address) ((void)(address))
#endif

enum { ITERATE_EVERY = 16 }; /* samples: a walk over the whole stack takes long */

struct record {
	size_t start, count;
	uint64_t weight;
};

struct oracle {
	uint64_t *entries;
	size_t used, room;
	struct record *records;
	size_t record_count, record_room;
	size_t queued;   /* the record of the youngest request that went into the queue */
	uint64_t first;  /* the id of records[0] */
	uint64_t *wide;  /* see widen() */
	uint64_t *plain; /* see without_calls() */
	struct cct *cct;
};

struct oracle *oracle_new(void)
{
	struct oracle *o = calloc(1, sizeof(struct oracle));
	o->cct = cct_new();
	return o;
}

void oracle_free(struct oracle *o)
{
	cct_free(o->cct);
	free(o->entries);
	free(o->records);
	free(o->wide);
	free(o->plain);
	free(o);
}

static void remember(struct oracle *o, const uint64_t *entries, size_t count, uint64_t weight)
{
	if (o->room - o->used < count) {
		o->room = (o->used + count) * 2;
		o->entries = realloc(o->entries, o->room * sizeof(uint64_t));
	}
	if (o->record_count == o->record_room) {
		o->record_room = o->record_room * 2 + 16;
		o->records = realloc(o->records, o->record_room * sizeof(struct record));
	}
	for (size_t i = 0; i < count; i++)
		o->entries[o->used + i] = entries[i] & ~SHADOW_CALLED;
	o->records[o->record_count++] = (struct record){o->used, count, weight};
	o->used += count;
}

/* The entries as the library must see them. */
static const uint64_t *without_calls(struct oracle *o, const uint64_t *entries, size_t count)
{
	o->plain = realloc(o->plain, count * sizeof(uint64_t));
	for (size_t i = 0; i < count; i++)
		o->plain[i] = entries[i] & ~SHADOW_CALLED;
	return o->plain;
}

/* The entries with those that frames decode to in addition, up to the library's limit. */
static const uint64_t *widen(struct oracle *o, const uint64_t *entries, size_t *count, int more)
{
	size_t n = 0;
	if (more > INCSTACK_VIRTUAL_MAX - 1)
		more = INCSTACK_VIRTUAL_MAX - 1;
	o->wide = realloc(o->wide, *count * INCSTACK_VIRTUAL_MAX * sizeof(uint64_t));
	for (size_t i = 0; i < *count; i++) {
		const uint64_t method = entries[i] >> 32;
		for (int k = has_more_frames(method) ? more : 0; k > 0; k--)
			o->wide[n++] = method << 32 | (uint32_t)(-1 - k);
		o->wide[n++] = entries[i];
	}
	*count = n;
	return o->wide;
}

/* Takes a sample of the fiber. The caller is the fiber's thread, or holds it. */
void oracle_sample(struct fiber *f, uint64_t *random)
{
	struct oracle *o = f->oracle;
	size_t count = (size_t)(f->shadow - f->shadow_base) + 1;
	const uint64_t *entries = f->shadow_base;
	instrument_look(f);
	if (f->vm->instrumentation)
		entries = without_calls(o, entries, count);
	if (f->vm->schedule.more_frames)
		entries = widen(o, entries, &count, f->vm->schedule.more_frames);
	struct incstack_top top = {.pc = f->pc, .sp = f->sp, .fp = f->fp};
	top.flags = random_below(random, 2) ? INCSTACK_TOP_EXACT : 0;
	if (f->linked) {
		top.sp = f->fp;
		top.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_DECODE_NOW;
	}
	uint64_t weight = random_next(random);
	incstack_stack_reserve(f->stack, 512 + count * 64);
	int error = incstack_stack_sample(f->stack, o->first + o->record_count, weight, &top);
	if (error) {
		if (error == INCSTACK_EROOM && f->vm->schedule.stack_bytes)
			COUNT(refused);
		else if (error == INCSTACK_EROOM)
			COUNT(lost);
		else
			COUNT(mismatches);
		return;
	}
	remember(o, entries, count, weight);
	if (COUNT(samples) % ITERATE_EVERY == 0)
		iterate(f, &top, entries, count);
	if (f->linked)
		COUNT(linked_samples);
	atomic_fetch_add_explicit(&counters.depths[count < 4095 ? count : 4095], 1,
				  memory_order_relaxed);
}

static uint64_t merged(const struct fiber *f)
{
	struct incstack_signal_stats stats = {.size = sizeof(stats)};
	incstack_stack_signal_stats(f->stack, &stats);
	return stats.merged;
}

/* The youngest request in the queue stands for this one, too. */
static void add_weight(struct fiber *f, uint64_t weight)
{
	struct oracle *o = f->oracle;
	if (o->queued >= o->record_count)
		COUNT(mismatches);
	else
		o->records[o->queued].weight += weight;
}

/* It may use malloc in the handler, because nothing that does is interrupted. */
void oracle_signal(struct fiber *f, size_t count, uint64_t youngest, uint64_t weight,
		   const void *ucontext)
{
	struct oracle *o = f->oracle;
	const uint64_t before = merged(f);
	int result = incstack_stack_sample_signal(f->stack, o->first + o->record_count, weight,
						  ucontext);
	if (result < 0) {
		COUNT(unknown);
		return;
	}
	if (merged(f) != before) {
		add_weight(f, weight);
		return;
	}
	if (result == INCSTACK_QUEUED)
		o->queued = o->record_count;
	remember(o, f->shadow_base, count, weight);
	if (youngest) {
		remember(o, &youngest, 1, 0);
		o->records[--o->record_count - 1].count++;
	}
}

/* Prints the youngest frames of the record and of the trace. */
static void show(const struct fiber *f, const struct record *r, const struct incstack_trace *t)
{
	const struct program *p = f->vm->program;
	const struct incstack_frame_object *o = t->top;
	fprintf(stderr, "trace %llu of %zu frames (expected | seen)\n", (unsigned long long)t->id,
		r->count);
	for (size_t i = 0; i < 24 && (i < r->count || o); i++) {
		if (i < r->count) {
			uint64_t key = f->oracle->entries[r->start + r->count - 1 - i];
			fprintf(stderr, "%20s %4d |", p->methods[key >> 32]->name, (int32_t)key);
		}
		if (o) {
			bool known = o->function < (uint64_t)p->method_count;
			fprintf(stderr, " %20s %4d flags %x at %zx",
				known ? p->methods[o->function]->name : "?", o->position, o->flags,
				o->address);
			o = o->parent;
		}
		fputs("\n", stderr);
	}
}

/* Whether traces may be truncated: a barrier has vanished without notice, or the memory of traces
 * is limited. */
static bool may_be_cut(const struct fiber *f)
{
	return f->vanished || f->vm->schedule.stack_bytes;
}

/* Whether every trace is complete in any schedule of the threads. */
static bool is_complete(const struct fiber *f)
{
	return !f->vm->schedule.silent_exits && !f->vm->schedule.stack_bytes;
}

/* Whether the trace is the recorded one, or its youngest part if it may be truncated. */
static bool same(const struct oracle *o, const struct record *r, const struct incstack_trace *t,
		 bool cut, bool *inlined)
{
	const uint64_t *entry = o->entries + r->start + r->count;
	const struct incstack_frame_object *f = t->top;
	for (size_t i = 0; i < r->count; i++, f = f->parent) {
		entry--;
		if (f && cut && f->flags & INCSTACK_OBJECT_TRUNCATED &&
		    f->flags & INCSTACK_OBJECT_RAW)
			return true; /* the frame was gone before its position was read */
		if (!f || f->function != *entry >> 32 || f->position != (int32_t)*entry)
			return false;
		*inlined |= (f->flags & INCSTACK_OBJECT_VIRTUAL) != 0;
		if (!f->parent && cut && f->flags & INCSTACK_OBJECT_TRUNCATED)
			return t->weight == r->weight;
	}
	return !f && t->weight == r->weight;
}

/* The number of frames of the trace, inlined ones included. */
static size_t length(const struct incstack_trace *t)
{
	size_t count = 0;
	for (const struct incstack_frame_object *f = t->top; f; f = f->parent)
		count++;
	return count;
}

/* Whether the object shows that entry. The position of a truncated frame may be unknown: the frame was
 * gone before it was read. */
static bool shows(const struct incstack_frame_object *f, uint64_t entry)
{
	const uint32_t gone = INCSTACK_OBJECT_TRUNCATED | INCSTACK_OBJECT_RAW;
	return (f->flags & gone) == gone ||
	       (f->function == entry >> 32 && f->position == (int32_t)entry);
}

/* How many frames of the trace, counted from its end, are those of the record from entry `first` on.
 * *next is the method of the next one. */
static size_t common(const struct oracle *o, const struct record *r, const struct incstack_trace *t,
		     size_t first, uint64_t *next)
{
	const struct incstack_frame_object *f = t->top;
	size_t same = 0;
	for (size_t at = first + length(t); at-- > first; f = f->parent) {
		const bool equal = at < r->count && shows(f, o->entries[r->start + at]);
		*next = equal ? *next : f->function;
		same = equal ? same + 1 : 0;
	}
	return same;
}

/* Whether a biased trace that ends at that entry shows the callers that the record has. One of them may
 * have gone on, and called others: after a frame was replaced by a smaller one, addresses do not tell
 * this. */
static bool callers_from(const struct oracle *o, const struct record *r,
			 const struct incstack_trace *t, size_t first)
{
	uint64_t next = 0;
	const size_t same = common(o, r, t, first, &next), all = length(t), at = first + same;
	if (!same || (same < all && (at >= r->count || next != o->entries[r->start + at] >> 32)))
		return false;
	if (same + 1 < all)
		COUNT(later);
	return true;
}

static bool is_truncated(const struct incstack_trace *t)
{
	const struct incstack_frame_object *f = t->top;
	while (f->parent)
		f = f->parent;
	return f->flags & INCSTACK_OBJECT_TRUNCATED;
}

/* The same, wherever the trace ends if it may be truncated. */
static bool same_callers(const struct oracle *o, const struct record *r,
			 const struct incstack_trace *t, bool cut)
{
	const size_t ends = cut && is_truncated(t) ? r->count : 1;
	for (size_t first = 0; t->weight == r->weight && first < ends; first++)
		if (callers_from(o, r, t, first))
			return true;
	return false;
}

static bool as_recorded(struct fiber *f, const struct record *r, const struct incstack_trace *t,
			bool *inlined)
{
	switch (trace_taken(t)) {
	case TAKEN_BIASED:
		COUNT(biased);
		return same_callers(f->oracle, r, t, may_be_cut(f));
	case TAKEN_IN_HANDLER:
		COUNT(immediate);
		break;
	case TAKEN_FROM_QUEUE:
		COUNT(queued);
		break;
	default:
		break;
	}
	return same(f->oracle, r, t, may_be_cut(f), inlined);
}

static void compare(struct fiber *f, const struct incstack_trace *t, size_t i)
{
	struct oracle *o = f->oracle;
	bool inlined = false;
	const struct record *r = &o->records[i];
	if (is_truncated(t))
		COUNT(truncated);
	if (!as_recorded(f, r, t, &inlined)) {
		if (COUNT(mismatches) < 3)
			show(f, r, t);
	}
	if (inlined)
		COUNT(inlined);
	if (is_complete(f) && !f->vm->schedule.signals)
		cct_add_record(o->cct, o->entries + r->start, r->count);
}

/* Takes a sample, so that the library notices exits that were not announced. This is necessary
 * before it is told or asked about frames that may be gone. */
void oracle_look(struct fiber *f)
{
	if (f->vm->schedule.silent_exits)
		oracle_sample(f, &f->thread->random);
}

/* Called at the end of a fiber. */
void oracle_finish(struct fiber *f)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	oracle_retrieve(f);
	incstack_stack_stats(f->stack, &stats);
	atomic_fetch_add_explicit(&counters.no_thunk, stats.no_thunk, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters.vanished, stats.stale, memory_order_relaxed);
	if (stats.stale != f->vanished)
		COUNT(mismatches);
	if (!f->vm->schedule.sampling && !cct_same(f->oracle->cct))
		COUNT(mismatches);
}

static void add_to_profile(struct vm *vm, const struct incstack_tree *tree)
{
	pthread_mutex_lock(&vm->lock);
	if (incstack_profile_add_tree(vm->schedule.profile, INCSTACK_PROFILE_ROOT, tree, NULL,
				      NULL))
		abort();
	pthread_mutex_unlock(&vm->lock);
}

/* Retrieves the traces of the fiber and compares each. */
void oracle_retrieve(struct fiber *f)
{
	struct oracle *o = f->oracle;
	struct incstack_tree *tree;
	oracle_look(f);
	if (incstack_stack_retrieve(f->stack, &tree)) {
		COUNT(mismatches);
		return;
	}
	__tsan_acquire(f->vm->runtime);
	size_t i = 0;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next, i++) {
		/* Without signals the traces are in the order of their samples. */
		if (t->id - o->first < o->record_count &&
		    (f->vm->schedule.signals || t->id == o->first + i))
			compare(f, t, t->id - o->first);
		else if (!f->vm->schedule.sampling)
			COUNT(mismatches);
	}
	if (i != o->record_count && !f->vm->schedule.sampling)
		COUNT(mismatches);
	if (is_complete(f) && !f->vm->schedule.signals)
		cct_add_tree(o->cct, tree);
	if (f->vm->schedule.profile)
		add_to_profile(f->vm, tree);
	__tsan_release(f->vm->runtime);
	incstack_tree_release(tree);
	o->first += o->record_count;
	o->record_count = o->used = 0;
	if (incstack__stack_verify(f->stack))
		COUNT(mismatches);
}
