/* SPDX-License-Identifier: MIT
 *
 * Replays the events of a trace file; see replay.h. For each allocation or tick, context_of()
 * finds the node of its trace in the calling context tree, and the node gets the weight. A hash
 * table has the node of each live pointer, so that a deallocation is taken from the node again.
 */
#define XXH_INLINE_ALL
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <xxhash.h>

#include <incstack/incstack.h>

#include "replay.h"

#define SUM_MAX ((uint64_t)INT64_MAX) /* the largest value of a profile */
#define SAMPLE_WEIGHT ((UINT64_C(1) << 60) - 1)

/* ---- live allocations: open addressing, no tombstones -------------------------- */

static uint64_t home_of(const struct incstack__replay *replay, uint64_t pointer)
{
	return XXH3_64bits_withSeed(&pointer, sizeof(pointer), replay->seed) &
	       (replay->table_size - 1);
}

static struct incstack__replay_live *live_find(struct incstack__replay *replay, uint64_t pointer)
{
	uint64_t at = home_of(replay, pointer);

	while (replay->table[at].pointer != 0 && replay->table[at].pointer != pointer)
		at = (at + 1) & (replay->table_size - 1);
	return &replay->table[at];
}

static int live_grow(struct incstack__replay *replay)
{
	struct incstack__replay_live *old = replay->table;
	const uint64_t old_size = replay->table_size;
	const uint64_t size = old_size == 0 ? 4096 : 2 * old_size;
	struct incstack__replay_live *table = calloc(size, sizeof(*table));

	if (!table)
		return INCSTACK_ENOMEM;
	replay->table = table;
	replay->table_size = size;
	for (uint64_t i = 0; i < old_size; i++)
		if (old[i].pointer != 0)
			*live_find(replay, old[i].pointer) = old[i];
	free(old);
	return 0;
}

/* Removes an entry and closes the gap, so that no search ends too early. A later entry moves into
 * the gap unless its home lies behind the gap. */
static void live_remove(struct incstack__replay *replay, struct incstack__replay_live *entry)
{
	const uint64_t mask = replay->table_size - 1;
	uint64_t gap = (uint64_t)(entry - replay->table);
	uint64_t at = gap;

	for (;;) {
		at = (at + 1) & mask;
		if (replay->table[at].pointer == 0)
			break;
		const uint64_t home = home_of(replay, replay->table[at].pointer);
		if (((at - home) & mask) >= ((at - gap) & mask)) {
			replay->table[gap] = replay->table[at];
			gap = at;
		}
	}
	replay->table[gap].pointer = 0;
	replay->table_used--;
}

/* ---- values ---------------------------------------------------------------------- */

/* Returns the values of a node that is about to change. A node's share of the peak is what it
 * had before its first change after the peak. It is stored at that change, so nodes that do
 * not change cost nothing. */
static struct incstack__cct_values *change(struct incstack__replay *replay, uint32_t node)
{
	struct incstack__cct_node *changed = &replay->cct.nodes[node];

	if (changed->peak_number != replay->peak_number) {
		changed->peak_number = replay->peak_number;
		changed->values.peak = changed->values.live;
	}
	return &changed->values;
}

static void release(struct incstack__replay *replay, struct incstack__replay_live *entry)
{
	change(replay, entry->node)->live -= entry->bytes;
	incstack__curve_add(&replay->curve, entry->node, 0, entry->bytes);
	replay->shares.threads[entry->thread].live -= entry->bytes;
	replay->live -= entry->bytes;
	live_remove(replay, entry);
}

/* Makes the pointer live. If it is live already, its deallocation was not seen, and is made up
 * for. */
static int acquire(struct incstack__replay *replay, const struct incstack__replay_live *block)
{
	struct incstack__replay_live *entry;

	if (2 * replay->table_used >= replay->table_size && live_grow(replay) != 0)
		return INCSTACK_ENOMEM;
	entry = live_find(replay, block->pointer);
	if (entry->pointer != 0) {
		replay->implied_frees++;
		release(replay, entry);
		entry = live_find(replay, block->pointer);
	}
	*entry = *block;
	replay->table_used++;
	change(replay, block->node)->live += block->bytes;
	replay->shares.threads[block->thread].live += block->bytes;
	replay->live += block->bytes;
	return 0;
}

static void note_peak(struct incstack__replay *replay, uint64_t stamp)
{
	incstack__curve_note(&replay->curve, replay->live);
	if (replay->live <= replay->peak)
		return;
	replay->peak = replay->live;
	replay->peak_stamp = stamp;
	replay->peak_number++;
}

/* ---- contexts -------------------------------------------------------------------- */

/* Returns the node below which the contexts of a thread lie. */
static uint32_t root_of(struct incstack__replay *replay, uint32_t number)
{
	const struct incstack__tracefile_thread *thread;
	uint64_t code = INCSTACK__CCT_NO_THREAD;

	if (!replay->by_thread)
		return INCSTACK__CCT_ROOT;
	thread = incstack__tracefile_reader_thread(replay->reader, number);
	if (thread && thread->name[0] != 0)
		code = INCSTACK__CCT_THREADS + thread->group;
	return incstack__cct_child(&replay->cct, INCSTACK__CCT_ROOT, code);
}

/* Returns the node with this code below the root of a thread. */
static uint32_t special(struct incstack__replay *replay, uint32_t number, uint64_t code)
{
	const uint32_t root = root_of(replay, number);

	return root == INCSTACK__CCT_FAILED ? root : incstack__cct_child(&replay->cct, root, code);
}

static uint32_t start_of(struct incstack__replay *replay,
			 const struct incstack__tracefile_chunk *chunk, uint32_t outermost)
{
	const bool by_pointer = chunk->flags[outermost] & INCSTACK__TRACEFILE_POINTER;

	if ((chunk->flags[outermost] & INCSTACK__TRACEFILE_PARENT) !=
	    INCSTACK__TRACEFILE_PARENT_TRUNCATED)
		return root_of(replay, chunk->thread);
	return special(replay, chunk->thread,
		       by_pointer ? INCSTACK__CCT_POINTER : INCSTACK__CCT_TRUNCATED);
}

/* Finds the nodes of the objects from `first` to `last`, and returns the node of `first`. These
 * objects are the part of a run that has no nodes yet. `node` is the node of their callers. */
static uint32_t resolve_run(struct incstack__replay *replay,
			    struct incstack__tracefile_chunk *chunk, uint32_t first, uint32_t last,
			    uint32_t node)
{
	for (uint32_t i = last + 1; i-- > first && node != INCSTACK__CCT_FAILED;) {
		node = incstack__cct_child(&replay->cct, node, incstack__tracefile_code(chunk, i));
		chunk->node[i] = node;
		if (node != INCSTACK__CCT_FAILED && chunk->flags[i] & INCSTACK__TRACEFILE_POINTER)
			replay->cct.nodes[node].by_pointer = true;
	}
	return node;
}

/* Finds the node of an object. The callers that belong to an earlier run have lower indices. So the
 * function begins at the first of the objects before `top` that have no nodes, goes on run by run,
 * and meets every parent before its children. */
static uint32_t resolve(struct incstack__replay *replay, struct incstack__tracefile_chunk *chunk,
			uint32_t top)
{
	uint32_t first = top;

	while (first > 0 && chunk->node[first - 1] == 0)
		first--;
	while (chunk->node[top] == 0) {
		uint32_t last = first;
		uint32_t node;

		while (chunk->parent[last] == last + 1 && chunk->node[last + 1] == 0)
			last++;
		if (chunk->parent[last] == INCSTACK__TRACEFILE_NO_PARENT)
			node = start_of(replay, chunk, last);
		else
			node = chunk->node[chunk->parent[last]];
		if (resolve_run(replay, chunk, first, last, node) == INCSTACK__CCT_FAILED)
			return INCSTACK__CCT_FAILED;
		first = last + 1;
	}
	return chunk->node[top];
}

/* Returns a number that nobody outside of this process knows. */
static uint64_t secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t number = 0;

	if (random)
		memcpy(&number, random, sizeof(number));
	return number;
}

/* Each trace adds so many steps to the budget of all comparisons. Usually a trace differs from the
 * thread's previous trace in a few frames, and takes less. In a file with deep stacks that
 * alternate, each comparison would visit all of their frames. There the budget runs out, and only
 * some traces are compared. */
enum { STEPS_PER_TRACE = 256 };

/* Counts how many frames of the thread's previous trace the new trace does not share. */
static void compare_with_last(struct incstack__replay *replay,
			      struct incstack__tracefile_chunk *chunk, uint32_t node)
{
	const struct incstack__cct_node *nodes = replay->cct.nodes;

	replay->traces++;
	replay->depth_sum += nodes[node].depth - (unsigned)replay->by_thread;
	replay->steps += STEPS_PER_TRACE;
	if (chunk->last != 0) {
		const uint32_t common =
			incstack__cct_common(&replay->cct, chunk->last, node, &replay->steps);

		if (common != INCSTACK__CCT_FAILED) {
			replay->popped_sum += nodes[chunk->last].depth - nodes[common].depth;
			replay->popped_count++;
		}
	}
	chunk->last = node;
}

static uint32_t context_of(struct incstack__replay *replay,
			   const struct incstack__tracefile_event *event)
{
	uint32_t node;

	if (event->trace == INCSTACK__TRACEFILE_NO_TRACE) {
		replay->no_trace++;
		return special(replay, event->thread, INCSTACK__CCT_NO_TRACE);
	}
	node = resolve(replay, event->chunk, event->chunk->top[event->trace]);
	if (node != INCSTACK__CCT_FAILED)
		compare_with_last(replay, event->chunk, node);
	return node;
}

/* ---- events ---------------------------------------------------------------------- */

/* Returns how many nanoseconds a tick stands for, or how many bytes an allocation stands for. */
static double weight_of(const struct incstack__replay *replay,
			const struct incstack__tracefile_event *event)
{
	if (replay->kind == INCSTACK__TRACEFILE_OF_CPU)
		return (double)event->size * (double)replay->interval;
	return incstack__replay_weight(replay, event->size);
}

/* Returns how many allocations of this size `weight` bytes are. The node keeps the fraction. */
static double calls_of(struct incstack__cct_node *node, double weight, uint64_t size)
{
	const double calls = size > 0 && weight > (double)size ? weight / (double)size : 1.0;
	double whole;

	node->calls_part += calls;
	whole = floor(node->calls_part);
	node->calls_part -= whole;
	return whole;
}

/* Returns how much of `more` may be added to the sum over all nodes. The sum stays within SUM_MAX,
 * whatever sizes a damaged file claims, so no sum over some of the nodes can wrap. */
static uint64_t limited(double more, uint64_t sum)
{
	const uint64_t room = SUM_MAX - sum;

	return more < (double)room ? (uint64_t)more : room;
}

static int keep_sample(struct incstack__replay *replay,
		       const struct incstack__tracefile_event *event, uint64_t weight,
		       uint32_t node)
{
	const size_t count = replay->sample_count;
	struct incstack__replay_sample *grown = replay->samples;

	if (count >= INCSTACK__REPLAY_SAMPLES_MAX)
		return 0;
	if ((count & (count - 1)) == 0)
		grown = realloc(grown, (count == 0 ? 1 : 2 * count) * sizeof(*grown));
	if (!grown)
		return INCSTACK_ENOMEM;
	replay->samples = grown;
	grown[replay->sample_count++] = (struct incstack__replay_sample){
		.stamp = event->stamp,
		.weight = (weight < SAMPLE_WEIGHT ? weight : SAMPLE_WEIGHT) & SAMPLE_WEIGHT,
		.state = incstack__state_of(event->pointer),
		.thread = event->thread,
		.node = node,
	};
	return 0;
}

static int keep_tick(struct incstack__replay *replay, const struct incstack__tracefile_event *event,
		     uint64_t weight, uint32_t node)
{
	const enum incstack__state state = incstack__state_of(event->pointer);
	const int error = incstack__times_add(&replay->times, node, state, weight);

	return error != 0 ? error : keep_sample(replay, event, weight, node);
}

static void count(struct incstack__replay *replay, const struct incstack__tracefile_event *event,
		  uint32_t thread, uint64_t calls, uint64_t weight)
{
	replay->calls += calls;
	replay->bytes += weight;
	replay->shares.threads[thread].calls += calls;
	replay->shares.threads[thread].bytes += weight;
	if (replay->kind != INCSTACK__TRACEFILE_OF_CPU)
		incstack__shares_size(&replay->shares, event->size, calls, weight);
}

static int replay_alloc(struct incstack__replay *replay,
			const struct incstack__tracefile_event *event)
{
	const uint32_t node = context_of(replay, event);
	const uint32_t thread = incstack__shares_thread(&replay->shares, event->thread);
	struct incstack__cct_values *values;
	uint64_t weight;
	uint64_t calls;

	if (node == INCSTACK__CCT_FAILED || thread == INCSTACK__NONE)
		return INCSTACK_ENOMEM;
	weight = limited(weight_of(replay, event) + 0.5, replay->bytes);
	calls = replay->kind == INCSTACK__TRACEFILE_OF_CPU
			? limited(1, replay->calls)
			: limited(calls_of(&replay->cct.nodes[node], weight_of(replay, event),
					   event->size),
				  replay->calls);
	replay->newest_node = node;
	replay->newest_thread = event->thread;
	values = change(replay, node);
	values->calls += calls;
	values->bytes += weight;
	count(replay, event, thread, calls, weight);
	if (replay->kind == INCSTACK__TRACEFILE_OF_CPU)
		return keep_tick(replay, event, weight, node);
	incstack__curve_add(&replay->curve, node, weight, event->pointer == 0 ? weight : 0);
	if (event->pointer == 0)
		return 0;
	if (acquire(replay,
		    &(struct incstack__replay_live){event->pointer, weight, node, thread}) != 0)
		return INCSTACK_ENOMEM;
	event->chunk->latest = event->pointer;
	note_peak(replay, event->stamp);
	return 0;
}

/* Counts an allocation that is freed before its thread makes another allocation. If only some
 * allocations are recorded, the thread may have made others, and nothing is counted. */
static void note_temporary(struct incstack__replay *replay,
			   const struct incstack__tracefile_event *event, uint32_t node)
{
	if (event->chunk->latest != event->pointer || replay->interval > 1)
		return;
	event->chunk->latest = 0;
	replay->cct.nodes[node].values.temporary++;
	replay->temporary++;
}

static void replay_free(struct incstack__replay *replay,
			const struct incstack__tracefile_event *event)
{
	struct incstack__replay_live *entry = live_find(replay, event->pointer);

	replay->frees++;
	if (event->pointer == 0 || entry->pointer == 0)
		replay->unknown_frees++;
	else {
		note_temporary(replay, event, entry->node);
		release(replay, entry);
	}
}

static void settle_peaks(struct incstack__replay *replay)
{
	for (uint32_t node = 0; node < replay->cct.count; node++)
		change(replay, node);
}

int incstack__replay_run(struct incstack__replay *replay, struct incstack__tracefile_reader *reader,
			 int by_thread)
{
	struct incstack__tracefile_event event;
	int more;

	if (!replay)
		return INCSTACK_EINVAL;
	*replay = (struct incstack__replay){0};
	if (!reader)
		return INCSTACK_EINVAL;
	replay->interval = incstack__tracefile_reader_header(reader)->interval;
	replay->kind = incstack__tracefile_reader_header(reader)->kind;
	replay->by_thread = by_thread != 0;
	replay->reader = reader;
	replay->seed = secret();
	if (incstack__cct_init(&replay->cct) != 0 || incstack__shares_init(&replay->shares) != 0 ||
	    live_grow(replay) != 0)
		return INCSTACK_ENOMEM;
	while ((more = incstack__tracefile_next(reader, &event)) == 1) {
		if (replay->kind != INCSTACK__TRACEFILE_OF_CPU)
			incstack__curve_advance(&replay->curve, event.stamp, replay->live);
		if (event.kind == INCSTACK__TRACEFILE_FREE)
			replay_free(replay, &event);
		else if (replay_alloc(replay, &event) != 0)
			return INCSTACK_ENOMEM;
	}
	settle_peaks(replay);
	return more != 0 ? more : incstack__replay_resident(replay);
}

void incstack__replay_free(struct incstack__replay *replay)
{
	if (!replay)
		return;
	incstack__cct_free(&replay->cct);
	incstack__curve_free(&replay->curve);
	incstack__shares_free(&replay->shares);
	incstack__times_free(&replay->times);
	incstack__resident_free(&replay->resident);
	free(replay->table);
	free(replay->samples);
	replay->table = NULL;
	replay->samples = NULL;
}

double incstack__replay_depth_mean(const struct incstack__replay *replay)
{
	return replay->traces == 0 ? 0.0 : (double)replay->depth_sum / (double)replay->traces;
}
